package routing

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestStore(t *testing.T) {
	s := NewStore()
	if e := s.Load(); e == nil || e.Generation() != 0 || e.Len() != 0 || answer(e, false, "a.test", "/") != "503" || e.SNI("a.test") != (SNIDecision{}) {
		t.Fatal("a new store has no empty table")
	}
	one := compile(t, route("1", "a.test", ""))
	if g := s.Publish(one); g != 1 || s.Load() != one || one.Generation() != 1 {
		t.Errorf("first generation %d", g)
	}
	two, _ := s.Load().Apply(nil, []RouteKey{route("1", "", "").RouteKey})
	if two.Generation() != 0 {
		t.Error("a table that is not published has a generation")
	}
	if g := s.Publish(two); g != 2 || s.Load().Len() != 0 {
		t.Errorf("second generation %d", g)
	}
	if g := s.Publish(one); g != 3 || s.Load().Generation() != 3 || s.Load().Len() != 1 || one.Generation() != 1 {
		t.Errorf("a table published again has generation %d, before %d", g, one.Generation())
	}
}

func TestWait(t *testing.T) {
	s := NewStore()
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Wait(ctx, 0); err != nil {
		t.Error(err)
	}
	var waiting sync.WaitGroup
	for g := range uint64(4) {
		waiting.Go(func() {
			if err := s.Wait(ctx, g); err != nil {
				t.Error(err)
			}
			if now := s.Load().Generation(); now < g {
				t.Errorf("generation %d was waited for, %d is published", g, now)
			}
		})
	}
	for range 3 {
		s.Publish(compile(t))
	}
	waiting.Wait()
	cancel()
	if err := s.Wait(ctx, 4); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for what does not come: %v", err)
	}
	if err := s.Wait(ctx, 3); err != nil {
		t.Errorf("waiting for what is there: %v", err)
	}
}

// TestReadersSeeWholeTables looks up while tables are published.
func TestReadersSeeWholeTables(t *testing.T) {
	s := NewStore()
	s.Publish(compile(t, route("1", "a.test", ""), route("w", "x.test", "", wildcard)))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := answer(s.Load(), false, "A.test:80", "/p/x"); got != "1" && got != "2" {
					t.Errorf("served by %q", got)
					return
				}
			}
		})
	}
	for i := range 500 {
		var next *Table
		if i%2 == 0 {
			next, _ = s.Load().Apply([]RouteSpec{route("2", "a.test", "/p"), route("3", "b.test", "")}, nil)
		} else {
			next, _ = s.Load().Apply(nil, []RouteKey{route("2", "", "").RouteKey, route("3", "", "").RouteKey})
		}
		s.Publish(next)
	}
	close(stop)
	readers.Wait()
}
