package member

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"turnout/controller"
	"turnout/controller/shard"
	"turnout/controller/shard/api"
	"turnout/controller/source"
	"turnout/internal/problem"
)

// sinkhole is a source.Sink that keeps nothing.
type sinkhole struct{}

func (sinkhole) Event(...source.Event) {}
func (sinkhole) Synced()               {}

func key(name string) source.Key { return source.Key{Namespace: "ns", Name: name} }

// delivered is the event of a binding of a route.
func delivered(route, version string) source.Event {
	return source.Event{Kind: source.RouteBinding, Key: key(route + ".a"), Object: &api.RouteBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: route + ".a", ResourceVersion: version},
		Spec:       api.RouteBindingSpec{RouteNamespace: "ns", RouteName: route, Router: "a"},
	}}
}

// TestObserved: a replica says that it serves up to the first binding whose route it does not know, for a while.
func TestObserved(t *testing.T) {
	tr := newTracker(sinkhole{})
	now := time.Unix(1000, 0)
	tr.Event(delivered("one", "10"), delivered("two", "20"), delivered("three", "30"))
	tr.Event(source.Event{Kind: source.Route, Key: key("one")})
	if got := tr.observed(tr.version(), nil, now); got != 30 {
		t.Errorf("all routes are there: %d", got)
	}
	if got := tr.observed(30, []source.Key{key("two")}, now); got != 19 || !tr.waits() {
		t.Errorf("a route is missing: %d", got)
	}
	if got := tr.observed(30, []source.Key{key("two"), key("three")}, now.Add(missingPatience)); got != 29 {
		t.Errorf("a route is missing for long, another is not: %d", got)
	}
	if got := tr.observed(30, nil, now.Add(missingPatience)); got != 30 || tr.waits() {
		t.Errorf("none is missing any more: %d", got)
	}
	tr.Event(source.Event{Kind: source.RouteBinding, Key: key("two.a")})
	if got := tr.observed(30, []source.Key{key("two")}, now); got != 30 || tr.version() != 30 {
		t.Errorf("the binding is gone: %d, version %d", got, tr.version())
	}
}

// TestDemand: a route that leaves is asked for as long as a client may still have a connection on which it asked.
func TestDemand(t *testing.T) {
	d := demand{within: 10 * time.Second}
	begin := time.Unix(1000, 0)
	for _, c := range []struct {
		after    time.Duration
		requests uint64
		open     int64
		asked    bool
	}{
		{0, 5, 0, true}, {9 * time.Second, 5, 0, true}, {11 * time.Second, 5, 0, false},
		{12 * time.Second, 6, 0, true}, {21 * time.Second, 6, 0, true}, {23 * time.Second, 6, 0, false},
		{24 * time.Second, 6, 1, true}, {time.Hour, 6, 1, true}, {time.Hour + 9*time.Second, 6, 0, true}, {time.Hour + 11*time.Second, 6, 0, false},
	} {
		got := d.look([]controller.LeavingRoute{{Route: key("r"), Binding: key("r.a"), Requests: c.requests, Open: c.open}}, begin.Add(c.after))
		if (len(got) == 1 && got[0] == "ns/r.a") != c.asked || len(got) > 1 {
			t.Errorf("after %s: %v", c.after, got)
		}
	}
	if d.look(nil, begin); len(d.of) != 0 {
		t.Error("a route that has left is remembered")
	}
	many := make([]controller.LeavingRoute, shard.MostLeaving+1)
	for i := range many {
		many[i].Binding = key(strings.Repeat("x", i+1))
	}
	if got := d.look(many, begin); len(got) != shard.MostLeaving {
		t.Errorf("%d are named", len(got))
	}
}

func TestRate(t *testing.T) {
	var r rate
	begin := time.Unix(1000, 0)
	total, mean := uint64(0), int32(0)
	for i := range 200 {
		if i >= 100 {
			total += 7
		}
		mean = r.add(total, begin.Add(time.Duration(i)*time.Second))
		r.add(total+1000, begin.Add(time.Duration(i)*time.Second+time.Millisecond)) // too early
		if i == 99 && mean != 0 || i == 129 && mean != 3 {
			t.Errorf("mean %d at %d s", mean, i)
		}
	}
	if mean != 7 {
		t.Errorf("mean %d, want 7", mean)
	}
}

