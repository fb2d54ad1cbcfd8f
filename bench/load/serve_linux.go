package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// ServeProfile describes one Serve.
type ServeProfile struct {
	// Warmup passes between the first request and the measured part, Measure is the length of that part.
	Warmup, Measure time.Duration
	// Patience is the longest time without a single request; 0 means 10 s.
	Patience time.Duration
	// Mark is called at the start (false) and at the end (true) of the measured part, while requests are
	// under way. It may be nil. Its error ends the run.
	Mark func(end bool) error
	// Done is closed when the client has ended; after the measured part Serve goes on until then.
	Done <-chan struct{}
}

// Serve is the backend alone, for a client in a process of its own, and counts the requests that reach it.
// It returns when the client has ended; a client that ends before the measured part does is an error. It
// holds its goroutine to one thread.
func (r *Rig) Serve(ctx context.Context, p ServeProfile) (Result, error) {
	if p.Measure <= 0 || p.Done == nil {
		return Result{}, errors.New("cannot serve: neither Measure nor Done may be missing")
	}
	if p.Patience <= 0 {
		p.Patience = 10 * time.Second
	}
	if p.Mark == nil {
		p.Mark = func(bool) error { return nil }
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := r.backend
	var res, base Result
	var first, began time.Time // the first request, the measured part
	for last, seen, ended := time.Now(), b.served, false; ; {
		if err := r.loop.turn(20 * time.Millisecond); err != nil {
			return Result{}, err
		}
		now := time.Now()
		if b.served != seen {
			if first.IsZero() {
				first = now
			}
			seen, last = b.served, now
		}
		var err error
		select {
		case <-ctx.Done():
			return Result{}, context.Cause(ctx)
		case <-p.Done:
			if !ended {
				err = errors.New("cannot measure: the client ended too early")
			}
			return res, err
		default:
		}
		switch {
		case now.Sub(last) > p.Patience:
			err = fmt.Errorf("cannot go on: no request for %v", p.Patience)
		case began.IsZero() && !first.IsZero() && now.Sub(first) >= p.Warmup:
			began, base = now, Result{Requests: b.served, Connects: b.accepted}
			err = p.Mark(false)
		case !ended && !began.IsZero() && now.Sub(began) >= p.Measure:
			ended = true
			res = Result{Requests: b.served - base.Requests, Elapsed: now.Sub(began), Connects: b.accepted - base.Connects}
			err = p.Mark(true)
		}
		if err != nil {
			return Result{}, err
		}
	}
}

// Answer is the backend alone, without counting requests, until done is closed. It returns how many connections it
// accepted. It holds its goroutine to one thread.
func (r *Rig) Answer(done <-chan struct{}) (uint64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := r.backend.accepted
	for {
		select {
		case <-done:
			return r.backend.accepted - before, nil
		default:
		}
		if err := r.loop.turn(20 * time.Millisecond); err != nil {
			return 0, err
		}
	}
}
