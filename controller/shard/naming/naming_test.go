package naming

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/shard/api"
	"turnout/controller/shard/zones"
	"turnout/controller/source"
	"turnout/internal/dns/zone"
)

// clock is a time that only a test changes.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// kept is a Keeper that runs until its test ends.
type kept struct {
	*Keeper
	t       *testing.T
	clock   *clock
	changes chan *Change
}

func keep(t *testing.T, cfg Config) *kept {
	t.Helper()
	k := &kept{t: t, clock: &clock{now: time.Unix(5000, 0)}, changes: make(chan *Change, 100)}
	cfg.Zones.Servers = []zone.Server{{Name: "ns1.example.com"}}
	cfg.Quiet, cfg.Pause, cfg.Now = time.Millisecond, time.Millisecond, k.clock.Now
	cfg.Publish = func(c *Change) error {
		k.changes <- c
		return nil
	}
	var err error
	if k.Keeper, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return k
}

// next waits for the next change, and returns what its zones are: serial, addresses and names of each.
func (k *kept) next() string {
	k.t.Helper()
	select {
	case c := <-k.changes:
		out := ""
		for _, z := range c.Set.All() {
			out += fmt.Sprintf("%s %d %d %d;", z.Origin(), z.Serial(), z.Addresses(), z.Names())
		}
		return out
	case <-time.After(30 * time.Second):
		k.t.Fatal("nothing was published")
		return ""
	}
}

