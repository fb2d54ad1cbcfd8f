// Package node registers nodes and keeps them alive, as the part of a kubelet does that
// speaks of the node instead of its pods.
package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// leases are in this namespace.
	leases = "kube-node-lease"
	// heartbeat is how often a lease is renewed.
	heartbeat = 2 * time.Second
	// duration is how long a lease is good without, in seconds.
	duration = 8
	// KubeletPort is where the API server reaches the node's kubelet.
	KubeletPort = 10250
	// maxPods is how many pods a node takes.
	maxPods = 110
)

// Spec is a node to register.
type Spec struct {
	Name      string
	Labels    map[string]string // beside those that each node has
	Taints    []corev1.Taint
	Addresses []netip.Addr // the first one is that of the kubelet
	PodRanges []netip.Prefix
}

// Register makes the node, or brings the one of that name up to date, and says that it is ready.
func Register(ctx context.Context, client kubernetes.Interface, spec Spec) error {
	nodes := client.CoreV1().Nodes()
	labels := map[string]string{
		corev1.LabelHostname: spec.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "node-role.kubernetes.io/worker": "",
	}
	maps.Copy(labels, spec.Labels)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: spec.Name, Labels: labels}, Spec: corev1.NodeSpec{Taints: spec.Taints}}
	for _, p := range spec.PodRanges {
		n.Spec.PodCIDRs = append(n.Spec.PodCIDRs, p.String())
	}
	if len(n.Spec.PodCIDRs) > 0 {
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	}
	if _, err := nodes.Create(ctx, n, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create node %s: %w", spec.Name, err)
	}
	if err := renew(ctx, client, spec.Name); err != nil {
		return err
	}
	return reportReady(ctx, client, spec)
}

// reportReady writes the node's status.
func reportReady(ctx context.Context, client kubernetes.Interface, spec Spec) error {
	n, err := client.CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read node %s: %w", spec.Name, err)
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: spec.Name}}
	for _, a := range spec.Addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = KubeletPort
	n.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.36.0-stand-in", ContainerRuntimeVersion: "runc"}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI), corev1.ResourceEphemeralStorage: resource.MustParse("32Gi"),
	}
	n.Status.Allocatable = n.Status.Capacity
	now := metav1.Now()
	n.Status.Conditions = nil
	for _, c := range []struct {
		kind   corev1.NodeConditionType
		status corev1.ConditionStatus
		reason string
	}{
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"},
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"},
	} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: c.kind, Status: c.status, Reason: c.reason, LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot report node %s as ready: %w", spec.Name, err)
	}
	return nil
}

// Run keeps a node alive that was registered, until ctx ends. A node that was given up in the
// meantime, because the API server could not be reached, is reported as ready again.
func Run(ctx context.Context, client kubernetes.Interface, spec Spec) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// What fails is tried again with the next heartbeat.
		_ = keepAlive(ctx, client, spec)
	}
}

func keepAlive(ctx context.Context, client kubernetes.Interface, spec Spec) error {
	ctx, cancel := context.WithTimeout(ctx, 3*heartbeat)
	defer cancel()
	if err := renew(ctx, client, spec.Name); err != nil {
		return err
	}
	n, err := client.CoreV1().Nodes().Get(ctx, spec.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Register(ctx, client, spec)
	}
	if err != nil {
		return fmt.Errorf("cannot read node %s: %w", spec.Name, err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return reportReady(ctx, client, spec)
}

// renew renews the lease of a node, or makes it.
func renew(ctx context.Context, client kubernetes.Interface, name string) error {
	now, seconds := metav1.NowMicro(), int32(duration)
	api := client.CoordinationV1().Leases(leases)
	lease, err := api.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}
		_, err = api.Create(ctx, lease, metav1.CreateOptions{})
	case err == nil:
		lease.Spec.RenewTime = &now
		_, err = api.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot renew the lease of node %s", name), err)
	}
	return nil
}
