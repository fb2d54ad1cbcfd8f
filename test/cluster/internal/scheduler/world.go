package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// world is nodes and the pods on them.
type world struct {
	nodes     []*corev1.Node           // by name
	pods      map[string][]*corev1.Pod // by name of node
	namespace func(string) labels.Set  // labels of a namespace
}

// add puts a pod on a node.
func (w *world) add(node string, p *corev1.Pod) { w.pods[node] = append(w.pods[node], p) }

// choose returns the best node for p. Without one it returns why.
func (w *world) choose(p *corev1.Pod) (*corev1.Node, string) {
	var best *corev1.Node
	reasons := map[string]int{}
	for _, n := range w.nodes {
		if why := w.unfit(p, n); why != "" {
			reasons[why]++
			continue
		}
		if best == nil || w.less(p, n.Name, best.Name) {
			best = n
		}
	}
	if best != nil {
		return best, ""
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		parts = append(parts, fmt.Sprintf("%d node(s) %s", reasons[why], why))
	}
	text := fmt.Sprintf("0/%d nodes are available", len(w.nodes))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return nil, text + "."
}

// less reports whether a is a better node for p than b.
func (w *world) less(p *corev1.Pod, a, b string) bool {
	if i, j := w.siblings(p, a), w.siblings(p, b); i != j {
		return i < j
	}
	return len(w.pods[a]) < len(w.pods[b])
}

// siblings is how many pods of the owner of p are on a node.
func (w *world) siblings(p *corev1.Pod, node string) int {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return 0
	}
	n := 0
	for _, other := range w.pods[node] {
		if o := metav1.GetControllerOf(other); o != nil && o.UID == owner.UID && other.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// unfit says why p cannot be on n; nothing when it can.
func (w *world) unfit(p *corev1.Pod, n *corev1.Node) string {
	if n.Spec.Unschedulable && !tolerates(p, &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return "were unschedulable"
	}
	if taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, false); found {
		return fmt.Sprintf("had untolerated taint(s) {%s: %s}", taint.Key, taint.Value)
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !fits {
		return "didn't match Pod's node affinity/selector"
	}
	if most := n.Status.Allocatable.Pods().Value(); int64(len(w.pods[n.Name])) >= most {
		return "had too many pods"
	}
	if w.portTaken(p, n.Name) {
		return "didn't have free ports for the requested pod ports"
	}
	return w.unfitBesides(p, n)
}

func tolerates(p *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), taint, false) })
}

// hostPorts calls yield with each port of the node that a pod needs.
func hostPorts(p *corev1.Pod, yield func(corev1.ContainerPort)) {
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range containers {
			for _, port := range c.Ports {
				if port.HostPort != 0 {
					yield(port)
				}
			}
		}
	}
}

// portTaken reports whether a pod on the node has a port of it that p needs too.
func (w *world) portTaken(p *corev1.Pod, node string) bool {
	taken := false
	hostPorts(p, func(wanted corev1.ContainerPort) {
		for _, other := range w.pods[node] {
			hostPorts(other, func(has corev1.ContainerPort) {
				taken = taken || wanted.HostPort == has.HostPort && wanted.Protocol == has.Protocol && overlap(wanted.HostIP, has.HostIP)
			})
		}
	})
	return taken
}

// overlap reports whether two addresses to listen on have one in common.
func overlap(a, b string) bool {
	all := func(s string) bool { return s == "" || s == "0.0.0.0" || s == "::" }
	return a == b || all(a) || all(b)
}

// unfitBesides says why p cannot be on n because of the pods there and elsewhere.
func (w *world) unfitBesides(p *corev1.Pod, n *corev1.Node) string {
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if w.count(n, term.TopologyKey, w.matcher(p, term)) > 0 {
				return "didn't match pod anti-affinity rules"
			}
		}
	}
	if w.refusedByOthers(p, n) {
		return "didn't satisfy existing pods anti-affinity rules"
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		for _, term := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			// The first of a group that wants to be together has nobody to join.
			match := w.matcher(p, term)
			if w.count(n, term.TopologyKey, match) == 0 && (!match(p) || w.anywhere(match)) {
				return "didn't match pod affinity rules"
			}
		}
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && w.uneven(p, n, c) {
			return "didn't match pod topology spread constraints"
		}
	}
	return ""
}

// refusedByOthers reports whether a pod near n does not want p near.
func (w *world) refusedByOthers(p *corev1.Pod, n *corev1.Node) bool {
	for _, other := range w.nodes {
		for _, neighbor := range w.pods[other.Name] {
			a := neighbor.Spec.Affinity
			if a == nil || a.PodAntiAffinity == nil {
				continue
			}
			for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				if near(n, other, term.TopologyKey) && w.matcher(neighbor, term)(p) {
					return true
				}
			}
		}
	}
	return false
}

// near reports whether two nodes are in the same domain of a topology.
func near(a, b *corev1.Node, key string) bool {
	in, ok := a.Labels[key]
	other, also := b.Labels[key]
	return ok && also && in == other
}

// count is how many pods that match are near n.
func (w *world) count(n *corev1.Node, key string, match func(*corev1.Pod) bool) int {
	count := 0
	for _, other := range w.nodes {
		if !near(n, other, key) {
			continue
		}
		for _, p := range w.pods[other.Name] {
			if match(p) {
				count++
			}
		}
	}
	return count
}

func (w *world) anywhere(match func(*corev1.Pod) bool) bool {
	for _, pods := range w.pods {
		if slices.ContainsFunc(pods, match) {
			return true
		}
	}
	return false
}

// matcher returns whether a pod is meant by a term of the pod p.
func (w *world) matcher(p *corev1.Pod, term corev1.PodAffinityTerm) func(*corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil {
		selector = labels.Nothing()
	}
	names := term.Namespaces
	if len(names) == 0 && term.NamespaceSelector == nil {
		names = []string{p.Namespace}
	}
	namespaces, err := metav1.LabelSelectorAsSelector(term.NamespaceSelector) // nil selects nothing
	if err != nil {
		namespaces = labels.Nothing()
	}
	return func(other *corev1.Pod) bool {
		return selector.Matches(labels.Set(other.Labels)) && (slices.Contains(names, other.Namespace) || namespaces.Matches(w.namespace(other.Namespace)))
	}
}

// uneven reports whether p on n would make the domains differ by too many pods.
func (w *world) uneven(p *corev1.Pod, n *corev1.Node, c corev1.TopologySpreadConstraint) bool {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if _, ok := n.Labels[c.TopologyKey]; err != nil || !ok {
		return true
	}
	match := func(other *corev1.Pod) bool {
		return other.Namespace == p.Namespace && other.DeletionTimestamp == nil && selector.Matches(labels.Set(other.Labels))
	}
	least := -1
	for _, other := range w.nodes {
		if _, ok := other.Labels[c.TopologyKey]; !ok {
			continue
		}
		if fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(other); err != nil || !fits {
			continue
		}
		if count := w.count(other, c.TopologyKey, match); least < 0 || count < least {
			least = count
		}
	}
	with := w.count(n, c.TopologyKey, match)
	if match(p) {
		with++
	}
	return with-least > int(c.MaxSkew)
}