func (k *kept) want(what, want string) {
	k.t.Helper()
	if got := k.next(); got != want {
		k.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// none fails if something was published. It waits for what comes before another change, which leads to a change in any case.
func (k *kept) none(what string, n int) {
	k.t.Helper()
	if len(k.changes) != 0 {
		k.t.Errorf("%s: something was published", what)
	}
	if got := k.Counts().Changes; got != uint64(n) {
		k.t.Errorf("%s: %d changes, want %d", what, got, n)
	}
}

func (k *kept) router(name string, renewed int64, ready ...bool) {
	o := &api.Router{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.RouterSpec{DNS: &api.RouterDNS{Domain: name + ".test"}}}
	for i, r := range ready {
		o.Status.Replicas = append(o.Status.Replicas, api.ReplicaStatus{
			Name: fmt.Sprint(name, "-", i), Ready: r, Addresses: []string{fmt.Sprintf("10.0.0.%d", i)}, Renewed: metav1.NewMicroTime(time.Unix(renewed, 0)),
		})
	}
	k.Event(source.Event{Kind: source.Router, Key: source.Key{Name: name}, Object: o})
}

func (k *kept) binding(name, router string, phase api.BindingPhase, dns string) {
	k.Event(source.Event{Kind: source.RouteBinding, Key: source.Key{Namespace: "ns", Name: name}, Object: &api.RouteBinding{
		Spec: api.RouteBindingSpec{Router: router, DNS: dns, Target: dns}, Status: api.RouteBindingStatus{Phase: phase},
	}})
}

func TestKeeps(t *testing.T) {
	k := keep(t, Config{})
	k.router("one", 1, true, true)
	k.router("two", 1, true)
	k.binding("a", "one", api.BindingServing, "ns-a.one.test")
	k.none("before all is known", 0)
	k.Synced()
	k.want("all", "one.test. 5000 2 1;two.test. 5000 1 1;")
	if got := k.Counts(); got != (Counts{Routers: 2, Bindings: 1, Changes: 1}) {
		t.Errorf("%+v", got)
	}
	k.clock.add(10 * time.Second)
	k.binding("a2", "two", api.BindingServing, "ns-a.one.test")
	k.want("on the way", "one.test. 5010 2 2;two.test. 5000 1 1;")
	k.binding("a", "one", api.BindingLeaving, "ns-a.one.test")
	k.want("moved", "one.test. 5011 2 2;two.test. 5000 1 1;")
	k.router("one", 2, false, true)
	k.want("a replica leaves", "one.test. 5012 1 2;two.test. 5000 1 1;")
	k.Event(source.Event{Kind: source.RouteBinding, Key: source.Key{Namespace: "ns", Name: "a2"}})
	k.want("the route is gone", "one.test. 5013 1 1;two.test. 5000 1 1;")
	k.Event(source.Event{Kind: source.Router, Key: source.Key{Name: "two"}})
	k.want("the router is gone", "one.test. 5013 1 1;")
	k.router("bad", 1, true)
	k.router("bad2", 1, true)
	k.want("others", "bad.test. 5010 1 1;bad2.test. 5010 1 1;one.test. 5013 1 1;")
}

// TestWhatChangesNothing: neither reports of replicas nor bindings where names lead anyway have zones made again.
func TestWhatChangesNothing(t *testing.T) {
	k := keep(t, Config{})
	k.router("one", 1, true, true)
	k.Synced()
	k.want("all", "one.test. 5000 2 1;")
	for i := range 100 {
		k.router("one", int64(i), true, true)
		k.binding(fmt.Sprint("b", i), "one", api.BindingServing, fmt.Sprintf("ns-b%d.one.test", i))
		k.binding(fmt.Sprint("p", i), "two", api.BindingPending, fmt.Sprintf("ns-b%d.one.test", i))
		k.binding(fmt.Sprint("l", i), "two", api.BindingLeaving, fmt.Sprintf("ns-b%d.one.test", i))
		k.binding(fmt.Sprint("c", i), "two", api.BindingServing, "www.example.com")
		k.Event(source.Event{Kind: source.RouteBinding, Key: source.Key{Namespace: "ns", Name: fmt.Sprint("c", i)}})
	}
	k.Event(source.Event{Kind: source.Route, Key: source.Key{Name: "x"}})
	k.mu.Lock()
	dirty := k.dirty
	k.mu.Unlock()
	if k.none("nothing of note", 1); dirty || k.Counts().Bindings != 100 {
		t.Errorf("dirty %v, %+v", dirty, k.Counts())
	}
	k.router("two", 1, true)
	k.want("another router", "one.test. 5000 2 1;two.test. 5000 1 1;")
	k.binding("b7", "two", api.BindingServing, "ns-b7.one.test")
	k.want("moved", "one.test. 5001 2 2;two.test. 5000 1 1;")
}

// TestSilence: a replica that has said nothing for too long is left out, unless all are silent.
func TestSilence(t *testing.T) {
	k := keep(t, Config{LostAfter: 50 * time.Millisecond})
	k.router("one", 1, true, true)
	k.Synced()
	k.want("both", "one.test. 5000 2 1;")
	k.clock.add(40 * time.Millisecond)
	o := *k.routers["one"].object
	o.Status.Replicas = append([]api.ReplicaStatus(nil), o.Status.Replicas...)
	o.Status.Replicas[0].Renewed = metav1.NewMicroTime(time.Unix(2, 0))
	k.Event(source.Event{Kind: source.Router, Key: source.Key{Name: "one"}, Object: &o})
	k.clock.add(20 * time.Millisecond)
	k.want("one is silent", "one.test. 5001 1 1;")
	k.clock.add(time.Hour)
	k.want("all are", "one.test. 8600 2 1;")
	k.router("one", 3, true, true)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dirty {
		t.Error("a word of both changes something")
	}
}

// TestTogether: many changes at once are published in few steps.
func TestTogether(t *testing.T) {
	k := keep(t, Config{})
	k.Synced()
	k.want("nothing", "")
	for i := range 1000 {
		k.router(fmt.Sprint("r", i), 1, true)
	}
	published := 0
	for len((<-k.changes).Set.All()) < 1000 {
		if published++; published > 500 {
			t.Fatal("each change is published by itself")
		}
	}
}

func TestEnds(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("nobody wants names")
	}
	broken := errors.New("broken")
	k, err := New(Config{Zones: zones.Config{}, Quiet: time.Millisecond, Publish: func(*Change) error { return broken }})
	if err != nil {
		t.Fatal(err)
	}
	k.Synced()
	if err := k.Run(context.Background()); !errors.Is(err, broken) {
		t.Error(err)
	}
}
