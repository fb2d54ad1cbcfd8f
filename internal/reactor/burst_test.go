package reactor

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/internal/traffic"
)

// burstRig is a loop with a client whose byte arrives when the first entry of a queue has been
// handled.
type burstRig struct {
	net      *memnet.Network
	loop     *Loop
	conns    []*Conn // of filled, with input that waits
	client   *memnet.Peer
	deferred int
	order    []int
	heard    int // entries that were handled before the client's byte
}

const burstQueue = 2000

func newBurstRig(t *testing.T, seed uint64) *burstRig {
	r := &burstRig{net: memnet.New(seed), heard: -1}
	r.loop = NewOn(r.net, Config{Deferred: func() { r.deferred++ }})
	ln := listen(t, r.loop, memAddr, func(c *Conn) Handler {
		c.Establish()
		return &hooks{data: func(_ *Conn, p []byte) int { r.heard = len(r.order); return len(p) }}
	})
	r.client = r.net.Connect(ln.Addr())
	r.net.Run()
	return r
}

// handled notes an entry of the queue.
func (r *burstRig) handled(i int) {
	if r.order = append(r.order, i); len(r.order) == 1 {
		r.client.Write([]byte("x"))
	}
}

// fillConns accepts connections, each with a byte of input that it has not consumed. Once resumed,
// or closed, a connection counts as handled.
func (r *burstRig) fillConns(t *testing.T) {
	t.Helper()
	ln := listen(t, r.loop, netip.MustParseAddrPort("192.0.2.1:81"), func(c *Conn) Handler {
		i := len(r.conns)
		r.conns = append(r.conns, c)
		c.Establish()
		seen := false
		return &hooks{
			data: func(c *Conn, p []byte) int {
				if !seen {
					seen = true
					c.Pause()
					return 0
				}
				r.handled(i)
				return len(p)
			},
			closed: func(*Conn, error) { r.handled(i) },
		}
	})
	for range burstQueue {
		r.net.Connect(ln.Addr()).Write([]byte("x"))
	}
	r.net.Run()
	if len(r.conns) != burstQueue {
		t.Fatalf("%d connections were accepted", len(r.conns))
	}
}

// burstQueues fill a queue of the loop in one step.
var burstQueues = map[string]func(t *testing.T, r *burstRig){
	"timers": func(_ *testing.T, r *burstRig) {
		for i := range burstQueue {
			r.loop.NewTimer(func() { r.handled(i) }).Reset(time.Minute)
		}
		r.net.Advance(2 * time.Minute)
	},
	"posted functions": func(_ *testing.T, r *burstRig) {
		for i := range burstQueue {
			r.loop.Post(func() { r.handled(i) })
		}
	},
	"ready connections": func(t *testing.T, r *burstRig) {
		r.fillConns(t)
		r.loop.Post(func() {
			for _, c := range r.conns {
				c.Resume()
			}
		})
	},
	"closings": func(t *testing.T, r *burstRig) {
		r.fillConns(t)
		r.loop.Post(func() {
			for _, c := range r.conns {
				c.CloseNow(false)
			}
		})
	},
	"connections of a port": func(t *testing.T, r *burstRig) {
		r.fillConns(t)
		p := &Port{Sessions: new(traffic.Sessions)}
		for _, c := range r.conns {
			c.CameBy(p)
		}
		r.loop.Post(func() { r.loop.Cut(p) })
	},
	"a backlog": func(_ *testing.T, r *burstRig) {
		all := make([]int, burstQueue)
		for i := range all {
			all[i] = i
		}
		r.loop.Post(func() { InBursts(r.loop, all, r.handled) })
	},
}

// unorderedQueues have no order: timers of one tick, the connections of a port.
var unorderedQueues = map[string]bool{"timers": true, "connections of a port": true}

// TestIterationHandlesABurst: a queue that one event has filled delays other connections by a burst
// of it. All entries are handled, in their order.
func TestIterationHandlesABurst(t *testing.T) {
	for name, fill := range burstQueues {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				r := newBurstRig(t, seed)
				fill(t, r)
				r.net.Run()
				if unorderedQueues[name] {
					slices.Sort(r.order)
				}
				// The byte arrives one iteration later, and an iteration delivers closings twice.
				if r.heard < 1 || r.heard > 3*burstEntries {
					t.Errorf("seed %d: another connection was served after %d entries", seed, r.heard)
				}
				if r.deferred == 0 {
					t.Error("Deferred was not called")
				}
				if len(r.order) != burstQueue || !slices.IsSorted(r.order) {
					t.Errorf("seed %d: %d entries were handled; in order: %v", seed, len(r.order), slices.IsSorted(r.order))
				}
			}
		})
	}
}