func TestNames(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "a": true, "shard-1.east": true, "A": false, "a/b": false, strings.Repeat("a", 64): false} {
		if _, err := ParseName(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, c := range [][3]string{{"", "", ""}, {"x=y", "", "x=y"}, {"", "a", "bound.turnout.router/a"}, {"x=y", "a", "x=y,bound.turnout.router/a"}} {
		if got := Labels(c[0], c[1]); got != c[2] {
			t.Errorf("%q on %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// fakeControl is a controller that has served all that it was given.
type fakeControl struct{ bound controller.Bound }

func (c *fakeControl) Sink(string) source.Sink                         { return sinkhole{} }
func (c *fakeControl) Wait(context.Context) error                      { return nil }
func (c *fakeControl) Bound(context.Context) (controller.Bound, error) { return c.bound, nil }

// routerAPI is an API server with the status of one Router, without a network.
type routerAPI struct {
	mu     sync.Mutex
	down   bool
	status int // of answers; 0: 200
	writes []api.RouterStatus
}

// RoundTrip implements http.RoundTripper.
func (a *routerAPI) RoundTrip(q *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, errors.New("the network is cut")
	}
	reply := func(status int, text string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}
	}
	if a.status != 0 {
		return reply(a.status, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`), nil
	}
	var body struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Status   api.RouterStatus  `json:"status"`
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		return nil, err
	}
	if q.Method != http.MethodPatch || q.URL.Path != "/apis/turnout.router/v1alpha1/routers/a/status" || q.Header.Get("Content-Type") != "application/apply-patch+yaml" ||
		q.URL.Query().Get("fieldManager") != "turnout-replica-p" || body.Metadata.Name != "a" {
		return nil, errors.New("not what is expected: " + q.Method + " " + q.URL.String())
	}
	a.writes = append(a.writes, body.Status)
	return reply(http.StatusOK, `{"apiVersion":"turnout.router/v1alpha1","kind":"Router","metadata":{"name":"a"}}`), nil
}

func (a *routerAPI) set(down bool, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down, a.status = down, status
}

// last returns how many writes there were, and the replicas of the last.
func (a *routerAPI) last() (int, []api.ReplicaStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.writes) == 0 {
		return 0, nil
	}
	return len(a.writes), a.writes[len(a.writes)-1].Replicas
}

// TestReports: a replica reports what is new soon, and that it lives now and then; it goes on through outages; its entry goes with it.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, control, complete, problems := new(routerAPI), new(fakeControl), make(chan struct{}), problem.NewList()
		client, err := api.NewClient(&rest.Config{Host: "http://api.test", Transport: server, QPS: -1})
		if err != nil {
			t.Fatal(err)
		}
		var requests atomic.Uint64
		m := &Member{
			cfg: Config{
				Router: "a", Replica: "p", Addresses: []string{"192.0.2.1"}, Controller: control, Complete: complete, Serving: func() error { return nil },
				Requests: requests.Load, Problems: problems,
			},
			log: zap.NewNop(), client: client, tracker: newTracker(control.Sink("")), demand: demand{within: time.Minute},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		want := func(what string, ready bool, observed string) {
			t.Helper()
			pass(2 * look)
			n, all := server.last()
			if n == 0 || len(all) != 1 || all[0].Name != "p" || all[0].Ready != ready || all[0].ObservedBindings != observed || !reflect.DeepEqual(all[0].Addresses, []string{"192.0.2.1"}) {
				t.Fatalf("%s: after %d writes %+v", what, n, all)
			}
		}
		want("before the first table", false, "0")
		close(complete)
		want("ready", true, "0")
		m.Sink().Event(delivered("one", "10"))
		want("a binding", true, "10")
		before, _ := server.last()
		if pass(10 * renewal); true {
			if n, _ := server.last(); n < before+9 || n > before+11 {
				t.Errorf("%d writes in %s while nothing happens", n-before, 10*renewal)
			}
		}
		server.set(true, 0)
		m.Sink().Event(delivered("two", "20"))
		if pass(time.Minute); problems.Counts()[problem.Source] != 1 {
			t.Error("an outage is no problem that is listed")
		}
		server.set(false, 0)
		pass(retryLast)
		want("after an outage", true, "20")
		if problems.Counts()[problem.Source] != 0 {
			t.Error("the problem stays")
		}
		m.Leave()
		want("leaving", false, "20")
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, all := server.last(); len(all) != 0 {
			t.Errorf("the entry stays: %+v", all)
		}
	})
}
