package signals

import (
	"context"
	"time"
)

// Wait returns what begin does. When ctx ends first it waits for begin no longer than patience, and returns false without it: then the system
// takes back what is half made, because the process ends.
func Wait[T any](ctx context.Context, patience time.Duration, begin func() (T, error)) (made T, whole bool, err error) {
	type result struct {
		made T
		err  error
	}
	results := make(chan result, 1)
	go func() {
		made, err := begin()
		results <- result{made, err}
	}()
	select {
	case r := <-results:
		return r.made, true, r.err
	case <-ctx.Done():
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case r := <-results:
		return r.made, true, r.err
	case <-late.C:
		return made, false, nil
	}
}
