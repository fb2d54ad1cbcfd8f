package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"turnout/internal/bound"
)

// aRouteIn returns a route of a namespace.
func aRouteIn(namespace, name, host string) *routev1.Route {
	r := aRoute(name)
	r.Namespace, r.Spec.Host = namespace, host
	return r
}

// TestNamespacesTakeTurns: a namespace with thousands of routes to be written does not hold up one with a single route.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 2 * time.Millisecond
		var bounds bound.Counts
		w := start(t, api, func(cfg *WriterConfig) { cfg.Bounds = &bounds })
		for i := range 3000 {
			w.Report(api.put(aRouteIn("big", fmt.Sprint("b", i), "h")), want("h", admitted("False", "HostAlreadyClaimed", "x", atNow)))
		}
		pass(time.Second)
		for i := range 3 {
			name := fmt.Sprint("s", i)
			before := api.count("write")
			w.Report(api.put(aRouteIn("small", name, "h")), want("h", yesNow()))
			pass(100 * time.Millisecond)
			at := slices.Index(api.written(), name)
			if at < 0 || at > before+2 {
				t.Errorf("%s is write %d, asked for after %d", name, at, before)
			}
		}
		if bounds.Of(bound.StatusWrites) == 0 {
			t.Error("nobody counts that a namespace waits for others")
		}
		pass(30 * time.Second)
		if s := w.Stats(); s.Pending != 0 || s.Written != 3003 || len(w.queue.tenants) != 0 || len(w.queue.later) != 0 {
			t.Errorf("%+v, %d namespaces queued", s, len(w.queue.tenants))
		}
		if all := api.written(); all[len(all)-1] != "b2999" {
			t.Errorf("the last write is of %s", all[len(all)-1])
		}
	})
}

// meddler is somebody who may write to the routes of a namespace, status included, and does.
type meddler struct {
	name string
	do   func(r *routev1.Route, n int)
}

func meddlers() []meddler {
	entry := func(r *routev1.Route) *routev1.RouteIngress {
		for i := range r.Status.Ingress {
			if r.Status.Ingress[i].RouterName == "test1" {
				return &r.Status.Ingress[i]
			}
		}
		return nil
	}
	host := func(r *routev1.Route, host string) {
		if e := entry(r); e != nil {
			e.Host = host
		}
	}
	return []meddler{
		{"rewrites the entry", func(r *routev1.Route, n int) { host(r, fmt.Sprint("x", n)) }},
		{"writes what another replica would", func(r *routev1.Route, n int) {
			r.Spec.Host = fmt.Sprint("own", n/2)
			if n%2 == 1 {
				host(r, r.Spec.Host)
			}
		}},
		{"removes the entry", func(r *routev1.Route, _ int) { r.Status.Ingress = nil }},
		{"changes what is not status", func(r *routev1.Route, n int) {
			r.Spec.Host, r.Annotations = fmt.Sprint("own", n/40), map[string]string{"n": fmt.Sprint(n)}
		}},
	}
}

// TestMeddling: another writer that keeps writing to some routes stops what is written of those, and nothing else: neither in other namespaces nor
// of routes of the same one that nobody else touches.
func TestMeddling(t *testing.T) {
	for _, m := range meddlers() {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { meddle(t, m) })
		})
	}
}

func meddle(t *testing.T, m meddler) {
	api := newFakeAPI()
	api.delay = 4 * time.Millisecond
	writers := someWriters(t, api, 2)
	replicas(t, api, 20*time.Millisecond, writers, asHost)
	const flapping = 8
	for i := range flapping {
		api.put(aRouteIn("bad", fmt.Sprint("bad", i), "h"))
	}
	bystanders := []types.NamespacedName{{Namespace: "good", Name: "a"}, {Namespace: "other", Name: "b"}, {Namespace: "bad", Name: "calm"}}
	for _, key := range bystanders {
		api.put(aRouteIn(key.Namespace, key.Name, "first"))
	}
	pass(10 * time.Second)
	n, slowest := 0, make(map[string]time.Duration)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for round := range rounds {
		for i := range 80 { // 20 s
			for i := range flapping {
				api.changeIn("bad", fmt.Sprint("bad", i), func(r *routev1.Route) { m.do(r, n) })
			}
			n++
			if i%2 == 0 {
				pass(5 * time.Millisecond) // before the writers have done what this asks for
			} else {
				pass(500 * time.Millisecond)
			}
		}
		for _, key := range bystanders {
			host := fmt.Sprint("h", round)
			api.changeIn(key.Namespace, key.Name, func(r *routev1.Route) { r.Spec.Host = host })
			begun := time.Now()
			for said(api.getIn(key.Namespace, key.Name), "test1") != host+" True" && time.Since(begun) < time.Minute {
				pass(10 * time.Millisecond)
			}
			slowest[key.Namespace] = max(slowest[key.Namespace], time.Since(begun))
		}
	}
	writes := 0
	for _, name := range api.written() {
		if strings.HasPrefix(name, "bad") {
			writes++
		}
	}
	t.Logf("others waited %v at most; %d writes to the routes that are changed all the time, %+v", slowest, writes, total(writers))
	// In the namespace itself another replica may be believed to write.
	if max(slowest["good"], slowest["other"]) > time.Second || slowest["bad"] > leaseFor+time.Second {
		t.Errorf("other routes waited %v", slowest)
	}
}

