package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

var allWatches = []string{"watch routes", "watch services", "watch endpointslices"}

func TestOutage(t *testing.T) {
	a := newFakeAPI(t)
	for i := range 20 {
		a.put(routeOf("ns", fmt.Sprint("r", i), "v", "1"))
	}
	_, sink := start(t, a, Config{})
	sink.wantSynced(t)
	a.set(func(a *fakeAPI) { a.down = true })
	a.cutWatches()
	a.asked(t, 5, allWatches...)
	if got := len(sink.names()); got != 20 {
		t.Errorf("%d objects are left in an outage", got)
	}
	a.put(routeOf("ns", "r3", "v", "2"))
	a.remove(routeOf("ns", "r4"))
	a.set(func(a *fakeAPI) { a.down = false })
	sink.until(t, "deleted during the outage", func() bool { return sink.latest["Route ns/r4"].Object == nil })
	sink.wantVersion(t, "Route ns/r3", "2")
	sink.wantLogged(t, "can be reached again")
	for text, want := range map[string]int{"cannot be reached": 1, "can be reached again": 1} {
		if got := sink.wantLogged(t, text); got != want {
			t.Errorf("%q is logged %d times, want %d: %v", text, got, want, sink.logs)
		}
	}
	if got := sink.events(); got != 22 {
		t.Errorf("%d events; unchanged objects are delivered again", got)
	}
}

// TestExpired reads everything again after a watch could not go on from where it was.
func TestExpired(t *testing.T) {
	for _, old := range []bool{false, true} {
		a := newFakeAPI(t)
		a.old = old
		for i := range 20 {
			a.put(routeOf("ns", fmt.Sprint("r", i), "v", "1"))
		}
		_, sink := start(t, a, Config{})
		sink.wantSynced(t)
		a.set(func(a *fakeAPI) { a.down = true })
		a.cutWatches()
		a.asked(t, 1, allWatches...)
		a.remove(routeOf("ns", "r4"))
		a.put(routeOf("ns", "r5", "v", "2"))
		a.remove(routeOf("ns", "r6"))
		a.put(routeOf("ns", "r6", "v", "again"))
		a.put(routeOf("ns", "new", "v", "1"))
		a.forget()
		a.set(func(a *fakeAPI) { a.down = false })
		sink.wantVersion(t, "Route ns/r5", "2")
		sink.wantVersion(t, "Route ns/r6", "again")
		sink.wantVersion(t, "Route ns/new", "1")
		sink.until(t, "deleted while nobody watched", func() bool { return sink.latest["Route ns/r4"].Object == nil })
		if got := sink.events(); got != 24 {
			t.Errorf("old=%v: %d events, want 20 and 4 for the changes", old, got)
		}
		if sink.synced != 1 {
			t.Errorf("synced %d times", sink.synced)
		}
	}
}

func TestRouteAPIMissing(t *testing.T) {
	a := newFakeAPI(t)
	a.status["routes"] = http.StatusNotFound
	a.put(routeOf("ns", "r"))
	f, sink := start(t, a, Config{})
	a.asked(t, 5, "watch routes")
	if n := sink.wantLogged(t, "the cluster does not know Routes"); n != 1 || f.Problems() != 1 {
		t.Errorf("logged %d times, %d problems", n, f.Problems())
	}
	sink.mu.Lock()
	if sink.synced != 0 {
		t.Error("synced without routes")
	}
	sink.mu.Unlock()
	a.set(func(a *fakeAPI) { delete(a.status, "routes") })
	sink.wantSynced(t)
	sink.wantObjects(t, "Route ns/r")
	if sink.wantLogged(t, "routes can be read now"); f.Problems() != 0 {
		t.Errorf("%d problems", f.Problems())
	}
}

