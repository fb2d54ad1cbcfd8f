package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"
)

func TestPercentForKeepsHeadroom(t *testing.T) {
	const mib = 1 << 20
	f := func(live, room uint64, want int) {
		t.Helper()
		if got := percentFor(live, room, usualPercent); got != want {
			t.Errorf("%d bytes, room for %d: %d, want %d", live, room, got, want)
		}
	}
	f(0, headroom, 300)
	f(1*mib, headroom, 300)
	f(4*mib, headroom, 300)
	f(6*mib, headroom, 200)
	f(12*mib, headroom, 100)
	f(1000*mib, headroom, 100)

	f(1*mib, mostHeadroom, 1200)
	f(4*mib, mostHeadroom, 1200)
	f(8*mib, mostHeadroom, 600)
	f(1000*mib, mostHeadroom, 100)
}

// TestGrowthOfASmallHeap: the runtime lets a heap of a MiB grow by no more than that either.
func TestGrowthOfASmallHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(percentFor(1<<20, mostHeadroom, usualPercent)))
	runtime.GC()
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(goal)
	if got, live := goal[0].Value.Uint64(), goal[1].Value.Uint64(); live > leastHeap || got > mostHeadroom+2*leastHeap {
		t.Errorf("the heap may grow to %d bytes with %d in use, want %d at most", got, live, mostHeadroom+2*leastHeap)
	}
}

// TestGrowthFollowsThePace: collections in quick succession have the heap grow by more between them, up to a bound that follows from
// the memory limit; rare ones undo that.
func TestGrowthFollowsThePace(t *testing.T) {
	now := time.Now()
	f := func(limit uint64, after time.Duration, want ...uint64) {
		t.Helper()
		p := &pacer{most: mostGrowth(limit), growth: headroom, last: now}
		for _, room := range want {
			now = now.Add(after)
			if p.setGrowth(now); p.growth != room<<20 {
				t.Errorf("limit %d, after %v: growth by %d MiB, want %d", limit, after, p.growth>>20, room)
			}
		}
		for p.growth > headroom {
			had := p.growth
			now = now.Add(rare)
			if p.setGrowth(now); p.growth != max(had/2, headroom) {
				t.Fatalf("the growth is %d after %d", p.growth, had)
			}
		}
		now = now.Add(rare)
		if p.setGrowth(now); p.growth != headroom {
			t.Errorf("the growth is %d, less than the least", p.growth)
		}
	}
	f(0, frequent/2, 24, 48, 48)
	f(0, frequent, 12, 12)
	f(0, rare-1, 12, 12)
	f(headroom*limitShare*2, 0, 24, 24)
	f(headroom, 0, 12, 12)
}

func TestPacerFollowsTheHeap(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var live atomic.Uint64
	live.Store(1 << 20)
	asked := make(chan int, 100)
	now := time.Now()
	paceCollector(ctx, pacing{
		set: func(percent int) int {
			asked <- percent
			return usualPercent
		},
		live:  live.Load,
		clock: func() time.Time { now = now.Add(frequent); return now },
	})
	// Collections may come at any time, so what is set twice does not matter; that it is set does.
	want := func(percent int) {
		t.Helper()
		for {
			select {
			case got := <-asked:
				if got == percent {
					return
				}
			default:
				runtime.GC()
				runtime.Gosched()
			}
		}
	}
	want(300)
	live.Store(6 << 20)
	want(200)
	live.Store(1 << 30)
	want(usualPercent)
	live.Store(4 << 20)
	want(300)
	cancel()
	want(usualPercent)
}

// TestPacerAtTheStart: until the process has started nothing grows, however quickly collections follow each other, but for handshakes.
func TestPacerAtTheStart(t *testing.T) {
	started := make(chan struct{})
	now := time.Now()
	steps := uint64(100)
	p := &pacer{pacing: pacing{start: started, handshakes: func() uint64 { return steps }}, most: mostHeadroom, share: leastPercent, growth: headroom, last: now, steps: steps}
	for range 3 {
		steps += manySteps - 1
		p.setGrowth(now)
	}
	if got := percentFor(400<<20, p.growth, p.share); got != leastPercent || p.growth != headroom {
		t.Errorf("%d percent, room for %d bytes", got, p.growth)
	}
	if got := percentFor(24<<20, p.growth, p.share); got != 50 {
		t.Errorf("a small heap: %d percent", got)
	}
	steps += manySteps
	if p.setGrowth(now); p.share != leastPercent || p.growth != 2*headroom {
		t.Errorf("with handshakes: %d percent, room for %d bytes", p.share, p.growth)
	}
	p.growth = headroom
	close(started)
	if p.setGrowth(now); p.share != 2*leastPercent || p.growth != 2*headroom {
		t.Errorf("after the start: %d percent, room for %d bytes", p.share, p.growth)
	}
}

// TestShareFollowsThePace: a large heap is collected after it has grown by a quarter, and after it has doubled while collections would come more
// often than one in 5 s.
func TestShareFollowsThePace(t *testing.T) {
	now := time.Now()
	p := &pacer{most: mostHeadroom, share: leastPercent, growth: headroom, last: now}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{rare, 25}, {rare - 1, 50}, {rare - 1, 100}, {rare - 1, 100}, {rare, 100}, {seldom - 1, 100}, {seldom, 50}, {seldom, 25}, {seldom, 25}, {seldom, 25}} {
		now = now.Add(step.after)
		if p.setGrowth(now); percentFor(1000<<20, p.growth, p.share) != step.want {
			t.Errorf("after %v: %d percent, want %d", step.after, percentFor(1000<<20, p.growth, p.share), step.want)
		}
	}
}

// TestPacerGivesRoom: what it asks for grows while collections follow each other at once, and not before the first one.
func TestPacerGivesRoom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // no collections but those that are asked for
	asked := make(chan int, 100)
	at := time.Now()
	paceCollector(t.Context(), pacing{
		set:   func(percent int) int { asked <- percent; return usualPercent },
		live:  func() uint64 { return headroom },
		clock: func() time.Time { return at },
	})
	if got := <-asked; got != usualPercent || len(asked) > 0 {
		t.Errorf("set to %d and %d times more before any collection", got, len(asked))
	}
	for want := 2 * usualPercent; want <= usualPercent*mostHeadroom/headroom; {
		select {
		case got := <-asked:
			if got != want {
				t.Fatalf("set to %d, want %d", got, want)
			}
			want *= 2
		default:
			runtime.GC()
			runtime.Gosched()
		}
	}
}

func TestPacerLeavesAConfiguredPercentage(t *testing.T) {
	var asked []int
	paceCollector(t.Context(), pacing{
		set: func(percent int) int {
			asked = append(asked, percent)
			return 50
		},
		live: func() uint64 { return 0 },
	})
	if len(asked) != 2 || asked[1] != 50 {
		t.Errorf("set to %v, want what was configured in the end", asked)
	}
}
