package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/internal/bound"
	"turnout/routing"
)

// worst returns events of a namespace whose objects cost the owner most: HTTPRoutes that expand to
// as many rules as they may.
func worst(n, generation int) (events []source.Event) {
	for i := range n {
		e := anHTTPRoute(fmt.Sprint("flood", i))
		h := e.Object.(*gatewayv1.HTTPRoute)
		h.Generation, h.CreationTimestamp = int64(generation), metav1.Unix(int64(i), 0)
		for host := range 16 {
			h.Spec.Hostnames = append(h.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.f%d.test", host, i)))
		}
		for m := range 128 {
			h.Spec.Rules[0].Matches = append(h.Spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: new(fmt.Sprintf("/%d/%d", generation, m))}})
		}
		events = append(events, e)
	}
	return events
}

// calm returns a Route and an HTTPRoute of another namespace. Their host name contains their
// version.
func calm(version int) []source.Event {
	route := aRoute("calm", fmt.Sprintf("route%d.calm.test", version), 1)
	route.Key.Namespace, route.Object.(*routev1.Route).Namespace = "calm", "calm"
	http := anHTTPRoute("calm")
	h := http.Object.(*gatewayv1.HTTPRoute)
	http.Key.Namespace, h.Namespace = "calm", "calm"
	h.Spec.ParentRefs[0].Namespace = new(gatewayv1.Namespace("ns"))
	h.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("http%d.calm.test", version))}
	return []source.Event{route, http}
}

// floodRig serves a Gateway whose two listeners take routes of all namespaces.
func floodRig(t testing.TB) (*gatewayRig, *bound.Counts) {
	bounds := new(bound.Counts)
	r := newGatewayRig(t, GatewayOptions{})
	r.c.state.cfg.Bounds = bounds
	r.do(
		event(source.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "calm"}}),
		aListener(func(g *gatewayv1.Gateway) {
			l := g.Spec.Listeners[0]
			l.AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
			g.Spec.Listeners = []gatewayv1.Listener{l, l}
			g.Spec.Listeners[1].Name, g.Spec.Listeners[1].Port = "other", 81
		}))
	return r, bounds
}

// leads reports whether the table has a rule for a request on the second listener.
func (r *gatewayRig) leads(host, path string) bool {
	return r.store.Load().Match(&routing.View{Host: []byte(host), Path: []byte(path), Arrival: &routing.Arrival{Port: "ns/gw:81"}}).Route != nil
}

// TestFloodOfANamespaceDelaysOthersByABatch checks that a change of one namespace is in the next
// table while another namespace floods the controller with Routes and the most expensive legal
// objects. The flood is served in the end.
func TestFloodOfANamespaceDelaysOthersByABatch(t *testing.T) {
	r, bounds := floodRig(t)
	const objects, rounds = 8, 4
	batches := 0
	for round := range rounds {
		events := worst(objects, round+1)
		for i := range 500 {
			events = append(events, aRoute(fmt.Sprint("flood", i), fmt.Sprintf("r%d.f%d.test", round, i), i))
		}
		for _, e := range append(events, calm(round)...) {
			r.sink.Event(e)
		}
		r.c.handle()
		batches++
		if r.serves(fmt.Sprintf("route%d.calm.test", round), "/") != "calm" || r.arrives(fmt.Sprintf("http%d.calm.test", round)) == nil {
			t.Fatalf("round %d: the change of the other namespace is not in the first table", round)
		}
		if waiting := r.c.waiting.Load(); waiting < 100 {
			t.Fatalf("round %d: only %d objects wait: the batch was not bounded", round, waiting)
		}
	}
	if bounds.Of(bound.BatchWork) < rounds {
		t.Errorf("the bound was counted %d times", bounds.Of(bound.BatchWork))
	}
	for r.c.waiting.Load() > 0 {
		r.c.handle()
		batches++
	}
	if got := r.serves("r3.f499.test", "/"); got != "flood499" {
		t.Errorf("a Route of the flood: %q", got)
	}
	if !r.leads("h15.f7.test", "/4/127") {
		t.Error("the last HTTPRoute of the flood is not served")
	}
	t.Logf("%d batches", batches)
}

// TestOneServiceOfManyRoutesIsDoneInBatches checks that a change of endpoints reaches the many
// routes of its namespace in several batches. Another namespace's change is in the first one.
func TestOneServiceOfManyRoutesIsDoneInBatches(t *testing.T) {
	r := newRig(t, Options{})
	var events []source.Event
	for i := range 2 * batchBudget / costTouched {
		events = append(events, aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.test", i), i))
	}
	events = append(events, aSlice("s-1", "s", "10.0.0.1"))
	other := calm(1)[0]
	ofCalm := func(address string) source.Event {
		e := aSlice("s-1", "s", address)
		e.Key.Namespace, e.Object.(*discoveryv1.EndpointSlice).Namespace = "calm", "calm"
		return e
	}
	r.do(append(events, other, ofCalm("10.0.1.1"))...)
	r.sink.Event(aSlice("s-1", "s", "10.0.0.2"), ofCalm("10.0.1.2"))
	r.c.handle()
	if got := r.servers("calm"); !strings.Contains(got, "10.0.1.2") {
		t.Errorf("the other namespace has %v", got)
	}
	if r.c.waiting.Load() == 0 {
		t.Error("all routes have their endpoints in one batch")
	}
	r.c.handleAll()
	for route := range r.store.Load().Routes {
		if servers := route.Pool().Servers(); route.Namespace() == "ns" && servers[0].Endpoint().Addr().Addr().String() != "10.0.0.2" {
			t.Fatalf("%s has %v", route.Name(), servers[0].Endpoint().Addr())
		}
	}
}

// TestWaitIsForBatches checks that Wait returns once the objects queued before it are served,
// although later objects of a flood still wait.
func TestWaitIsForBatches(t *testing.T) {
	r, _ := floodRig(t)
	for _, e := range worst(3, 1) {
		r.sink.Event(e)
	}
	r.c.handle()
	left, handled := r.c.inbox.left, r.c.inbox.handled
	if handled >= left {
		t.Fatalf("all %d deliveries count as handled", left)
	}
	for _, e := range calm(1) {
		r.sink.Event(e)
	}
	for r.c.inbox.handled < left {
		before := r.c.inbox.handled
		r.c.handle()
		if r.c.inbox.handled < before {
			t.Fatal("handled goes back")
		}
	}
	if !r.leads("h0.f2.test", "/1/127") {
		t.Error("deliveries count as handled that are not served")
	}
}

// BenchmarkChangeDuringFlood measures the longest wait of a change while another namespace keeps
// changing the worst legal objects. The change waits for the current batch and for its own.
func BenchmarkChangeDuringFlood(b *testing.B) {
	r, _ := floodRig(b)
	var most, sum time.Duration
	n := 0
	for ; b.Loop(); n++ {
		for _, e := range worst(8, n+1) {
			r.sink.Event(e)
		}
		began := time.Now()
		r.c.handle()
		for _, e := range calm(n) {
			r.sink.Event(e)
		}
		r.c.handle()
		took := time.Since(began)
		most, sum = max(most, took), sum+took
		if r.arrives(fmt.Sprintf("http%d.calm.test", n)) == nil {
			b.Fatal("the change is not served")
		}
	}
	b.ReportMetric(float64(most.Microseconds())/1000, "ms/most")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(n), "ms/mean")
}
