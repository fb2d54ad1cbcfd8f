package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// selected is the event that selects a namespace.
func selected(name string) source.Event {
	return event(source.Namespace, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func unselected(name string) source.Event {
	return source.Event{Kind: source.Namespace, Key: source.Key{Name: name}}
}

// of puts a route into a namespace.
func of(namespace string, e source.Event) source.Event {
	o := e.Object.(*routev1.Route).DeepCopy()
	o.Namespace = namespace
	o.UID += "-" + o.UID
	return event(source.Route, o)
}

// served returns "namespace/name" of all routes in the table, sorted.
func (r *rig) served() string {
	var list []string
	for route := range r.store.Load().Routes {
		list = append(list, route.Namespace()+"/"+route.Name())
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (r *rig) wantServed(step, want string) {
	r.Helper()
	if got := r.served(); got != want {
		r.Errorf("%s: served %q, want %q", step, got, want)
	}
}

func wildcard(o *routev1.Route) { o.Spec.WildcardPolicy = "Subdomain" }

// TestNamespaceRows is about routes outside of the namespaces that are served.
func TestNamespaceRows(t *testing.T) {
	host := func(ns string, age int) source.Event { return of(ns, aRoute("r", "test.com", age)) }
	for _, c := range []struct {
		id     string
		before []string // namespaces selected when the routes come
		routes []source.Event
		after  []string // namespaces selected at the end, if others
		want   string
		shown  int // routes that are shown
	}{
		{"updatemenot no-update.expected.test: no", []string{"ns1", "ns2", "nsx"}, []source.Event{of("updatemenot", aRoute("r", "no-update.expected.test", 0))}, nil, "", 0},
		{"ns1 update.wild.expected.test [W]: yes to nsx host.third.wild.expected.test [W]: yes", []string{"ns1", "ns2", "nsx"}, []source.Event{
			of("ns1", aRoute("a", "update.wild.expected.test", 0, wildcard)),
			of("nsx", aRoute("b", "second.wild.expected.test", 1, wildcard)),
			of("nsx", aRoute("c", "host.third.wild.expected.test", 2, wildcard)),
		}, nil, "ns1/a nsx/c", 3},
		{"filter keep {5,2} of 3@test,2@test,1@test,4@t4,5@t5: active 2@test, 5@t5", []string{"n1", "n2", "n3", "n4", "n5"}, []source.Event{
			host("n3", 3), host("n2", 2), host("n1", 1), of("n4", aRoute("r", "t4", 4)), of("n5", aRoute("r", "t5", 5)),
		}, []string{"n5", "n2"}, "n2/r n5/r", 2},
		{"filter keep {1} of 3,2,1: active 1", []string{"n1", "n2", "n3"}, []source.Event{host("n3", 3), host("n2", 2), host("n1", 1)}, []string{"n1"}, "n1/r", 1},
		{"allowed set {}, event add/modify/delete foo/test: result ignored", nil, []source.Event{host("foo", 0), host("foo", 0)}, nil, "", 0},
		{"allowed set {bar}, event add/modify/delete foo/test: result ignored", []string{"bar"}, []source.Event{host("foo", 0), host("foo", 0)}, nil, "", 0},
		{"allowed set {foo, bar}, event add: result tracked", []string{"foo", "bar"}, []source.Event{host("foo", 0)}, nil, "foo/r", 1},
		{"allowed set {bar}, event modify / add: result ignored", []string{"bar"}, []source.Event{host("foo", 0)}, nil, "", 0},
		{"replayed", nil, []source.Event{host("foo", 1), host("bar", 0)}, []string{"foo", "bar"}, "bar/r", 2},
	} {
		r := newRig(t, Options{SelectNamespaces: true, AllowWildcard: true})
		for _, ns := range c.before {
			r.do(selected(ns))
		}
		for _, e := range c.routes {
			r.do(e)
		}
		if c.after != nil {
			for _, ns := range c.before {
				if !slices.Contains(c.after, ns) {
					r.do(unselected(ns))
				}
			}
			for _, ns := range c.after {
				r.do(selected(ns))
			}
		}
		r.wantServed(c.id, c.want)
		if n := len(r.c.Routes()); n != c.shown {
			t.Errorf("%s: %d routes are shown, want %d", c.id, n, c.shown)
		}
	}
}

// TestNamespaceLeavesAndReturns is one namespace with all that belongs to it.
func TestNamespaceLeavesAndReturns(t *testing.T) {
	reports, secrets := new(reporter), new(vault)
	r := newRig(t, Options{SelectNamespaces: true}, func(c *Config) { c.Status, c.Secrets = reports, secrets })
	r.do()
	cert, key := keyPair(t, "c.test")
	r.do(aRoute("a", "a.test", 0, referring("c")), of("other", aRoute("b", "a.test", 1)), aSlice("s-1", "s", "10.0.0.1"), selected("other"))
	r.wantServed("not selected", "other/b")
	if got, asked := reports.taken(), secrets.taken(); got != "report b True, observe b" || asked != "" {
		t.Errorf("not selected: shown %q, asked for %q", got, asked)
	}
	r.do(selected("ns"))
	r.do(aSecret("c", corev1.SecretTypeTLS, cert, key))
	r.wantServed("selected", "ns/a")
	if got := r.servers("a"); got != "10.0.0.1:8080" {
		t.Errorf("selected: servers %q", got)
	}
	r.do(aSlice("s-1", "s", "10.0.0.2"))
	reports.taken()
	r.do(unselected("ns"))
	r.wantServed("no longer selected", "other/b")
	if got, asked := reports.taken(), secrets.taken(); got != "withdraw a, report b True" || asked != "+c -c" {
		t.Errorf("no longer selected: shown %q, asked for %q", got, asked)
	}
	// What happens outside is known when the namespace comes back, and says nothing.
	r.do(aRoute("a", "a.test", 0), gone(source.Route, "x"), aRoute("y", "y.test", 0))
	r.do(gone(source.Route, "y"), aSlice("s-1", "s", "10.0.0.3"))
	if got := reports.taken(); got != "" {
		t.Errorf("outside: shown %q", got)
	}
	r.do(selected("ns"))
	r.wantServed("selected again", "ns/a")
	if got := r.servers("a"); got != "10.0.0.3:8080" {
		t.Errorf("selected again: servers %q", got)
	}
	if got := reports.taken(); !strings.HasSuffix(got, ", observe a") || !strings.Contains(got, "report a True") ||
		!strings.Contains(got, "report b False HostAlreadyClaimed") {
		t.Errorf("selected again: shown %q", got)
	}
	r.do(selected("ns"))
	if got := reports.taken(); got != "" {
		t.Errorf("selected twice: shown %q", got)
	}
	r.do(gone(source.Route, "a"), unselected("ns"), gone(source.EndpointSlice, "s-1"), unselected("other"))
	s := r.c.state
	if n := s.routes.Len() + s.services.Len() + len(s.secrets) + len(s.namespaces); n != 0 || len(s.views.outside) != 1 {
		t.Errorf("%d things are remembered, and routes of %d namespaces", n, len(s.views.outside))
	}
}

// TestNamespacesInOneBatch looks that the order of events within a batch does not matter.
func TestNamespacesInOneBatch(t *testing.T) {
	for range 20 { // a batch is in the order of a map
		r := newRig(t, Options{SelectNamespaces: true})
		events := []source.Event{selected("ns")}
		for i := range 5 {
			events = append(events, aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.test", i), i))
		}
		r.do(events...)
		if n := r.store.Load().Len(); n != 5 {
			t.Fatalf("%d routes are served", n)
		}
		r.do(unselected("ns"), aRoute("r1", "other.test", 1), gone(source.Route, "r2"), aRoute("new", "new.test", 1))
		if n := r.store.Load().Len() + len(r.c.Routes()); n != 0 {
			t.Fatalf("%d routes are left", n)
		}
		r.do(selected("ns"), gone(source.Route, "r3"))
		r.wantServed("at the end", "ns/new ns/r0 ns/r1 ns/r4")
	}
}

// TestWithoutSelection looks that Namespace objects then mean nothing.
func TestWithoutSelection(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aRoute("a", "a.test", 0))
	r.do(selected("ns"))
	r.do(unselected("ns"))
	r.wantServed("without selection", "ns/a")
}
