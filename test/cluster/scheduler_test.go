package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createPod makes a pod that runs echo, with a specification that change completes.
func createPod(t *testing.T, namespace, name string, change func(*corev1.Pod)) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: echoSpec()}
	if change != nil {
		change(p)
	}
	if _, err := shared.client.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// bound waits until a pod has a node.
func bound(t *testing.T, namespace, name string) string {
	t.Helper()
	var node string
	eventually(t, func(ctx context.Context) error {
		p, err := shared.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && p.Spec.NodeName == "" {
			err = fmt.Errorf("pod %s has no node", name)
		}
		node = p.Spec.NodeName
		return err
	})
	return node
}

// refused waits until a pod is said to fit nowhere, with a condition and an event.
func refused(t *testing.T, namespace, name, why string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		p, err := shared.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.Spec.NodeName != "" {
			t.Fatalf("pod %s is on node %s", name, p.Spec.NodeName)
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == "Unschedulable" && strings.Contains(c.Message, why) {
				return nil
			}
		}
		return fmt.Errorf("conditions of pod %s: %+v, want one that says %q", name, p.Status.Conditions, why)
	})
	eventually(t, func(ctx context.Context) error {
		events, err := shared.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling,involvedObject.name=" + name})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("there is no event")
		}
		return err
	})
}

// Pods go where they may, and say so when that is nowhere.
func TestSchedulerChoosesNodes(t *testing.T) {
	namespace := newNamespace(t)
	createPod(t, namespace, "fast", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} })
	if got := bound(t, namespace, "fast"); got != "one" {
		t.Errorf("the pod with a node selector is on %s", got)
	}
	createPod(t, namespace, "slow", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}
	})
	if got := bound(t, namespace, "slow"); got != "two" {
		t.Errorf("the pod with a node affinity is on %s", got)
	}
	createPod(t, namespace, "nowhere", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "none"} })
	refused(t, namespace, "nowhere", "2 node(s) didn't match Pod's node affinity/selector")
}

// A pod that asks for a port of the node waits until it is free.
func TestSchedulerHostPorts(t *testing.T) {
	namespace := newNamespace(t)
	with := func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"disk": "fast"}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: echoHTTP, HostPort: 9999}}
	}
	createPod(t, namespace, "first", with)
	bound(t, namespace, "first")
	createPod(t, namespace, "second", with)
	refused(t, namespace, "second", "free ports")
	if err := shared.client.CoreV1().Pods(namespace).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	bound(t, namespace, "second")
}

// Pods that must be apart are, and those of one owner are spread.
func TestSchedulerSpreads(t *testing.T) {
	namespace := newNamespace(t)
	apart := func(p *corev1.Pod) {
		p.Labels = map[string]string{"group": "apart"}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: corev1.LabelHostname,
		}}}}
	}
	createPod(t, namespace, "a", apart)
	createPod(t, namespace, "b", apart)
	if a, b := bound(t, namespace, "a"), bound(t, namespace, "b"); a == b {
		t.Errorf("both are on %s", a)
	}
	createPod(t, namespace, "c", apart)
	refused(t, namespace, "c", "anti-affinity")

	on := map[string]int{}
	for _, p := range deploy(t, namespace, "many", 6) {
		on[p.Spec.NodeName]++
	}
	if on["one"] != 3 || on["two"] != 3 {
		t.Errorf("6 pods of one owner are spread so: %v", on)
	}
}

// A taint keeps pods away that do not tolerate it, a cordoned node all new ones.
func TestSchedulerTaints(t *testing.T) {
	namespace := newNamespace(t)
	setNode(t, "two", func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "special", Value: "yes", Effect: corev1.TaintEffectNoSchedule})
	})
	setNode(t, "one", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	createPod(t, namespace, "plain", nil)
	refused(t, namespace, "plain", "special")
	createPod(t, namespace, "tolerant", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "special", Operator: corev1.TolerationOpExists}}
	})
	if got := bound(t, namespace, "tolerant"); got != "two" {
		t.Errorf("the tolerant pod is on %s", got)
	}
	setNode(t, "one", func(n *corev1.Node) { n.Spec.Unschedulable = false })
	if got := bound(t, namespace, "plain"); got != "one" {
		t.Errorf("the plain pod is on %s", got)
	}
}

// setNode changes a node until the end of the test.
func setNode(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	write := func(ctx context.Context, change func(*corev1.Node)) error {
		n, err := shared.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(n)
		_, err = shared.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	}
	eventually(t, func(ctx context.Context) error { return write(ctx, change) })
	t.Cleanup(func() {
		plain := func(n *corev1.Node) { n.Spec.Taints, n.Spec.Unschedulable = nil, false }
		if err := poll(context.Background(), most, func(ctx context.Context) error { return write(ctx, plain) }); err != nil {
			t.Error(err)
		}
	})
}

// A DaemonSet has a pod on each node.
func TestDaemonSet(t *testing.T) {
	namespace := newNamespace(t)
	labels := map[string]string{"app": "each"}
	set := daemonSet("each", labels)
	if _, err := shared.client.AppsV1().DaemonSets(namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := waitReady(t, namespace, "each", 2)
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Errorf("both are on %s", pods[0].Spec.NodeName)
	}
}
