package reactor

import (
	"context"
	"slices"
	"sync"
	"testing"

	"turnout/internal/reactor/memnet"
)

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{
		{ReadBuffer: 10},
		{ReadBuffer: -1},
		{HighWater: 10, LowWater: 20},
		{LowWater: -1},
		{IterationBytes: -1},
		{Linger: -1},
		{FlushTimeout: -1},
	} {
		if l, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
			l.shutdown()
		}
	}
}

func TestPostOrder(t *testing.T) {
	l := startLoop(t, Config{})
	const senders, each = 8, 2000
	seen := make([][]int, senders)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				if !l.Post(func() { seen[s] = append(seen[s], i) }) {
					t.Error("refused")
				}
			}
		})
	}
	wg.Wait()
	on(t, l, func() {
		for s := range seen {
			if len(seen[s]) != each || !slices.IsSorted(seen[s]) {
				t.Errorf("sender %d: %d of %d posts, sorted %v", s, len(seen[s]), each, slices.IsSorted(seen[s]))
			}
		}
	})
}

// A post made by a posted function comes later, and the loop does not sleep before it.
func TestPostFromLoop(t *testing.T) {
	l := startLoop(t, Config{})
	done := make(chan uint64, 1)
	on(t, l, func() {
		first := l.Stats().Iterations
		l.Post(func() { done <- l.Stats().Iterations - first })
	})
	if n := get(t, "inner post", done); n != 1 {
		t.Errorf("ran %d iterations later", n)
	}
}

func TestRunEndsWithContext(t *testing.T) {
	l := newTestLoop(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	on(t, l, func() {})
	cancel()
	if err := get(t, "end of Run", done); err != nil {
		t.Errorf("Run: %v", err)
	}
	if l.Post(func() {}) {
		t.Error("mail accepted after the end")
	}
}

func TestStopBeforeRun(t *testing.T) {
	l := newTestLoop(t, Config{})
	l.Stop()
	l.Stop()
	if err := l.Run(context.Background()); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestAtIterationEnd(t *testing.T) {
	l := steppedLoop(t, Config{})
	peer, c := steppedPair(t, l, &hooks{})
	var order []string
	l.Post(func() {
		c.AtIterationEnd(func() {
			order = append(order, "end")
			c.Write([]byte("collected"))
			c.AtIterationEnd(func() { order = append(order, "end of the end") })
		})
		order = append(order, "mail")
	})
	step(t, l, "turn", func() bool { return len(order) > 0 })
	if !slices.Equal(order, []string{"mail", "end", "end of the end"}) {
		t.Errorf("order %v", order)
	}
	expect(t, peer, "collected")
}

func TestNowIsTheIterations(t *testing.T) {
	l := steppedLoop(t, Config{})
	var first, second int64
	l.Post(func() { first = l.Now() })
	l.Post(func() { second = l.Now() })
	step(t, l, "mail", func() bool { return second != 0 })
	if first != second {
		t.Error("Now moved within an iteration")
	}
	if l.Now() < second {
		t.Error("Now went back")
	}
}

func BenchmarkPost(b *testing.B) {
	l := NewOn(memnet.New(0), Config{})
	fn := func() {}
	for b.Loop() {
		l.Post(fn)
		l.runMail()
	}
}
