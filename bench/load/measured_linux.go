package load

import (
	"context"
	"time"
)

// measured waits for warm-up and measured part to pass while something is counted, and returns how many units of it came in
// the measured part. On a busy machine that part lasts until there is one. mark may be nil; its error ends the wait, and so
// does ctx.
func measured(ctx context.Context, warmup, length time.Duration, mark func(end bool) error, count func() uint64, unit uint64) (Result, error) {
	if mark == nil {
		mark = func(bool) error { return nil }
	}
	if !pause(ctx, warmup) {
		return Result{}, context.Cause(ctx)
	}
	begin, base := time.Now(), count()
	if err := mark(false); err != nil {
		return Result{}, err
	}
	for ; ; length = time.Millisecond {
		if !pause(ctx, length) {
			return Result{}, context.Cause(ctx)
		}
		if n := count() - base; n >= unit {
			return Result{Requests: n / unit, Elapsed: time.Since(begin)}, mark(true)
		}
	}
}

// pause returns false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
