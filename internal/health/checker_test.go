package health

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"turnout/balancer"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/internal/testkit/testaddr"
)

const second = time.Second

// rig is a checker in virtual time and the endpoints of a registry.
type rig struct {
	t       *testing.T
	net     *memnet.Network
	k       *Checker
	reg     *balancer.Registry
	pool    *balancer.Pool
	targets []balancer.Target
	http    balancer.HTTPCheck
	changes []string // what Changed was called with
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	r := &rig{t: t, net: memnet.New(1), reg: balancer.NewRegistry()}
	t.Cleanup(r.net.Close)
	r.pool = r.reg.Pool("ns/app")
	// A single server is not checked.
	r.targets = []balancer.Target{{ID: "another", Addr: testaddr.Parse("10.255.0.1:8080"), Weight: 1}}
	cfg := Config{Loop: reactor.NewOn(r.net, reactor.Config{}), Seed: 7, Changed: func(c *balancer.Check, up bool, why Result) {
		r.changes = append(r.changes, fmt.Sprint(c.Endpoint().Addr().Addr(), " ", up, " ", why.Outcome))
	}}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if r.k, err = NewChecker(cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

// endpoint is the check of the n-th endpoint, which accepts connections.
func (r *rig) endpoint(n int, tls *balancer.TLS) *balancer.Check {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), 8080)
	r.net.Accept(addr, nil)
	return r.check(addr, tls)
}

// check is the check of another endpoint.
func (r *rig) check(addr netip.AddrPort, tls *balancer.TLS) *balancer.Check {
	r.targets = append(r.targets, balancer.Target{ID: addr.String(), Addr: testaddr.Of(addr), Weight: 1, TLS: tls})
	r.pool.Update(balancer.PoolConfig{Check: time.Hour, HTTPCheck: r.http}, r.targets)
	servers := r.pool.Servers()
	return servers[len(servers)-1].Check()
}

// expect compares what Changed was called with since the last call.
func (r *rig) expect(what string, want ...string) {
	r.t.Helper()
	if !slices.Equal(r.changes, want) {
		r.t.Errorf("%s: reported %q, want %q", what, r.changes, want)
	}
	r.changes = nil
}

// counts are the checks that have ended, and those of them that failed.
func (r *rig) counts() (done, failed uint64) {
	return r.k.cfg.Stats.Checks.Load(), r.k.cfg.Stats.Failed.Load()
}

func (r *rig) running() int { return r.k.groups[well].due.running + r.k.groups[unwell].due.running }

func (r *rig) waiting() (n int) {
	for i := range r.k.groups {
		for _, s := range r.k.groups[i].due.queue {
			for _, l := range s.queue {
				n += len(l.checks)
			}
		}
	}
	return n
}

// idle reports that nothing is remembered of checks that waited or ran.
func (r *rig) idle() bool {
	return len(r.k.groups[well].due.shares)+len(r.k.groups[unwell].due.shares) == 0
}

var errRefused = errors.New("connection refused")

func TestFallAndRise(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(1, nil)
	r.k.Check(e, 5*second)
	r.net.Advance(60 * second)
	r.expect("while it answers")
	if done, failed := r.counts(); done < 11 || done > 14 || failed != 0 {
		t.Errorf("%d checks in 60 s, %d failed", done, failed)
	}

	r.net.RefuseDial(e.Endpoint().Addr(), errRefused)
	r.net.Advance(9 * second) // at most two checks
	r.expect("after less than three failures")
	r.net.Advance(8 * second)
	r.expect("after three failures", "10.0.0.1 false L4CON")
	r.net.Advance(30 * second)
	r.expect("while it stays down")

	r.net.AllowDial(e.Endpoint().Addr())
	r.net.Advance(4 * second)
	r.expect("after at most one success")
	r.net.Advance(8 * second)
	r.expect("after two successes", "10.0.0.1 true L4OK")
}

