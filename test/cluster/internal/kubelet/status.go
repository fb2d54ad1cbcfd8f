package kubelet

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"
	utilpod "k8s.io/kubernetes/pkg/util/pod"
)

// report writes the status whenever it may have changed, until ctx ends.
func (p *pod) report(ctx context.Context) {
	for {
		select {
		case <-p.changed:
			p.writeStatus(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// writeStatus writes the status if it differs from the object's. It tries until it succeeds,
// the object is gone or ctx ends.
func (p *pod) writeStatus(ctx context.Context) {
	for {
		p.mu.Lock()
		object, vanished := p.current, p.vanished
		next := p.status()
		p.mu.Unlock()
		if vanished {
			return
		}
		written, _, unchanged, err := utilpod.PatchPodStatus(ctx, p.kubelet.client, p.namespace, p.name, p.uid, object.Status, next)
		switch {
		case err == nil && !unchanged:
			// The informer may show this version later, or a newer one already.
			p.set(func() {
				if p.current == object {
					p.current = written
				}
			})
			return
		case err == nil || ctx.Err() != nil || p.isGone(ctx):
			return
		}
		if !pause(ctx, retry) {
			return
		}
	}
}

// isGone asks whether the object is gone, or another one has its name.
func (p *pod) isGone(ctx context.Context) bool {
	object, err := p.kubelet.client.CoreV1().Pods(p.namespace).Get(ctx, p.name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && object.UID != p.uid
}

// withAddresses is the object with its addresses in the status, whether they are written or
// not: fields in variables and files may name them.
func (p *pod) withAddresses() *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	object := p.current.DeepCopy()
	p.addAddresses(&object.Status)
	return object
}

// addAddresses sets the addresses of the pod and of its node. The caller holds mu.
func (p *pod) addAddresses(s *v1.PodStatus) {
	s.HostIPs, s.PodIPs = nil, nil
	for _, ip := range p.kubelet.config.Network.HostNetwork().IPs {
		s.HostIPs = append(s.HostIPs, v1.HostIP{IP: ip.String()})
	}
	for _, ip := range p.network.IPs {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip.String()})
	}
	if len(s.HostIPs) > 0 {
		s.HostIP = s.HostIPs[0].IP
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

// status is what the object's status is to be. What others wrote into it stays. The caller
// holds mu.
func (p *pod) status() v1.PodStatus {
	object := p.current
	s := *object.Status.DeepCopy()
	s.ObservedGeneration = object.Generation
	if s.StartTime == nil {
		now := metav1.Now()
		s.StartTime = &now
	}
	p.addAddresses(&s)
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for _, c := range p.containers {
		if c.init {
			s.InitContainerStatuses = append(s.InitContainerStatuses, c.status())
		} else {
			s.ContainerStatuses = append(s.ContainerStatuses, c.status())
		}
	}
	s.Phase = p.phase()
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	prepared := v1.PodCondition{
		Type: v1.PodReadyToStartContainers, Status: v1.ConditionFalse,
		ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(&object.Status, object.Generation, v1.PodReadyToStartContainers),
	}
	if p.prepared && !p.finished {
		prepared.Status = v1.ConditionTrue
	}
	for _, condition := range []v1.PodCondition{
		prepared,
		status.GeneratePodInitializedCondition(object, &object.Status, all, s.Phase),
		status.GeneratePodReadyCondition(object, &object.Status, s.Conditions, all, s.Phase),
		status.GenerateContainersReadyCondition(object, &object.Status, all, s.Phase),
	} {
		condition.LastTransitionTime = metav1.Now()
		if _, old := podutil.GetPodConditionFromList(s.Conditions, condition.Type); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		s.Conditions = utilpod.ReplaceOrAppendPodCondition(s.Conditions, &condition)
	}
	return s
}

// status is that of the container. The caller holds pod.mu.
func (c *container) status() v1.ContainerStatus {
	s := v1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image, ImageID: c.imageID,
		State: c.state, LastTerminationState: c.last, RestartCount: c.restarts,
		Ready: c.ready, Started: &c.up,
	}
	if c.id != "" {
		s.ContainerID = containerID(c.id)
	}
	if c.init && !c.sidecar {
		s.Ready = c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
	}
	started := c.up // a copy, as the status outlives the lock
	s.Started = &started
	return *s.DeepCopy()
}

// phase is that of the pod. The caller holds mu.
func (p *pod) phase() v1.PodPhase {
	running, waits, stopped, succeeded := 0, 0, 0, 0
	for _, c := range p.containers {
		end := c.state.Terminated
		if end == nil {
			end = c.last.Terminated
		}
		switch {
		case c.sidecar && c.state.Running != nil:
			running++
		case c.init:
		case c.state.Running != nil:
			running++
		case end != nil:
			stopped++
			if end.ExitCode == 0 {
				succeeded++
			}
		default:
			waits++
		}
	}
	switch {
	case p.failed:
		return v1.PodFailed
	case p.finished && waits == 0 && stopped == succeeded:
		return v1.PodSucceeded
	case p.finished:
		return v1.PodFailed
	case !p.initialized || waits > 0:
		return v1.PodPending
	case running > 0 || !p.done():
		return v1.PodRunning
	case stopped == succeeded:
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// done tells whether all main containers have ended for good. The caller holds mu.
func (p *pod) done() bool {
	for _, c := range p.containers {
		if !c.init && !c.over {
			return false
		}
	}
	return true
}
