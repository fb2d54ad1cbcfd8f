package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/balancer"
	shards "turnout/controller/shard/api"
	"turnout/controller/source"
	"turnout/routing"
)

// claimRoute is a route that wants a host since so many seconds.
func claimRoute(namespace, name, host, path string, age int, policy routev1.WildcardPolicyType) source.Event {
	o := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u-" + "x", CreationTimestamp: metav1.Unix(int64(1000-age), 0)}}
	o.Spec.Host, o.Spec.Path, o.Spec.WildcardPolicy, o.Spec.To = host, path, policy, routev1.RouteTargetReference{Kind: "Service", Name: "s"}
	return source.Event{Kind: source.Route, Key: source.Key{Namespace: namespace, Name: name}, Object: o}
}

func states(list []Claimant) string {
	var words []string
	for _, c := range list {
		words = append(words, fmt.Sprint(c.Namespace, "/", c.Name, " ", c.State))
	}
	return strings.Join(words, ", ")
}

// TestClaimants: each route that wants a host is listed, with what became of it, and forgotten when it wants it no more.
func TestClaimants(t *testing.T) {
	const none, wild = routev1.WildcardPolicyNone, routev1.WildcardPolicySubdomain
	selected := source.Event{Kind: source.Namespace, Key: source.Key{Name: "a"}, Object: &corev1.Namespace{}}
	alsoB := source.Event{Kind: source.Namespace, Key: source.Key{Name: "b"}, Object: &corev1.Namespace{}}
	c, _, err := Offline(Options{SelectNamespaces: true}, routing.Options{}, []source.Event{
		selected, alsoB, claimRoute("a", "first", "h.test", "", 3, none), claimRoute("b", "second", "h.test", "/p", 2, none),
		claimRoute("a", "wild", "x.h.test", "", 1, wild), claimRoute("c", "outside", "h.test", "", 9, none),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(host, list string) {
		t.Helper()
		if got := states(c.Claimants(host)); got != list {
			t.Errorf("%s: %s, want %s", host, got, list)
		}
	}
	want("h.test", fmt.Sprintf("c/outside %d, a/first %d, b/second %d", ClaimNotSelected, ClaimServed, ClaimOlder))
	want("any.h.test", fmt.Sprintf("a/wild %d", ClaimRejected))
	want("nobody.test", "")
	c.state.apply([]source.Event{
		claimRoute("a", "first", "moved.test", "", 3, none), {Kind: source.Route, Key: source.Key{Namespace: "a", Name: "wild"}},
		{Kind: source.Namespace, Key: source.Key{Name: "c"}, Object: &corev1.Namespace{}},
	})
	want("h.test", fmt.Sprintf("c/outside %d, b/second %d", ClaimServed, ClaimOlder))
	want("moved.test", fmt.Sprintf("a/first %d", ClaimServed))
	want("any.h.test", "")
	c.state.apply([]source.Event{{Kind: source.Namespace, Key: source.Key{Name: "c"}}})
	want("h.test", fmt.Sprintf("c/outside %d, b/second %d", ClaimNotSelected, ClaimServed))
	c.state.apply([]source.Event{{Kind: source.Route, Key: source.Key{Namespace: "c", Name: "outside"}}, {Kind: source.Route, Key: source.Key{Namespace: "b", Name: "second"}}})
	if want("h.test", ""); len(c.views.outside) != 0 {
		t.Errorf("left outside: %v", c.views.outside)
	}
}

// TestPreview: a change is made of all that there is, and nothing of that changes.
func TestPreview(t *testing.T) {
	store := routing.NewStore()
	c := newRunning(t, store, claimRoute("a", "first", "h.test", "", 3, routev1.WildcardPolicyNone))
	before := store.Load()
	const manifest = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {namespace: %s, name: %s}\nspec: {host: h.test, path: %s, to: {kind: Service, name: s}}\n"
	for _, tc := range []struct{ change, want string }{
		{fmt.Sprintf(manifest, "b", "younger", "/p"), fmt.Sprintf("a/first %d, b/younger %d", ClaimServed, ClaimOlder)},
		{fmt.Sprintf(manifest, "a", "younger", "/p"), fmt.Sprintf("a/first %d, a/younger %d", ClaimServed, ClaimServed)},
		{fmt.Sprintf(manifest, "a", "first", "/new"), fmt.Sprintf("a/first %d", ClaimServed)},
	} {
		p, table, err := c.Preview(context.Background(), []byte(tc.change))
		if err != nil {
			t.Fatal(err)
		}
		if got := states(p.Claimants("h.test")); got != tc.want {
			t.Errorf("%s\n%s, want %s", tc.change, got, tc.want)
		}
		if strings.Contains(tc.change, "/new") && !slices.ContainsFunc(slices.Collect(table.Routes), func(r *routing.Route) bool { return r.Path() == "/new" && r.Key().UID == "u-x" }) {
			t.Error("the route of the manifest is not in the table, or is another object")
		}
	}
	for _, bad := range []string{"", "kind: Nothing\n", "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: x}\nspec: [\n"} {
		if _, _, err := c.Preview(context.Background(), []byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if store.Load() != before || states(c.Claimants("h.test")) != fmt.Sprintf("a/first %d", ClaimServed) {
		t.Error("something has changed")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	idle, err := New(Config{Store: routing.NewStore(), Routing: c.cfg.Routing})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := idle.Preview(ctx, nil); err == nil {
		t.Error("a controller that does not run has answered")
	}
}

// newRunning is a controller that has handled events and runs until the test ends.
func newRunning(t *testing.T, store *routing.Store, events ...source.Event) *Controller {
	t.Helper()
	c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	sink := c.Sink("test")
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	sink.Event(events...)
	sink.Synced()
	if err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestElsewhere: of a route that another Router serves it is said where it is, and what its name has to lead to.
func TestElsewhere(t *testing.T) {
	for want, annotations := range map[string]map[string]string{
		"": {"other": "x"},
		"it waits for a Router; no router selects the route": {shards.AnnotationPhase: "new", shards.AnnotationMessage: "no router selects the route"},
		"it is served by Router a, b; DNS name www.example.com, which has to be a CNAME of ns-r.a.test": {
			shards.AnnotationPhase: "scheduled", shards.AnnotationRouters: "a,b", shards.AnnotationDNS: "www.example.com", shards.AnnotationTarget: "ns-r.a.test",
		},
		"it is served by Router a; DNS name ns-r.a.test": {shards.AnnotationPhase: "scheduled", shards.AnnotationRouters: "a", shards.AnnotationDNS: "ns-r.a.test", shards.AnnotationTarget: "ns-r.a.test"},
	} {
		e := source.Event{Kind: source.Route, Object: &routev1.Route{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}
		if got := Elsewhere(&e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Elsewhere(&source.Event{}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