// TestExhausted: a check for which there is no descriptor says nothing about the endpoint, and the next one comes in its time.
func TestExhausted(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(1, nil)
	r.k.Check(e, 5*second)
	r.net.RefuseDial(e.Endpoint().Addr(), syscall.EMFILE)
	r.net.Advance(60 * second)
	r.expect("without descriptors")
	if done, failed := r.counts(); done != 0 || failed != 0 || r.running() != 0 {
		t.Errorf("%d checks are counted, %d failed, %d run", done, failed, r.running())
	}
	r.net.AllowDial(e.Endpoint().Addr())
	r.net.Advance(6 * second)
	if done, _ := r.counts(); done == 0 {
		t.Error("no check afterwards")
	}
}

// TestFlapping: a result of the other kind begins the count anew.
func TestFlapping(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(1, nil)
	r.k.Check(e, 5*second)
	r.net.Advance(5 * second)
	for range 20 {
		r.net.RefuseDial(e.Endpoint().Addr(), errRefused)
		for _, before := r.counts(); ; {
			if _, failed := r.counts(); failed == before+2 {
				break
			}
			r.net.Advance(second / 2)
		}
		r.net.AllowDial(e.Endpoint().Addr())
		r.net.Advance(6 * second)
	}
	r.expect("two failures of three, again and again")
}

func TestHangingConnect(t *testing.T) {
	r := newRig(t)
	slow, quick := r.endpoint(1, nil), r.endpoint(2, nil)
	r.net.HangDial(slow.Endpoint().Addr())
	r.net.HangDial(quick.Endpoint().Addr())
	r.k.Check(slow, 60*second) // the connect timeout of 5 s is shorter
	r.k.Check(quick, second)   // the interval is
	r.net.Advance(7 * second)
	r.expect("hanging connects", "10.0.0.2 false L4TOUT")
	r.net.Advance(200 * second)
	r.expect("hanging connects, longer", "10.0.0.1 false L4TOUT")
}

func TestHandshake(t *testing.T) {
	id, err := balancer.NewTLS(balancer.TLSConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var outcome func(done func(error))
	var asked int
	r := newRig(t, func(c *Config) {
		c.Secure = func(_ *reactor.Conn, got *balancer.TLS, done func(error)) {
			if got != id {
				t.Errorf("handshake with %v", got)
			}
			asked++
			outcome(done)
		}
	})
	e := r.endpoint(1, id)
	later := func(err error) func(func(error)) {
		return func(done func(error)) { r.net.After(second, func() { done(err) }) }
	}
	outcome = later(nil)
	r.k.Check(e, 5*second)
	r.net.Advance(30 * second)
	r.expect("good handshakes")
	if asked < 4 {
		t.Errorf("%d handshakes", asked)
	}
	outcome = later(errors.New("certificate expired"))
	r.net.Advance(30 * second)
	r.expect("bad handshakes", "10.0.0.1 false L6RSP")
	outcome = later(nil)
	r.net.Advance(30 * second)
	r.expect("good ones again", "10.0.0.1 true L6OK")
	var late []func(error)
	outcome = func(done func(error)) { late = append(late, done) } // no answer
	r.net.Advance(40 * second)
	r.expect("handshakes that hang", "10.0.0.1 false L6TOUT")
	for _, done := range late {
		done(nil) // after the end of patience
	}
	r.expect("answers that come too late")

	plain := newRig(t)
	plain.k.Check(plain.endpoint(1, id), second)
	plain.net.Advance(10 * second)
	plain.expect("TLS without a client", "10.0.0.1 false L6RSP")
}

func TestStop(t *testing.T) {
	r := newRig(t)
	up, down, hanging := r.endpoint(1, nil), r.endpoint(2, nil), r.endpoint(3, nil)
	r.net.RefuseDial(down.Endpoint().Addr(), errRefused)
	r.net.HangDial(hanging.Endpoint().Addr())
	for _, e := range []*balancer.Check{up, down, hanging} {
		r.k.Check(e, 4*second)
	}
	r.net.Advance(15 * second)
	r.expect("before", "10.0.0.2 false L4CON")
	for _, e := range []*balancer.Check{up, down, hanging} {
		r.k.Check(e, 0)
		r.k.Check(e, 0)
	}
	r.expect("what is not checked is up", "10.0.0.2 true UNK")
	done, _ := r.counts()
	r.net.Advance(60 * second)
	if after, _ := r.counts(); after != done || r.k.Len() != 0 || r.running() != 0 {
		t.Errorf("%d checks after the end, %d endpoints, %d running", after-done, r.k.Len(), r.running())
	}
	r.expect("after the end")
}

func TestIntervalChanges(t *testing.T) {
	r := newRig(t)
	e := r.endpoint(1, nil)
	r.k.Check(e, 1000*second)
	r.net.Advance(second)
	r.k.Check(e, 2*second)
	r.k.Check(e, 2*second)
	r.net.Advance(20 * second)
	if done, _ := r.counts(); done < 9 || done > 12 {
		t.Errorf("%d checks in 20 s at an interval of 2 s", done)
	}
	r.k.Check(e, 20*second)
	before, _ := r.counts()
	r.net.Advance(60 * second)
	if done, _ := r.counts(); done-before > 5 {
		t.Errorf("%d checks in 60 s at an interval of 20 s", done-before)
	}
}

// TestSpread: endpoints that are known at once are not checked at once, and never more
// than MaxRunning at a time.
func TestSpread(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxRunning = 5 })
	const n = 100
	for i := range n {
		e := r.endpoint(i+1, nil)
		r.net.HangDial(e.Endpoint().Addr())
		r.k.Check(e, 10*second)
	}
	most := 0
	for range 100 {
		r.net.Advance(second / 10)
		most = max(most, r.running())
		if r.running() > 5 {
			t.Fatalf("%d checks run", r.running())
		}
	}
	if most != 3 || r.waiting() == 0 { // those of one namespace leave as many places as they have
		t.Errorf("at most %d checks ran, %d wait", most, r.waiting())
	}
	for i := range n {
		r.net.AllowDial(r.targets[i+1].Addr.AddrPort())
	}
	r.net.Advance(100 * second) // each is checked, in order
	if done, _ := r.counts(); done < 10*n-n {
		t.Errorf("%d checks of %d endpoints in ten intervals", done, n)
	}
	if r.waiting() > 0 {
		t.Errorf("%d still wait", r.waiting())
	}

	spread := newRig(t)
	for i := range n {
		spread.k.Check(spread.endpoint(i+1, nil), 10*second)
	}
	for range 10 {
		before, _ := spread.counts()
		spread.net.Advance(second)
		if done, _ := spread.counts(); done-before < 2 || done-before > 25 {
			t.Errorf("%d of %d first checks in one of ten seconds", done-before, n)
		}
	}
}

