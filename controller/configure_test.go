package controller

import (
	"context"
	"runtime"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/routing"
)

// configure has the rig go by other options from now on.
func (r *rig) configure(change func(*Options)) {
	r.Helper()
	o := r.c.Options()
	change(&o)
	if err := r.c.Configure(o); err != nil {
		r.Fatal(err)
	}
	r.c.handle()
}

const (
	isAdmitted  = "True"
	noWildcards = "False RouteNotAdmitted: wildcard routes are not allowed"
)

// TestWildcardPolicy: the cases 1a, 1b, 2 and migration of the enhancement that brought spec.routeAdmission.wildcardPolicy, and back. Where that
// lets the status of routes go on to claim that they are admitted, it says here what is so.
func TestWildcardPolicy(t *testing.T) {
	t.Run("1 default", func(t *testing.T) {
		r := newRig(t, Options{})
		r.do(aRoute("none", "none.test", 2), aRoute("wild", "www.wild.test", 1, wildcard))
		r.wantCondition("none", isAdmitted)
		r.wantCondition("wild", noWildcards)
		r.wantServed("default", "ns/none")
	})
	t.Run("2 allowed", func(t *testing.T) {
		r := newRig(t, Options{AllowWildcard: true})
		r.do(aRoute("none", "none.test", 2), aRoute("wild", "www.wild.test", 1, wildcard))
		r.wantCondition("none", isAdmitted)
		r.wantCondition("wild", isAdmitted)
		r.wantServed("allowed", "ns/none ns/wild")
	})
	t.Run("migration", func(t *testing.T) {
		r := newRig(t, Options{AllowWildcard: true})
		r.do(aRoute("wild", "www.wild.test", 3, wildcard), aRoute("other", "other.test", 1))
		r.wantCondition("wild", isAdmitted)
		if got := r.serves("any.wild.test", "/"); got != "wild" {
			t.Errorf("any.wild.test is served by %q", got)
		}
		r.configure(func(o *Options) { o.AllowWildcard = false })
		r.wantCondition("wild", noWildcards)
		r.wantCondition("other", isAdmitted)
		r.wantServed("disallowed", "ns/other")
		// wildcardPolicy is immutable: the route is deleted and created again with None.
		r.do(gone(source.Route, "wild"))
		r.do(aRoute("again", "www.wild.test", 0))
		r.wantCondition("again", isAdmitted)
		r.wantServed("created again", "ns/again ns/other")
	})
	t.Run("and back", func(t *testing.T) {
		r := newRig(t, Options{AllowWildcard: true})
		r.do(aRoute("wild", "www.wild.test", 1, wildcard), of("elsewhere", aRoute("narrow", "a.wild.test", 2)))
		r.wantServed("allowed", "ns/wild") // it keeps other namespaces out
		r.configure(func(o *Options) { o.AllowWildcard = false })
		r.wantServed("disallowed", "elsewhere/narrow")
		r.configure(func(o *Options) { o.AllowWildcard = true })
		r.wantServed("allowed again", "ns/wild")
		r.wantCondition("wild", isAdmitted)
	})
}

// TestConfigureOwnership: whether namespaces share hosts is decided anew for all routes.
func TestConfigureOwnership(t *testing.T) {
	r := newRig(t, Options{})
	at := func(path string) func(*routev1.Route) { return func(o *routev1.Route) { o.Spec.Path = path } }
	r.do(aRoute("foo", "h.test", 2, at("/foo")), of("elsewhere", aRoute("bar", "h.test", 3, at("/bar"))))
	r.wantServed("Strict", "ns/foo")
	r.configure(func(o *Options) { o.DisableNamespaceOwnership = true })
	r.wantServed("InterNamespaceAllowed", "elsewhere/bar ns/foo")
	r.configure(func(o *Options) { o.DisableNamespaceOwnership = false })
	r.wantServed("Strict again", "ns/foo")
}

// TestConfigureDefaults: what applies to routes that say nothing changes with one table, and nothing that has not changed makes one.
func TestConfigureDefaults(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aRoute("r", "r.test", 1))
	generation := r.store.Load().Generation()
	r.configure(func(*Options) {})
	if now := r.store.Load().Generation(); now != generation {
		t.Errorf("options that have not changed made table %d of %d", now, generation)
	}
	r.configure(func(o *Options) { o.ServerTimeout, o.SetForwardedHeaders = 7*time.Second, "never" })
	for route := range r.store.Load().Routes {
		if p := route.Policy(); p.ServerTimeout != 7*time.Second || p.Forwarded.String() != "never" {
			t.Errorf("the policy is %+v", p)
		}
	}
	if now := r.store.Load().Generation(); now != generation+1 {
		t.Errorf("a change made tables %d to %d", generation, now)
	}
	if err := r.c.Configure(Options{RouteLabels: "a=b=c"}); err == nil {
		t.Error("no error for a selector that is none")
	}
}

// TestConfigureSelection: routes come and go with the selectors, with their labels and with those of their namespace.
func TestConfigureSelection(t *testing.T) {
	labelled := func(value string) func(*routev1.Route) {
		return func(o *routev1.Route) { o.Labels = map[string]string{"type": value} }
	}
	namespace := func(name, value string) source.Event {
		return event(source.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": value}}})
	}
	r := newRig(t, Options{})
	reports := &reporter{}
	r.c.state.cfg.Status = reports
	r.do(namespace("ns", "prod"), namespace("other", "test"), aRoute("public", "p.test", 3, labelled("public")), aRoute("internal", "i.test", 2, labelled("internal")),
		of("other", aRoute("far", "f.test", 1, labelled("public"))))
	r.wantServed("all", "ns/internal ns/public other/far")
	reports.taken()
	r.configure(func(o *Options) { o.RouteLabels = "type=public" })
	r.wantServed("public routes", "ns/public other/far")
	if got := reports.taken(); got != "withdraw internal" {
		t.Errorf("status: %q", got)
	}
	r.do(aRoute("internal", "i.test", 2, labelled("public")))
	r.wantServed("a label changes", "ns/internal ns/public other/far")
	r.configure(func(o *Options) { o.SelectNamespaces, o.NamespaceLabels = true, "env=prod" })
	r.wantServed("production", "ns/internal ns/public")
	r.do(namespace("other", "prod"), namespace("ns", "test"))
	r.wantServed("labels of namespaces change", "other/far")
	r.configure(func(o *Options) { o.SelectNamespaces, o.NamespaceLabels, o.RouteLabels = false, "", "" })
	r.wantServed("all again", "ns/internal ns/public other/far")
	if n := len(r.c.views.outside); n != 0 {
		t.Errorf("%d routes are still put aside", n)
	}
}

// TestConfigureWhileItRuns: any goroutine may change the options while the owner works by those before.
func TestConfigureWhileItRuns(t *testing.T) {
	c, err := New(Config{Store: routing.NewStore(), Routing: routing.Options{Registry: balancer.NewRegistry()}, HoldOff: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	c.Sink("test").Synced()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	<-c.Ready()
	const last = time.Hour
	for n := range 1000 {
		if err := c.Configure(Options{ServerTimeout: time.Duration(n+1) * time.Second}); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	if err := c.Configure(Options{ServerTimeout: last}); err != nil {
		t.Fatal(err)
	}
	for c.Options().ServerTimeout != last {
		runtime.Gosched()
	}
	cancel()
	<-ended
}
