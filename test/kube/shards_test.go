package kube

import (
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelled is a route with the label shard.
func labelled(route *routev1.Route, shard string) *routev1.Route {
	route.Labels = map[string]string{"shard": shard}
	return route
}

// TestRouteLabels: a router with a label selector serves what matches, says nothing about
// the rest, and takes back what it said of a route that leaves.
func TestRouteLabels(t *testing.T) {
	r := newRouter(t, "blue", "--labels", "shard=blue")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(labelled(newRoute("in", "in.labels.test"), "blue"))
	n.create(labelled(newRoute("out", "out.labels.test"), "red"))
	n.says("in", "blue", "in.labels.test True")
	serves(t, r, "http://in.labels.test/", at(pod1))
	answers(t, r, "http://out.labels.test/", 503)

	n.change("in", func(route *routev1.Route) { route.Labels["shard"] = "red" })
	answers(t, r, "http://in.labels.test/", 503)
	n.says("in", "blue", "nothing")
	n.change("out", func(route *routev1.Route) { route.Labels["shard"] = "blue" })
	n.says("out", "blue", "out.labels.test True")
	serves(t, r, "http://out.labels.test/", at(pod1))
	n.change("in", func(route *routev1.Route) { route.Labels["shard"] = "blue" })
	n.says("in", "blue", "in.labels.test True")
}

// TestStaleStatusKept: taking back can be turned off, as the router we replace has it.
func TestStaleStatusKept(t *testing.T) {
	r := newRouter(t, "keeper", "--labels", "shard=blue", "--clear-stale-status=false")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(labelled(newRoute("in", "in.kept.test"), "blue"))
	n.says("in", "keeper", "in.kept.test True")
	n.change("in", func(route *routev1.Route) { route.Labels["shard"] = "red" })
	answers(t, r, "http://in.kept.test/", 503)
	// What comes later has been said: the router had the time to take back.
	n.create(labelled(newRoute("later", "later.kept.test"), "blue"))
	n.says("later", "keeper", "later.kept.test True")
	n.says("in", "keeper", "in.kept.test True")
}

// TestRouteFields: a field selector, which the API server evaluates.
func TestRouteFields(t *testing.T) {
	r := newRouter(t, "fields", "--fields", "spec.to.name!=hidden")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.service("hidden", pod2)
	n.create(newRoute("in", "in.fields.test"))
	hidden := newRoute("out", "out.fields.test")
	hidden.Spec.To.Name = "hidden"
	n.create(hidden)
	serves(t, r, "http://in.fields.test/", at(pod1))
	n.says("in", "fields", "in.fields.test True")
	n.says("out", "fields", "nothing")
	answers(t, r, "http://out.fields.test/", 503)
}

// TestOneNamespace: -n limits the router to a namespace.
func TestOneNamespace(t *testing.T) {
	n := newNamespace(t, "a", nil)
	other := newNamespace(t, "b", nil)
	r := newRouter(t, "one", "--namespace", n.name)
	n.service("web", pod1)
	other.service("web", pod2)
	other.create(newRoute("out", "out.one.test"))
	n.create(newRoute("in", "in.one.test"))
	serves(t, r, "http://in.one.test/", at(pod1))
	n.says("in", "one", "in.one.test True")
	answers(t, r, "http://out.one.test/", 503)
	other.says("out", "one", "nothing")
}

// relabel changes the labels of a namespace.
func (n namespace) relabel(labels map[string]string) {
	n.Helper()
	namespaces := shared.core.CoreV1().Namespaces()
	eventually(n, "labels of namespace "+n.name, func() error {
		object, err := namespaces.Get(n.Context(), n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.Labels = labels
		_, err = namespaces.Update(n.Context(), object, metav1.UpdateOptions{})
		return err
	})
}

// TestNamespaceLabels: namespaces come into and leave the shard, with all their routes.
func TestNamespaceLabels(t *testing.T) {
	in := newNamespace(t, "in", map[string]string{"shard": "n1"})
	out := newNamespace(t, "out", map[string]string{"shard": "n2"})
	r := newRouter(t, "namespaces", "--namespace-labels", "shard=n1")
	in.service("web", pod1)
	out.service("web", pod2)
	in.create(newRoute("r", "in.namespaces.test"))
	out.create(newRoute("r", "out.namespaces.test"))
	// A claim of a namespace outside of the shard does not count.
	out.older(out.create(newRoute("claim", "claim.namespaces.test")))
	in.create(newRoute("claim", "claim.namespaces.test"))
	in.says("r", "namespaces", "in.namespaces.test True")
	in.says("claim", "namespaces", "claim.namespaces.test True")
	serves(t, r, "http://in.namespaces.test/", at(pod1))
	answers(t, r, "http://out.namespaces.test/", 503)
	out.says("r", "namespaces", "nothing")

	out.relabel(map[string]string{"shard": "n1"})
	out.says("r", "namespaces", "out.namespaces.test True")
	serves(t, r, "http://out.namespaces.test/", at(pod2))
	serves(t, r, "http://claim.namespaces.test/", at(pod2)) // the older one

	in.relabel(nil)
	answers(t, r, "http://in.namespaces.test/", 503)
	in.says("r", "namespaces", "nothing")
	in.says("claim", "namespaces", "nothing")
	serves(t, r, "http://out.namespaces.test/", at(pod2))
	in.relabel(map[string]string{"shard": "n1"})
	serves(t, r, "http://in.namespaces.test/", at(pod1))
	in.says("r", "namespaces", "in.namespaces.test True")
}

// TestTwoShards: a route moves from one router to the other, and its status with it.
func TestTwoShards(t *testing.T) {
	blue := newRouter(t, "blue", "--labels", "shard=blue")
	red := newRouter(t, "red", "--labels", "shard in (red,green)")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(labelled(newRoute("r", "moves.test"), "blue"))
	n.says("r", "blue", "moves.test True")
	n.change("r", func(route *routev1.Route) { route.Labels["shard"] = "green" })
	serves(t, red, "http://moves.test/", at(pod1))
	answers(t, blue, "http://moves.test/", 503)
	n.says("r", "blue", "nothing")
	route := n.says("r", "red", "moves.test True")
	if len(route.Status.Ingress) != 1 || route.Status.Ingress[0].Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("status %+v", route.Status)
	}
}