func TestForbidden(t *testing.T) {
	a := newFakeAPI(t)
	a.status["endpointslices"] = http.StatusForbidden
	f, sink := start(t, a, Config{})
	a.asked(t, 5, "watch endpointslices")
	if n := sink.wantLogged(t, "cannot read endpointslices: as the test wants it (status 403); it is tried again"); n != 1 || f.Problems() != 1 {
		t.Errorf("logged %d times, %d problems", n, f.Problems())
	}
	for _, line := range sink.logs {
		if strings.Contains(line, "cannot be reached") {
			t.Error("a refusal is taken for an outage")
		}
	}
}

// TestFlood changes objects faster than anybody looks: what arrives last is right.
func TestFlood(t *testing.T) {
	a := newFakeAPI(t)
	_, sink := start(t, a, Config{})
	sink.wantSynced(t)
	for v := range 40 {
		for i := range 50 {
			a.put(routeOf("ns", fmt.Sprint("r", i), "v", fmt.Sprint(v)))
		}
		if v == 20 { // what comes after it comes by another watch
			another := a.count("watch routes") + 1
			a.cutWatches()
			a.askedInAll(t, another, "watch routes")
		}
	}
	for i := range 50 {
		sink.wantVersion(t, fmt.Sprintf("Route ns/r%d", i), "39")
	}
}

func TestHealth(t *testing.T) {
	h := newHealth(zap.NewNop(), "", 2)
	over := func() bool {
		select {
		case <-h.up:
			return true
		default:
			return false
		}
	}
	h.failed("a", nil)
	h.failed("a", nil)
	h.answered("b")
	if !over() || !h.wait(t.Context()) {
		t.Error("what may work is held up while b gets answers")
	}
	h.failed("b", nil)
	h.failed("b", nil)
	if over() {
		t.Error("over while nobody gets an answer")
	}
	done := make(chan bool)
	go func() { done <- h.wait(t.Context()) }()
	h.answered("a")
	h.answered("a")
	if !<-done || !over() {
		t.Error("not over")
	}
	h.answered("b")
	ended, end := context.WithCancel(t.Context())
	end()
	h.failed("a", nil)
	h.failed("b", nil)
	if h.wait(ended) {
		t.Error("over by the end of who waits")
	}
}

// TestOneKindAway has secrets go on while Routes get no answer, as where another server
// answers for them.
func TestOneKindAway(t *testing.T) {
	a := newFakeAPI(t)
	a.status["routes"] = http.StatusServiceUnavailable
	a.put(secretOf("ns", "cert", "1"))
	f, sink := start(t, a, Config{})
	sink.wantLogged(t, "cannot be reached")
	f.Secrets().Watch(theKey)
	sink.wantSecret(t, "ns/cert", "1")
}

func TestBackoff(t *testing.T) {
	b := backoff{first: 500 * time.Millisecond, last: 8 * time.Second}
	for attempt, ms := range []int{500, 1000, 2000, 4000, 8000, 8000, 8000} {
		middle := time.Duration(ms) * time.Millisecond
		seen := map[time.Duration]bool{}
		for range 50 {
			d := b.delay(attempt)
			seen[d] = true
			if d < middle/2 || d > middle*3/2 {
				t.Errorf("attempt %d: %v", attempt, d)
			}
		}
		if len(seen) < 40 {
			t.Error("all wait the same time")
		}
	}
	if d := b.delay(1 << 30); d > 12*time.Second || d < 4*time.Second {
		t.Errorf("after very many attempts: %v", d)
	}
}

func TestNew(t *testing.T) {
	for want, cfg := range map[string]Config{
		`cannot make cluster feeder: service account "a": allowed: NAMESPACE:NAME `:    {ServiceAccount: "a"},
		`cannot make cluster feeder: labels of routes "a b": `:                         {RouteLabels: "a b"},
		`cannot make cluster feeder: fields of routes "a": `:                           {RouteFields: "a"},
		`cannot make cluster feeder: labels of namespaces "=": `:                       {NamespaceLabels: "="},
		"cannot use kubeconfig /nonexistent: stat /nonexistent: no such file or direc": {Reach: Reach{Kubeconfig: "/nonexistent"}},
		"cannot reach a cluster: no kubeconfig given and not in a pod":                 {},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		if _, err := New(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
