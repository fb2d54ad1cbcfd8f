package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"
)

// MaxUpstreams bounds the upstreams of a Rig.
const MaxUpstreams = 64

// Rig is a load generator and a backend on one loop. One goroutine at a time may use it. The backend
// answers only during Drive and Probe; between them its connections wait.
type Rig struct {
	loop    *loop
	backend *backend
}

// Profile describes one Drive.
type Profile struct {
	Addr    netip.AddrPort // the proxy, IPv4
	Conns   int            // keep-alive connections, at least 1
	TLS     *tls.Config    // nil = plain
	Traffic *Traffic
	// Requests ends the run after so many; 0 = no limit. With it Warmup must be 0.
	Requests uint64
	// Warmup passes before the measured part, Measure is its length. Measure 0 needs Requests. On a busy
	// machine the measured part lasts until one request has been answered in it.
	Warmup, Measure time.Duration
	// Patience is the longest time without a single answer; 0 means 10 s.
	Patience time.Duration
	// Mark is called at the start (false) and at the end (true) of the measured part, while requests
	// are under way. It may be nil. Its error ends the run.
	Mark func(end bool) error
}

// Result counts the measured part of a Drive.
type Result struct {
	Requests uint64        // answered as expected
	Failures uint64        // anything else, of the whole run, warm-up included
	First    error         // the first failure
	Elapsed  time.Duration // of the measured part
	Connects uint64        // connections that the backend accepted in the measured part
}

// NewRig opens the backend's listeners, 1 to MaxUpstreams.
func NewRig(upstreams int) (*Rig, error) {
	if upstreams < 1 || upstreams > MaxUpstreams {
		return nil, fmt.Errorf("cannot make a rig of %d upstreams: want 1 to %d", upstreams, MaxUpstreams)
	}
	l, err := newLoop()
	if err != nil {
		return nil, err
	}
	b, err := newBackend(l, upstreams)
	if err != nil {
		l.close()
		return nil, err
	}
	return &Rig{loop: l, backend: b}, nil
}

// Upstreams returns the addresses of the backend, one per upstream. The caller must not change it.
func (r *Rig) Upstreams() []netip.AddrPort { return r.backend.addrs }

// Close closes every socket of the rig.
func (r *Rig) Close() { r.loop.close() }

func (p *Profile) check() error {
	switch {
	case p.Conns < 1:
		return errors.New("cannot drive: Conns is below 1")
	case p.Traffic == nil:
		return errors.New("cannot drive: no Traffic")
	case !p.Addr.Addr().Unmap().Is4():
		return fmt.Errorf("cannot drive %v: not an IPv4 address", p.Addr)
	case p.Requests == 0 && p.Measure <= 0:
		return errors.New("cannot drive: neither Requests nor Measure")
	case p.Requests > 0 && p.Warmup > 0:
		return errors.New("cannot drive: Requests do not go with Warmup")
	}
	return nil
}

// Drive opens the connections, sends requests in a closed loop and returns when Requests are answered,
// the time is over, ctx ends, the proxy stalls or too many requests failed; the last three are errors.
// Single failures are counted, not returned. It holds its goroutine to one thread.
func (r *Rig) Drive(ctx context.Context, p Profile) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, err
	}
	if p.Patience <= 0 {
		p.Patience = 10 * time.Second
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &run{rig: r, profile: p}
	defer s.closeAll()
	for range p.Conns {
		c := &client{run: s, fd: -1, in: make([]byte, maxHead+BodySize)}
		s.clients = append(s.clients, c)
		if !c.open() {
			return Result{Failures: 1, First: s.first}, s.first
		}
		// Connections of a handshake each would overflow the backlog otherwise.
		if err := r.loop.turn(0); err != nil {
			return Result{}, err
		}
	}
	for _, c := range s.clients {
		c.send()
	}
	return s.loop(ctx)
}

// loop turns until the run is over. It is the only place that looks at the clock.
func (r *run) loop(ctx context.Context) (Result, error) {
	p := &r.profile
	begin := time.Now()
	measuring := p.Warmup == 0
	base := Result{Connects: r.rig.backend.accepted}
	progress, progressAt := uint64(0), begin
	if measuring {
		if err := r.mark(false); err != nil {
			return Result{}, err
		}
	}
	for {
		if err := r.rig.loop.turn(20 * time.Millisecond); err != nil {
			return Result{}, err
		}
		now := time.Now()
		if r.answered != progress {
			progress, progressAt = r.answered, now
		}
		switch {
		case ctx.Err() != nil:
			return Result{}, context.Cause(ctx)
		case r.failures >= maxFailures:
			return r.since(base, begin, now), fmt.Errorf("cannot go on after %d failures, the first: %w", r.failures, r.first)
		case now.Sub(progressAt) > p.Patience:
			return r.since(base, begin, now), fmt.Errorf("cannot go on: no answer for %v", p.Patience)
		case !measuring && now.Sub(begin) >= p.Warmup:
			measuring, begin = true, now
			base = Result{Requests: r.answered, Connects: r.rig.backend.accepted}
			if err := r.mark(false); err != nil {
				return Result{}, err
			}
		case measuring && r.over(now.Sub(begin), r.answered-base.Requests):
			res := r.since(base, begin, now)
			return res, r.mark(true)
		}
	}
}

// over tells whether the measured part, with so many answers yet, is complete.
func (r *run) over(elapsed time.Duration, answered uint64) bool {
	p := &r.profile
	if p.Requests > 0 && r.sent == p.Requests && r.waiting == 0 {
		return true
	}
	return p.Measure > 0 && elapsed >= p.Measure && answered > 0
}

func (r *run) since(base Result, begin, now time.Time) Result {
	return Result{
		Requests: r.answered - base.Requests,
		Failures: r.failures,
		First:    r.first,
		Elapsed:  now.Sub(begin),
		Connects: r.rig.backend.accepted - base.Connects,
	}
}

func (r *run) mark(end bool) error {
	if r.profile.Mark == nil {
		return nil
	}
	return r.profile.Mark(end)
}

func (r *run) closeAll() {
	r.stopping = true
	for _, c := range r.clients {
		c.close()
	}
}