// TestBurstIsBoundedByTime: entries that take long end a burst after a few of them.
func TestBurstIsBoundedByTime(t *testing.T) {
	n := memnet.New(0)
	clock := &heldEngine{}
	l := NewOn(n, Config{})
	clock.Engine, l.eng = l.eng, clock
	var most, inIteration int
	iteration := l.Iteration()
	for range 100 {
		l.Post(func() {
			if iteration != l.Iteration() {
				iteration, inIteration = l.Iteration(), 0
			}
			inIteration++
			most = max(most, inIteration)
			clock.late += time.Duration(burstTime) / burstCheck
		})
	}
	n.Run()
	if most != 2*burstCheck {
		t.Errorf("%d slow functions were called in one iteration, want %d", most, 2*burstCheck)
	}
}

// TestDueTimersKeepTheirOrder: timers of many ticks that are due together fire in bursts, ordered
// by their ticks, while others are armed, stopped and moved.
func TestDueTimersKeepTheirOrder(t *testing.T) {
	l := testWheel()
	rng := rand.New(rand.NewPCG(3, 4))
	fired, stopped, last := 0, 0, int64(0)
	var all []*Timer
	for range 3 * burstMoves {
		var tm *Timer
		tm = l.NewTimer(func() {
			fired++
			if at := tickOf(tm.when); at < last {
				t.Fatalf("a timer of tick %d fired after one of tick %d", at, last)
			} else {
				last = at
			}
		})
		tm.Reset(time.Duration(rng.Int64N(int64(10 * time.Minute))))
		all = append(all, tm)
	}
	l.clock += int64(time.Hour)
	for next := 0; l.wheel.behind(l.clock >> tickShift); {
		before := fired
		l.fireTimers()
		if fired-before > burstEntries {
			t.Fatalf("%d timers fired in one iteration", fired-before)
		}
		if tm := all[next%len(all)]; tm.Active() && next%2 == 0 {
			tm.Stop()
			stopped++
		}
		next += 7
	}
	if fired+stopped != len(all) {
		t.Errorf("%d timers fired and %d were stopped, of %d", fired, stopped, len(all))
	}
	if _, ok := l.nextTimer(); ok {
		t.Error("an iteration is wanted for no timer")
	}
}

// TestTimersAreMovedInBursts: the wheel reaches a slot with many timers of later ticks, and moves a
// part of them in each iteration.
func TestTimersAreMovedInBursts(t *testing.T) {
	l := testWheel()
	fired := 0
	for range 2*burstMoves + 1 {
		l.NewTimer(func() { fired++ }).Reset(time.Hour)
	}
	at, _ := l.nextTimer()
	l.clock = at
	for i := range 3 {
		l.fireTimers()
		if midway := l.wheel.midway(); midway != (i < 2) || fired != 0 {
			t.Errorf("after %d iterations: midway %v, %d fired", i+1, midway, fired)
		}
		if at, ok := l.nextTimer(); !ok || (at <= l.clock) != (i < 2) {
			t.Errorf("after %d iterations the next one is wanted at %d, now is %d", i+1, at, l.clock)
		}
	}
	l.to(l.clock + int64(2*time.Hour))
	if fired != 2*burstMoves+1 {
		t.Errorf("%d fired", fired)
	}
}

// TestBacklogGoesOnAfterAPanic: the entries after one that panics are handled.
func TestBacklogGoesOnAfterAPanic(t *testing.T) {
	n := memnet.New(0)
	panics := 0
	l := NewOn(n, Config{Panicked: func(*Loop, any, []byte) { panics++ }})
	left, handled := 3*burstEntries, 0
	b := l.NewBacklog(func() bool {
		if left == 0 {
			return false
		}
		if left--; left%10 == 0 {
			panic("an entry")
		}
		handled++
		return true
	})
	l.Post(b.Run)
	l.Post(b.Run)
	n.Run()
	if want := 3 * burstEntries; left != 0 || handled+panics != want || panics != (want+9)/10 {
		t.Errorf("%d entries are left, %d were handled, %d panicked", left, handled, panics)
	}
}
