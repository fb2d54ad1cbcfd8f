package await

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// stopped is a test that Fatal has stopped.
type stopped struct {
	testing.TB
	t    *testing.T
	said error
}

func (s *stopped) Helper()                  {}
func (s *stopped) Context() context.Context { return s.t.Context() }
func (s *stopped) Fatal(args ...any)        { s.said = args[0].(error) }

// TestInParallel: each number has its call, and after one that failed there are no more than were under way.
func TestInParallel(t *testing.T) {
	var sum atomic.Int64
	InParallel(t, 3, 103, func(_ context.Context, i int) error { sum.Add(int64(i)); return nil })
	if got := sum.Load(); got != 5250 {
		t.Errorf("the sum is %d, want 5250", got)
	}
	broken := errors.New("it is broken")
	var calls atomic.Int64
	s := &stopped{t: t}
	InParallel(s, 0, 10_000, func(context.Context, int) error { calls.Add(1); return broken })
	if n := calls.Load(); n > atOnce || !errors.Is(s.said, broken) {
		t.Errorf("%d calls, said %v", n, s.said)
	}
}