// TestRefusedNamespace: a namespace whose routes the API refuses waits alone.
func TestRefusedNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.failing(func(_, name string) error {
			if strings.HasPrefix(name, "bad") {
				return apierrors.NewInvalid(routev1.SchemeGroupVersion.WithKind("Route").GroupKind(), name, nil)
			}
			return nil
		})
		w := start(t, api)
		for i := range 200 {
			w.Report(api.put(aRouteIn("bad", fmt.Sprint("bad", i), "h")), want("h", yesNow()))
		}
		for i := range 20 {
			pass(30 * time.Second)
			name := fmt.Sprint("good", i)
			w.Report(api.put(aRouteIn("good", name, "h")), want("h", yesNow()))
			pass(100 * time.Millisecond)
			if said(api.getIn("good", name), "test1") != "h True" {
				t.Errorf("%s waits for routes of another namespace", name)
			}
		}
		if n := api.count("write"); n > 20+60 {
			t.Errorf("%d writes in ten minutes", n)
		}
		w.mu.Lock()
		kept := len(w.outage.refusing)
		w.mu.Unlock()
		if kept != 1 {
			t.Errorf("%d namespaces are remembered", kept)
		}
	})
}

// TestAllRefuse: when the API refuses everything it is asked rarely, however many namespaces there are, and never as late as
// it says by mistake.
func TestAllRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.failing(func(_, name string) error {
			return apierrors.NewForbidden(routev1.Resource("routes"), name, errors.New("no"))
		})
		w := start(t, api)
		for i := range 100 {
			w.Report(api.put(aRouteIn(fmt.Sprint("ns", i), "a", "h")), want("h", yesNow()))
		}
		pass(10 * time.Minute)
		if n := api.count("write"); n > 50 {
			t.Errorf("%d writes in ten minutes", n)
		}
		api.failing(func(string, string) error { return apierrors.NewTooManyRequests("in a day", 86400) })
		pass(time.Minute)
		api.failing(nil)
		pass(2*suggestedMax + 10*time.Second)
		if s := w.Stats(); s.Pending != 0 || s.Written != 100 {
			t.Errorf("%+v", s)
		}
	})
}

// TestReplicasOfManyNamespaces: replicas do not get in each other's way where there are many namespaces.
func TestReplicasOfManyNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 4 * time.Millisecond
		writers := someWriters(t, api, 3)
		replicas(t, api, 20*time.Millisecond, writers, asHost)
		const routes = 600
		for i := range routes {
			api.put(aRouteIn(fmt.Sprint("ns", i%60), fmt.Sprint("r", i), "h"))
		}
		pass(2 * time.Minute)
		s := total(writers)
		t.Logf("%+v", s)
		if s.Written != routes || s.Pending != 0 || s.Conflicts > routes/5 {
			t.Errorf("%+v", s)
		}
	})
}

// TestSweepIsPaced: a sweep of many pages leaves the API server to others for most of the time.
func TestSweepIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 100 * time.Millisecond
		for i := range 40 { // two on a page
			api.put(aRoute(fmt.Sprint("r", i), inBubble("s", -time.Hour)))
		}
		synced := make(chan struct{})
		w := start(t, api, func(cfg *WriterConfig) { cfg.Sweep = synced })
		close(synced)
		pass(time.Minute)
		if n := api.count("list"); n < 10 || n > 13 {
			t.Errorf("%d pages in a minute, each of which takes 0.1 s", n)
		}
		pass(5 * time.Minute)
		if n, removed := api.count("list"), w.Stats().Removed; n != 20 || removed != 40 {
			t.Errorf("%d pages of 20, %d entries of 40 removed", n, removed)
		}
	})
}

// TestSweepDoubt: a writer that puts entries back in its namespace does not stop the sweep elsewhere.
func TestSweepDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		synced := make(chan struct{})
		w := start(t, api, func(cfg *WriterConfig) { cfg.Sweep = synced })
		for i := range 4 {
			for _, namespace := range []string{"bad", "good"} {
				r := aRoute(fmt.Sprint(namespace, i), inBubble("s", -time.Hour))
				r.Namespace = namespace
				api.put(r)
			}
		}
		api.changed = func(_, route *routev1.Route) {
			if route.Namespace == "bad" && len(route.Status.Ingress) == 0 {
				api.changeIn("bad", route.Name, func(r *routev1.Route) { r.Status.Ingress = append(r.Status.Ingress, *inBubble("s", 0)) })
			}
		}
		close(synced)
		pass(5 * time.Minute)
		for i := range 4 {
			if got := said(api.getIn("good", fmt.Sprint("good", i)), "test1"); got != "none" {
				t.Errorf("good%d: %s", i, got)
			}
		}
		if n := w.Stats().Removed; n != 5 {
			t.Errorf("%d entries removed", n)
		}
	})
}
