package controller

import (
	"slices"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
	"turnout/routing"
)

// aBinding binds a route of ns, which aRoute has made, to Router one.
func aBinding(route, host string, change ...func(*shards.RouteBinding)) source.Event {
	o := &shards.RouteBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: route + ".one"},
		Spec:       shards.RouteBindingSpec{RouteNamespace: "ns", RouteName: route, RouteUID: "uid-" + route, Router: "one", DNS: host},
	}
	for _, f := range change {
		f(o)
	}
	return event(source.RouteBinding, o)
}

func leaving(o *shards.RouteBinding) { o.Spec.Leaving = true }

// TestBindings: a replica of a Router serves what is bound to it and nothing else, whatever comes first.
func TestBindings(t *testing.T) {
	r := newRig(t, Options{Router: "one"})
	r.do(aRoute("a", "a.test", 0), aRoute("b", "b.test", 0), aSlice("s-1", "s", "10.0.0.1"))
	r.wantServed("nothing is bound", "")
	if all := r.c.Claimants("a.test"); len(all) != 1 || all[0].State != ClaimUnbound {
		t.Errorf("who wants the host: %+v", all)
	}
	r.do(aBinding("a", "a.test"), aBinding("late", "late.test"))
	r.wantServed("one is bound", "ns/a")
	r.do(aRoute("late", "late.test", 0))
	r.wantServed("a binding was there before its route", "ns/a ns/late")
	r.do(aBinding("a", "a.test", func(o *shards.RouteBinding) { o.Spec.RouteUID = "another" }))
	r.wantServed("the binding of another route of the name", "ns/late")
	r.do(aBinding("a", "a.test", func(o *shards.RouteBinding) { o.Spec.Router = "two" }))
	r.wantServed("the binding of another Router", "ns/late")
	r.do(aBinding("a", "a.test", func(o *shards.RouteBinding) {
		o.Spec.RouteNamespace, o.Spec.RouteName, o.Spec.RouteUID = "other", "a", "uid-a"
	}))
	r.wantServed("a binding about another namespace", "ns/late")
	r.do(aBinding("a", "a.test"), aBinding("b", "b.test"))
	r.wantServed("all are bound", "ns/a ns/b ns/late")
	r.do(gone(source.RouteBinding, "b.one"), gone(source.Route, "late"))
	r.wantServed("a binding and a route are gone", "ns/a")
	r.do(aBinding("a", "a.test", func(o *shards.RouteBinding) { o.Name = "by-hand" }), gone(source.RouteBinding, "a.one"))
	r.wantServed("the second binding stays", "ns/a")
}

// TestShardReport: of a bound route it is said to which Router, and what a domain of the user's own points to.
func TestShardReport(t *testing.T) {
	r := newRig(t, Options{Router: "one"})
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"), aBinding("a", "a.test", func(o *shards.RouteBinding) { o.Spec.Target = "ns-a.one.test" }))
	report, ok := r.c.Explain("ns", "a")
	if want := (ShardReport{Router: "one", DNS: "a.test", Target: "ns-a.one.test"}); !ok || report.Shard == nil || *report.Shard != want {
		t.Errorf("%+v", report)
	}
	r.do(aBinding("a", "a.test", leaving))
	if report, _ = r.c.Explain("ns", "a"); report.Shard == nil || !report.Shard.Leaving {
		t.Errorf("one that leaves: %+v", report.Shard)
	}
	plain := newRig(t, Options{})
	plain.do(aRoute("a", "a.test", 0), aBinding("a", "a.test"))
	if report, _ = plain.c.Explain("ns", "a"); report.Shard != nil {
		t.Errorf("without a Router: %+v", report.Shard)
	}
}

// TestBindingHost: a route that asks for no host has that of its binding, also where an API server has made one up; one that asks keeps its own.
func TestBindingHost(t *testing.T) {
	generated := func(o *routev1.Route) {
		o.Annotations = map[string]string{"openshift.io/host.generated": "true"}
	}
	r := newRig(t, Options{Router: "one"})
	r.do(aRoute("a", "", 0), aRoute("b", "b-ns.apps.test", 0, generated), aRoute("c", "c.test", 0), aSlice("s-1", "s", "10.0.0.1"),
		aBinding("a", "ns-a.one.test"), aBinding("b", "ns-b.one.test"), aBinding("c", "ns-c.one.test"))
	for host, want := range map[string]string{"ns-a.one.test": "a", "ns-b.one.test": "b", "c.test": "c", "b-ns.apps.test": "", "ns-c.one.test": ""} {
		if got := r.serves(host, "/"); got != want {
			t.Errorf("%s is served by %q, want %q", host, got, want)
		}
	}
	r.do(aBinding("a", "renamed.one.test"))
	if r.serves("ns-a.one.test", "/") != "" || r.serves("renamed.one.test", "/") != "a" {
		t.Error("another host of a binding has no effect")
	}
	plain := newRig(t, Options{})
	plain.do(aRoute("b", "b-ns.apps.test", 0, generated), aBinding("b", "ns-b.one.test"))
	if plain.serves("b-ns.apps.test", "/") != "b" || plain.serves("ns-b.one.test", "/") != "" {
		t.Error("bindings have an effect without a Router")
	}
}

// TestLeavingBinding: a route that others serve from now on is served, and clients are to connect again.
func TestLeavingBinding(t *testing.T) {
	r := newRig(t, Options{Router: "one"})
	leaves := func() bool {
		d := r.store.Load().Match(&routing.View{Host: []byte("a.test"), Path: []byte("/")})
		return d.Kind == routing.Serve && d.Route.Policy().Leaving
	}
	r.do(aRoute("a", "a.test", 0), aSlice("s-1", "s", "10.0.0.1"), aBinding("a", "a.test"))
	if leaves() {
		t.Error("leaves before it does")
	}
	r.do(aBinding("a", "a.test", leaving))
	if !leaves() {
		t.Error("does not leave")
	}
	r.do(aBinding("a", "a.test", func(o *shards.RouteBinding) { o.Name = "again" }))
	if leaves() {
		t.Error("leaves although another binding stays")
	}
}

// TestBound: what became of bound routes is said.
func TestBound(t *testing.T) {
	r := newRig(t, Options{Router: "one"})
	go func() { _ = r.c.Run(t.Context()) }()
	r.sink.Event(aRoute("a", "a.test", 0), aRoute("b", "a.test", 1), aBinding("a", "a.test", leaving), aBinding("b", "a.test"), aBinding("c", "c.test"))
	if err := r.c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.store.Load().Route(routing.RouteKey{Namespace: "ns", Name: "a", UID: "uid-a"}).Stats().Sessions.Begin(0)
	b, err := r.c.Bound(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []LeavingRoute{{Route: source.Key{Namespace: "ns", Name: "a"}, Binding: source.Key{Namespace: "ns", Name: "a.one"}, Requests: 1, Open: 1}}
	if b.Known != 2 || !slices.Equal(b.Missing, []source.Key{{Namespace: "ns", Name: "c"}}) || !slices.Equal(b.Leaving, want) {
		t.Errorf("%+v", b)
	}
}