// TestJitter: endpoints that are checked at the same moment are not for long.
func TestJitter(t *testing.T) {
	r := newRig(t)
	const n = 50
	for i := range n {
		r.k.Check(r.endpoint(i+1, nil), 10*second)
	}
	for ck := range r.k.checks.All() {
		r.k.scheduleAt(ck, r.k.cfg.Loop.Now()+int64(second)) // all at once
	}
	r.net.Advance(35 * second) // the fifth round begins at 37 s or later
	most := uint64(0)
	for range 150 {
		before, _ := r.counts()
		r.net.Advance(second / 10)
		done, _ := r.counts()
		most = max(most, done-before)
	}
	if done, _ := r.counts(); most > n/4 || done < 4*n {
		t.Errorf("%d of %d checks come within a tenth of a second, %d in all", most, n, done)
	}
}

// TestMostPerSecond: more endpoints than can be checked at their intervals are checked less often, all of them, but those that
// failed are looked at again in their time.
func TestMostPerSecond(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MostPerSecond = 10 })
	const n = 100
	endpoints := make([]*balancer.Check, n)
	for i := range endpoints {
		endpoints[i] = r.endpoint(i+1, nil)
		r.k.Check(endpoints[i], 2*second) // which asks for 50 per second
	}
	for range 6 { // from the first round on
		before, _ := r.counts()
		r.net.Advance(5 * second)
		if done, _ := r.counts(); done-before > 90 {
			t.Errorf("%d checks in 5 s, at most about 10 per second", done-before)
		}
	}
	before, _ := r.counts()
	r.net.Advance(100 * second)
	if done, _ := r.counts(); done-before < 900 || done-before > 1100 {
		t.Errorf("%d checks in 100 s, at most 10 per second", done-before)
	}
	r.net.RefuseDial(endpoints[0].Endpoint().Addr(), errRefused)
	r.net.Advance(11*second + 2*2*2*second) // until it is its turn, and then three in a row
	r.expect("one fails", "10.0.0.1 false L4CON")
	r.net.AllowDial(endpoints[0].Endpoint().Addr())
	r.net.Advance(2 * 3 * second)
	r.expect("it is well again", "10.0.0.1 true L4OK")
	for _, e := range endpoints {
		r.net.RefuseDial(e.Endpoint().Addr(), errRefused)
	}
	r.net.Advance(60 * second)
	before, _ = r.counts()
	r.net.Advance(100 * second)
	if done, _ := r.counts(); done-before < 900 || done-before > 1100 {
		t.Errorf("%d checks in 100 s when all fail", done-before)
	}
	for i, e := range endpoints {
		if r.k.Check(e, 4*second); i%2 == 0 {
			r.k.Check(e, 0)
		}
	}
	for _, e := range endpoints {
		r.k.Check(e, 0)
	}
	if !r.idle() || r.running()+r.waiting() != 0 {
		t.Errorf("%d run and %d wait at the end", r.running(), r.waiting())
	}
}

