package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
)

func TestPercentForKeepsHeadroom(t *testing.T) {
	const mib = 1 << 20
	f := func(live uint64, want int) {
		t.Helper()
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes: %d, want %d", live, got, want)
		}
	}
	f(0, 400)
	f(1*mib, 400)
	f(6*mib, 400)
	f(8*mib, 300)
	f(12*mib, 200)
	f(24*mib, 100)
	f(1000*mib, 100)
}

func TestPacerFollowsTheHeap(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var live atomic.Uint64
	live.Store(1 << 20)
	asked := make(chan int, 100)
	paceCollector(ctx, func(percent int) int {
		asked <- percent
		return usualPercent
	}, live.Load)
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
	want(mostPercent)
	live.Store(12 << 20)
	want(200)
	live.Store(1 << 30)
	want(usualPercent)
	live.Store(8 << 20)
	want(300)
	cancel()
	want(usualPercent)
}

func TestPacerLeavesAConfiguredPercentage(t *testing.T) {
	var asked []int
	paceCollector(t.Context(), func(percent int) int {
		asked = append(asked, percent)
		return 50
	}, func() uint64 { return 0 })
	if len(asked) != 2 || asked[1] != 50 {
		t.Errorf("set to %v, want what was configured in the end", asked)
	}
}
