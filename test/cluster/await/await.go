// Package await waits, in tests, for what other processes do.
package await

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// pause is between two attempts of Eventually.
const pause = 20 * time.Millisecond

// Eventually tries until try returns nil. It fails the test with what and the last error when that takes longer than patience.
func Eventually(t testing.TB, patience time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// Must returns what passes on a value, and fails the test for an error.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// atOnce is how many calls of InParallel are under way.
const atOnce = 16

// InParallel calls do with each number n, from <= n < to, some at a time, until one fails, and waits. An error fails the test.
func InParallel(t testing.TB, from, to int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := from; i < to; i++ {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(ctx, i)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}