// TestSecureChecksCountMore: one over TLS counts for several, so a quarter of the bound begins in a second.
func TestSecureChecksCountMore(t *testing.T) {
	r := newRig(t, func(c *Config) {
		c.MostPerSecond = 20
		c.Secure = func(_ *reactor.Conn, _ *balancer.TLS, done func(error)) { done(nil) }
	})
	const n = 40
	for i := range n {
		r.k.Check(r.endpoint(i+1, &balancer.TLS{}), 2*second) // which asks for 20 per second, that is 80
	}
	r.net.Advance(30 * second)
	before, _ := r.counts()
	r.net.Advance(100 * second)
	if done, _ := r.counts(); done-before < 450 || done-before > 550 {
		t.Errorf("%d checks in 100 s, want about 5 per second", done-before)
	}
}

// TestAfterAStandstill: when all checks are due because the process or the machine stood still, they begin no faster than others,
// and go on to.
func TestAfterAStandstill(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MostPerSecond = 20 })
	const n = 200
	for i := range n {
		r.k.Check(r.endpoint(i+1, nil), 10*second)
	}
	r.net.Advance(30 * second)
	for ck := range r.k.checks.All() {
		if ck.turn == nil {
			r.k.scheduleAt(ck, r.k.cfg.Loop.Now())
		}
	}
	first, _ := r.counts()
	for range 60 {
		before, _ := r.counts()
		r.net.Advance(second)
		if done, _ := r.counts(); done-before > 31 {
			t.Errorf("%d checks in a second, at most 20 and half of that at once", done-before)
		}
		if before-first < n/2 && r.waiting() == 0 {
			t.Error("none waits, though most have not come")
		}
	}
	if done, _ := r.counts(); done-first < 55*20 {
		t.Errorf("%d checks in a minute", done-first)
	}
}

func TestCheckerConfig(t *testing.T) {
	r := newRig(t)
	good := r.k.cfg
	for what, breakIt := range map[string]func(*Config){
		"no loop":  func(c *Config) { c.Loop = nil },
		"nobody":   func(c *Config) { c.Changed = nil },
		"negative": func(c *Config) { c.Fall = -1 },
	} {
		cfg := good
		breakIt(&cfg)
		if _, err := NewChecker(cfg); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestCheckIsSmall: a check that waits for the next one, as most do, is that and its place in the schedule.
func TestCheckIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(check{}); size > 48 {
		t.Errorf("a check has %d bytes, want at most 48", size)
	}
	r := newRig(t)
	const n = 200
	for i := range n {
		r.k.Check(r.endpoint(i+1, nil), 10*second)
	}
	r.net.Advance(35 * second)
	turns := 0
	for ck := range r.k.checks.All() {
		if ck.turn != nil {
			turns++
		} else if ck.slot == unscheduled {
			t.Error("a check neither waits nor runs, and is not scheduled")
		}
	}
	if len(r.k.idle) == 0 || turns+len(r.k.idle) > n/2 {
		t.Errorf("%d checks have a turn, %d turns are kept, want some and fewer than %d", turns, len(r.k.idle), n/2)
	}
}
