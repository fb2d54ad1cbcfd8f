package health

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
)

// tenant is endpoints of a namespace, and when each was checked.
type tenant struct {
	r      *rig
	checks []*balancer.Check
	last   []int64 // when each was checked last, of Loop.Now
	gap    int64   // the longest time between two checks of one
	done   int
}

// tenant makes n endpoints of a namespace, in services of so many, which have their first check in time.
func (r *rig) tenant(number byte, n, perService int) *tenant {
	w := &tenant{r: r, last: make([]int64, n)}
	for first := 0; first < n; first += perService {
		service := fmt.Sprint("service-", first)
		var list []balancer.Target
		for i := first; i < min(first+perService, n); i++ {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, number, byte(i >> 8), byte(i)}), 8080)
			list = append(list, balancer.Target{ID: addr.String(), Addr: testaddr.Of(addr), Weight: 1, Service: service})
			r.net.Accept(addr, func(*memnet.Peer) { w.checked(i) })
		}
		p := r.reg.Pool(fmt.Sprint(number, "/", service))
		p.Update(balancer.PoolConfig{Namespace: fmt.Sprint("tenant-", number), Check: time.Hour}, list)
		w.checks = append(w.checks, p.Checks()...)
	}
	return w
}

func (w *tenant) checked(i int) {
	now := w.r.k.cfg.Loop.Now()
	if w.last[i] != 0 {
		w.gap = max(w.gap, now-w.last[i])
	}
	w.last[i] = now
	w.done++
}

func (w *tenant) every(interval time.Duration) {
	for _, c := range w.checks {
		w.r.k.Check(c, interval)
	}
}

// kept tells of checks that did not come in their time since the beginning.
func (w *tenant) kept(what string, interval, slack time.Duration) {
	w.r.t.Helper()
	now := w.r.k.cfg.Loop.Now()
	for i, at := range w.last {
		if at == 0 {
			w.r.t.Fatalf("%s: endpoint %d was never checked", what, i)
		}
		w.gap = max(w.gap, now-at)
	}
	if most := interval + interval/10 + slack; time.Duration(w.gap) > most {
		w.r.t.Errorf("%s: %v between two checks of one endpoint, want at most %v", what, time.Duration(w.gap), most)
	}
}

// TestTenantsKeepTheirInterval: one tenant wants 10,000 checks a second, and the others do not notice.
func TestTenantsKeepTheirInterval(t *testing.T) {
	var bounds bound.Counts
	r := newRig(t, func(c *Config) { c.Bounds = &bounds })
	greedy := r.tenant(1, 10000, 500)
	a, b := r.tenant(2, 100, 10), r.tenant(3, 500, 250)
	greedy.every(second)
	a.every(5 * second)
	b.every(5 * second)
	r.net.Advance(40 * second)
	a.kept("a", 5*second, second/2)
	b.kept("b", 5*second, second/2)
	if greedy.done < 300*40 || greedy.done+a.done+b.done > 500*42 {
		t.Errorf("%d checks of the greedy one, %d of all, in 40 s", greedy.done, greedy.done+a.done+b.done)
	}
	if bounds.Of(bound.HealthChecks) < 5000 {
		t.Errorf("%d checks waited", bounds.Of(bound.HealthChecks))
	}
	// It is the same when it can be had all and is asked for again, and with services of one tenant.
	greedy.every(0)
	if before := greedy.done; true {
		r.net.Advance(10 * second)
		if greedy.done != before {
			t.Error("checked on")
		}
	}
}

// TestServicesTakeTurns: within a namespace, a service of few endpoints does not wait for one of many.
func TestServicesTakeTurns(t *testing.T) {
	r := newRig(t)
	const n = 5000
	many, few := r.tenant(1, n, n), r.tenant(1+100, 0, 1)
	addr := netip.MustParseAddrPort("10.200.0.1:8080")
	few.last = make([]int64, 1)
	r.net.Accept(addr, func(*memnet.Peer) { few.checked(0) })
	p := r.reg.Pool("few")
	p.Update(balancer.PoolConfig{Namespace: "tenant-1", Check: time.Hour}, []balancer.Target{
		{ID: "one", Addr: testaddr.Of(addr), Weight: 1, Service: "few"}, {ID: "two", Addr: testaddr.Parse("10.200.0.2:8080"), Weight: 1, Service: "few"},
	})
	few.checks = p.Checks()[:1]
	many.every(second)
	few.every(second)
	r.net.Advance(30 * second)
	few.kept("the service of few", second, second/2)
	if many.done < 400*30 {
		t.Errorf("%d checks of the others", many.done)
	}
}

// TestHangingChecksLeavePlaces: endpoints that accept and hang by turns occupy no more than half of the places for those that are well.
func TestHangingChecksLeavePlaces(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxRunning, c.Fall = 8, 1000 })
	bad, good := r.tenant(1, 200, 200), r.tenant(2, 50, 50)
	for _, c := range bad.checks {
		r.net.HangDial(c.Endpoint().Addr())
	}
	bad.every(10 * second)
	good.every(2 * second)
	for range 600 {
		r.net.Advance(second / 20)
		if n := r.k.groups[well].due.shares["tenant-1"]; n != nil && n.running > 4 {
			t.Fatalf("%d of 8 places are one tenant's", n.running)
		}
	}
	good.kept("the good", 2*second, second/2)
}

// TestManyTenants: all of them at the default interval want more than there is, and each gets its share.
func TestManyTenants(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MostPerSecond = 50 })
	var all []*tenant
	for i := range byte(20) {
		all = append(all, r.tenant(i+1, 25*int(i%2*9+1), 1000)) // 25 or 250 endpoints: 5 or 50 checks a second
	}
	for _, w := range all {
		w.every(5 * second)
	}
	r.net.Advance(60 * second)
	before := make([]int, len(all))
	for i, w := range all {
		before[i] = w.done
	}
	r.net.Advance(100 * second)
	for i, w := range all {
		if done := w.done - before[i]; done < 200 || done > 300 { // a twentieth of 50 a second
			t.Errorf("tenant %d: %d checks in 100 s", i, done)
		}
	}
	for _, w := range all {
		w.every(0)
	}
	if r.net.Advance(20 * second); !r.idle() || r.waiting() != 0 {
		t.Errorf("%d wait at the end", r.waiting())
	}
}
