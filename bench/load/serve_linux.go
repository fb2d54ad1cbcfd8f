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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := serving{rig: r, profile: p, last: time.Now(), seen: r.backend.served}
	for !s.over {
		if err := r.loop.turn(20 * time.Millisecond); err != nil {
			return Result{}, err
		}
		if err := s.look(ctx, time.Now()); err != nil {
			return Result{}, err
		}
	}
	return s.result, nil
}

// serving is the state of one Serve.
type serving struct {
	rig      *Rig
	profile  ServeProfile
	last     time.Time // of the last progress
	seen     uint64    // requests at that time
	first    time.Time // of the first request
	began    time.Time // of the measured part
	served   uint64    // requests and connections at that time
	accepted uint64
	ended    bool // the measured part is complete
	over     bool // and so is the client
	result   Result
}

// look is what happens between two turns of the loop.
func (s *serving) look(ctx context.Context, now time.Time) error {
	b := s.rig.backend
	if b.served != s.seen {
		if s.first.IsZero() {
			s.first = now
		}
		s.seen, s.last = b.served, now
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.profile.Done:
		if !s.ended {
			return errors.New("cannot measure: the client ended too early")
		}
		s.over = true
		return nil
	default:
	}
	switch {
	case now.Sub(s.last) > s.profile.Patience:
		return fmt.Errorf("cannot go on: no request for %v", s.profile.Patience)
	case s.began.IsZero() && !s.first.IsZero() && now.Sub(s.first) >= s.profile.Warmup:
		s.began, s.served, s.accepted = now, b.served, b.accepted
		return s.mark(false)
	case !s.ended && !s.began.IsZero() && now.Sub(s.began) >= s.profile.Measure:
		s.ended = true
		s.result = Result{Requests: b.served - s.served, Elapsed: now.Sub(s.began), Connects: b.accepted - s.accepted}
		return s.mark(true)
	}
	return nil
}

func (s *serving) mark(end bool) error {
	if s.profile.Mark == nil {
		return nil
	}
	return s.profile.Mark(end)
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
