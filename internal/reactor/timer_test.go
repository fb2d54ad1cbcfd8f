package reactor

import (
	"math/rand/v2"
	"testing"
	"time"

	"turnout/internal/reactor/engine"
)

const tick = 1 << tickShift

// stoppedClock is an engine of which only the clock is used, which stands still.
type stoppedClock struct{ engine.Engine }

func (stoppedClock) Now() int64 { return 1 }

// testWheel is a loop without sockets: the test moves its clock.
func testWheel() *Loop {
	l := &Loop{running: true, clock: 12345, eng: stoppedClock{}}
	l.wheel.init(l.clock)
	l.self.loop, l.recovering.loop = l, l
	return l
}

// to moves the clock forward.
func (l *Loop) to(at int64) {
	l.clock = at
	for l.wheel.behind(at >> tickShift) {
		l.fireTimers()
	}
}

func TestTimerNeverEarlyAndNotLate(t *testing.T) {
	l := testWheel()
	rng := rand.New(rand.NewPCG(1, 2))
	due := map[*Timer]int64{}
	fired := 0
	for range 5000 {
		d := time.Duration(rng.Int64N(1 << (20 + rng.IntN(28)))) // up to more than three days
		var tm *Timer
		tm = l.NewTimer(func() {
			fired++
			if at := due[tm]; l.clock < at || l.clock > at+tick {
				t.Fatalf("due at %d, fired at %d", at, l.clock)
			}
			if tm.Active() {
				t.Fatal("active while it fires")
			}
			delete(due, tm)
		})
		due[tm] = l.clock + int64(d)
		tm.Reset(d)
	}
	for len(due) > 0 {
		at, ok := l.nextTimer()
		if !ok || at <= l.clock {
			t.Fatalf("next iteration wanted at %d, %v; now %d", at, ok, l.clock)
		}
		l.to(at)
	}
	if _, ok := l.nextTimer(); ok || fired != 5000 {
		t.Errorf("%d fired; an iteration wanted: %v", fired, ok)
	}
}

func TestTimerOrder(t *testing.T) {
	l := testWheel()
	var order []int
	for _, ms := range []int{500, 20, 90000, 40, 300, 0} {
		l.NewTimer(func() { order = append(order, ms) }).Reset(time.Duration(ms) * time.Millisecond)
	}
	l.to(l.clock + int64(time.Hour)) // all in one advance, as after a long iteration
	if len(order) != 6 {
		t.Fatalf("fired %v", order)
	}
	for i, ms := range []int{0, 20, 40, 300, 500, 90000} {
		if order[i] != ms {
			t.Fatalf("order %v", order)
		}
	}
}

func TestTimerResetToLaterIsLazy(t *testing.T) {
	l := testWheel()
	fired := int64(0)
	tm := l.NewTimer(func() { fired = l.clock })
	tm.Reset(time.Second)
	slot, filed := tm.slot, tm.tick
	var due int64
	for range 100 {
		l.to(l.clock + int64(5*time.Millisecond))
		tm.Reset(time.Second)
		due = l.clock + int64(time.Second)
	}
	if tm.slot != slot || tm.tick != filed {
		t.Error("moving it to later filed it anew")
	}
	for fired == 0 {
		at, ok := l.nextTimer()
		if !ok {
			t.Fatal("timer lost")
		}
		l.to(at)
	}
	if fired < due || fired > due+tick {
		t.Errorf("fired at %d, due at %d", fired, due)
	}
}

func TestTimerResetToEarlier(t *testing.T) {
	l := testWheel()
	fired := int64(0)
	tm := l.NewTimer(func() { fired = l.clock })
	tm.Reset(time.Hour)
	tm.Reset(10 * time.Millisecond)
	due := l.clock + int64(10*time.Millisecond)
	at, _ := l.nextTimer()
	l.to(at)
	if fired < due || fired > due+tick {
		t.Errorf("fired at %d, due at %d", fired, due)
	}
}

func TestTimerStop(t *testing.T) {
	l := testWheel()
	count := 0
	tm := l.NewTimer(func() { count++ })
	tm.Stop() // never armed
	tm.Reset(time.Minute)
	if !tm.Active() {
		t.Error("not active after Reset")
	}
	tm.Stop()
	tm.Stop()
	if _, ok := l.nextTimer(); ok || tm.Active() {
		t.Error("a stopped timer wants an iteration")
	}
	l.to(l.clock + int64(time.Hour))
	if count != 0 {
		t.Error("a stopped timer fired")
	}
	tm.Reset(time.Second)
	l.to(l.clock + int64(2*time.Second))
	if count != 1 {
		t.Errorf("fired %d times after Stop and Reset", count)
	}
}

// Timers of one tick may stop and arm each other while they fire.
func TestTimersStopEachOther(t *testing.T) {
	l := testWheel()
	fired := 0
	var a, b *Timer
	a = l.NewTimer(func() { fired++; b.Stop() })
	b = l.NewTimer(func() { fired++; a.Stop() })
	a.Reset(time.Second)
	b.Reset(time.Second)
	l.to(l.clock + int64(2*time.Second))
	if fired != 1 {
		t.Errorf("%d fired, want the one that stopped the other", fired)
	}
	again := 0
	a = l.NewTimer(func() { fired++; b.Reset(time.Second) })
	b = l.NewTimer(func() { again++; a.Reset(0) })
	fired = 0
	a.Reset(time.Second)
	l.to(l.clock + int64(1100*time.Millisecond))
	l.to(l.clock + int64(1100*time.Millisecond))
	l.to(l.clock + tick)
	if fired != 2 || again != 1 {
		t.Errorf("fired %d and %d times", fired, again)
	}
}

func TestTimerResetAllocatesNothing(t *testing.T) {
	l := testWheel()
	tm := l.NewTimer(func() {})
	d := time.Second
	if n := testing.AllocsPerRun(1000, func() {
		tm.Reset(d)
		d = d*7%time.Hour + time.Millisecond
		l.to(l.clock + int64(50*time.Millisecond))
		tm.Stop()
		tm.Reset(d)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// On the real clock: a timer armed inside the loop, and one armed before it runs.
func TestTimerOnLoop(t *testing.T) {
	l := newTestLoop(t, Config{})
	early := make(chan time.Duration, 1)
	start := time.Now()
	l.NewTimer(func() { early <- time.Since(start) }).Reset(30 * time.Millisecond)
	runLoop(t, l)
	if d := get(t, "timer", early); d < 30*time.Millisecond {
		t.Errorf("fired after %v", d)
	}
	fired := make(chan int64, 1)
	on(t, l, func() {
		begin := l.Now()
		l.NewTimer(func() { fired <- l.Now() - begin }).Reset(15 * time.Millisecond)
	})
	if d := get(t, "timer", fired); d < int64(15*time.Millisecond) {
		t.Errorf("fired after %v", time.Duration(d))
	}
}

func BenchmarkTimerReset(b *testing.B) {
	l := testWheel()
	tm := l.NewTimer(func() {})
	tm.Reset(time.Second)
	for b.Loop() {
		l.clock += 1000
		tm.Reset(time.Second)
	}
}

func BenchmarkTimerStopReset(b *testing.B) {
	l := testWheel()
	tm := l.NewTimer(func() {})
	for b.Loop() {
		l.clock += 1000
		tm.Reset(time.Second)
		tm.Stop()
	}
}

func BenchmarkTimerFire(b *testing.B) {
	l := testWheel()
	tm := l.NewTimer(func() {})
	for b.Loop() {
		tm.Reset(0)
		l.clock += 1 << tickShift
		l.fireTimers()
	}
}
