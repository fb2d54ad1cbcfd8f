package main

import (
	"context"
	"errors"
	"sync"
)

// crew is goroutines that are stopped together.
type crew struct {
	ctx     context.Context
	cancel  context.CancelFunc
	failed  chan<- error
	running sync.WaitGroup

	mu  sync.Mutex
	err error // of those that were told to stop
}

// newCrew makes an empty crew. failed is told of the first goroutine that ends although
// nobody asked it to.
func newCrew(failed chan<- error) *crew {
	c := &crew{failed: failed}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// start runs one goroutine of the crew.
func (c *crew) start(run func(context.Context) error) {
	c.running.Go(func() {
		err := run(c.ctx)
		if c.ctx.Err() != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.err = errors.Join(c.err, err)
			return
		}
		if err == nil {
			err = errors.New("BUG: a room ended by itself")
		}
		select {
		case c.failed <- err:
		default: // one failure ends the router, the others follow from it
		}
	})
}

// stop ends all goroutines, waits for them and returns their errors.
func (c *crew) stop() error {
	c.cancel()
	c.running.Wait()
	return c.err
}
