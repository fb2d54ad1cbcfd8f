// Package crew runs goroutines that are stopped together, and waits for them for a limited time.
package crew

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Crew is goroutines that are stopped together.
type Crew struct {
	ctx     context.Context //nolint:containedctx // it is how long the goroutines run
	cancel  context.CancelFunc
	failed  chan<- error
	running sync.WaitGroup

	mu   sync.Mutex
	err  error          // of those that were asked to stop
	left map[string]int // those that have not ended, by name
}

// New makes an empty crew. failed gets the error of the first goroutine that ends although
// nobody asked it to.
func New(failed chan<- error) *Crew {
	c := &Crew{failed: failed, left: map[string]int{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Start runs one goroutine of the crew. name tells people what it does.
func (c *Crew) Start(name string, run func(context.Context) error) {
	c.count(name, 1)
	c.running.Go(func() {
		defer c.count(name, -1)
		err := run(c.ctx)
		if c.ctx.Err() != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.err = errors.Join(c.err, err)
			return
		}
		if err == nil {
			err = errors.New("BUG: a package ended by itself")
		}
		select {
		case c.failed <- err:
		default: // one failure ends the router, the others follow from it
		}
	})
}

// count notes that goroutines of a name began or ended.
func (c *Crew) count(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left[name] += n; c.left[name] == 0 {
		delete(c.left, name)
	}
}

// Stop ends all goroutines, waits for them, but no longer than patience, and returns their errors. A goroutine that is held up
// by a file system that does not answer must not hold up the end of the process; left is who that is, by name.
func (c *Crew) Stop(patience time.Duration) (left []string, err error) {
	c.cancel()
	ended := make(chan struct{})
	go func() { c.running.Wait(); close(ended) }()
	Within(patience, ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.left)), c.err
}

// Within waits for done to be closed, but no longer than d, and reports whether it was.
func Within(d time.Duration, done <-chan struct{}) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// Linger waits for a delay, until over is closed, or for an error of failed, which it returns. A delay of 0 or less is over at once.
func Linger(delay time.Duration, over <-chan struct{}, failed <-chan error) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-over:
		return nil
	case err := <-failed:
		return err
	}
}
