// Package kubelet runs the pods of a node, as the kubelet does, without a node: containers by
// runc (package runtime), images by name (package images), contents of volumes from the API
// (package volumes), addresses from package network.
//
// The life of a pod:
//
//  1. The informer shows a pod with this node's name; a goroutine of its own begins (pod.run).
//  2. The pod gets its network namespace and its volumes; what fails is tried again (pod.prepare).
//  3. Init containers run one after the other. A restartable one goes on running; the next begins when it has started.
//  4. The other containers run side by side, each in a goroutine that starts it again when it ends (container.supervise).
//  5. The pod ends when all of these have ended for good, or when its object is deleted: containers get preStop, their
//     stop signal, and time; restartable init containers follow in reverse order (pod.stop).
//  6. Volumes and addresses are freed, the last status is written, and the object is deleted if it was to be.
//
// State is written by the containers' goroutines under pod.mu; a second goroutine of the pod
// writes the status when anything changed (pod.report). What a condition says, and how a field
// becomes a variable, is decided by the kubelet's own code.
package kubelet
