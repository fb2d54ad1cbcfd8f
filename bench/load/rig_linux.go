// Package load is the client and the backend of Turnout's benchmarks: an HTTP/1.1 load generator and
// a fixed-answer backend that share one epoll loop on one thread, so that together they cost less than
// any proxy between them and the proxy is what is measured.
//
// A Rig owns the loop and the backend's listeners. Drive runs a closed loop over keep-alive connections
// (one request at a time on each) and checks every answer: status, framing and each byte of the body.
// The body names the upstream that sent it, so an answer from the wrong upstream is a failure too.
// Probe sends one request and shows what the backend received, to confirm that two proxies do the same
// work before they are compared.
//
// Rig works on Linux only; response.go and traffic.go are pure and build everywhere.
package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"turnout/bench/site"
)

// MaxUpstreams bounds the upstreams of a Rig.
const MaxUpstreams = 64

// Rig is a load generator and a backend on one loop. One goroutine at a time may use it. The backend
// answers only during Drive, Serve, Answer and Probe; between them its connections wait.
type Rig struct {
	loop    *loop
	backend *backend
}

// NewRig opens the backend's listeners, 1 to MaxUpstreams.
func NewRig(upstreams int) (*Rig, error) {
	if upstreams < 1 || upstreams > MaxUpstreams {
		return nil, fmt.Errorf("cannot make a rig of %d upstreams: want 1 to %d", upstreams, MaxUpstreams)
	}
	r := &Rig{}
	err := site.Try(func() {
		r.loop = newLoop()
		r.backend = newBackend(r.loop, upstreams)
	})
	if err != nil && r.loop != nil {
		r.loop.close()
	}
	return r, err
}

// Upstreams returns the addresses of the backend, one per upstream. The caller must not change it.
func (r *Rig) Upstreams() []netip.AddrPort { return r.backend.addrs }

// Close closes every socket of the rig.
func (r *Rig) Close() { r.loop.close() }

// longestStep is how long a loop waits for events at most.
const longestStep = 20 * time.Millisecond

// Answers has the answers to requests carry bodies of so many bytes from now on; until then it is BodySize. HTTP/2 takes 16 KiB at most.
func (r *Rig) Answers(size int) { r.backend.size(size) }

// until runs the loop on one thread until over.
func (r *Rig) until(over func() bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !over() {
		r.loop.step(longestStep)
	}
}

// Profile describes one Drive.
type Profile struct {
	Span // Measure 0 needs Requests

	Addr    netip.AddrPort // the proxy, IPv4
	Conns   int            // keep-alive connections, at least 1
	TLS     *tls.Config    // nil = plain
	Traffic *Traffic
	// Rate is how many requests are sent per second, whenever they are due: Result has their times then. 0 = each as soon as the one
	// before it on its connection is answered.
	Rate float64
	// Echo is a message that WebSockets send and get back, which counts as a request; nil = there are none.
	Echo []byte
	// Requests ends the run after so many; 0 = no limit. With it Warmup must be 0.
	Requests uint64
}

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
	case p.Rate < 0 || p.Rate > 0 && p.Requests > 0:
		return errors.New("cannot drive: Requests do not go with a Rate, which is not below 0")
	case p.Requests > 0 && p.Warmup > 0:
		return errors.New("cannot drive: Requests do not go with Warmup")
	}
	return nil
}

// Drive opens the connections, sends requests in a closed loop and returns when Requests are answered,
// the time is over, ctx ends, the proxy stalls or too many requests failed; the last three are errors.
// Single failures are counted, not returned. It holds its goroutine to one thread.
func (r *Rig) Drive(ctx context.Context, p Profile) (res Result, err error) {
	if err := p.check(); err != nil {
		return res, err
	}
	defer site.Catch(&err)
	s := &run{rig: r, profile: p, buffer: make([]byte, 256<<10)}
	defer func() {
		s.closeAll()
		res.Failures, res.First = s.failures, s.first
	}()
	for range p.Conns {
		c := &client{run: s, fd: -1, in: make([]byte, maxHead+BodySize)}
		s.clients = append(s.clients, c)
		if !c.open() {
			site.Check(s.first)
		}
		// Connections of a handshake each would overflow the backlog otherwise.
		r.loop.step(0)
	}
	s.meter = newMeter(p.Span, 1, func() Result { return Result{Requests: s.answered, Connects: r.backend.accepted} })
	s.meter.over(ctx) // without warm-up the measured part begins before the first request
	s.began = time.Now()
	for _, c := range s.clients {
		c.askNext()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !s.over(ctx) {
		r.loop.step(s.patience())
	}
	res = s.meter.end()
	res.Latency = site.LatencyOf(s.times)
	return res, nil
}

func (r *run) over(ctx context.Context) bool {
	if r.failures >= maxFailures {
		site.Stopf("cannot go on after %d failures, the first: %w", r.failures, r.first)
	}
	if r.profile.Rate > 0 {
		r.pace()
	}
	return r.meter.over(ctx) || r.profile.Requests > 0 && r.sent == r.profile.Requests && r.waiting == 0
}

// patience is how long the loop may wait for events.
func (r *run) patience() time.Duration {
	if r.profile.Rate == 0 || len(r.idle) == 0 {
		return longestStep
	}
	return min(longestStep, max(0, time.Until(r.dueAt())))
}

// Serve is the backend alone, for a client in a process of its own, and counts the requests that reach it; the span begins with the
// first of them. It returns when the client has ended, which closes done; one that ends before the measured part does is an error. It
// holds its goroutine to one thread.
func (r *Rig) Serve(ctx context.Context, s Span, done <-chan struct{}) (res Result, err error) {
	defer site.Catch(&err)
	if s.Measure <= 0 || done == nil {
		site.Stopf("cannot serve: neither Measure nor done may be missing")
	}
	b, before, ended := r.backend, r.backend.served, false
	m := newMeter(s, 1, func() Result { return Result{Requests: b.served - before, Connects: b.accepted} })
	m.fromFirst = true
	r.until(func() bool {
		if !ended && m.over(ctx) {
			res, ended = m.end(), true
		}
		select {
		case <-done:
			return true
		default:
			site.Check(context.Cause(ctx))
			return false
		}
	})
	if !ended {
		site.Stopf("cannot measure: the client ended too early")
	}
	return res, nil
}

// Answer is the backend alone, without counting requests, until done is closed. It returns how many connections it
// accepted. It holds its goroutine to one thread.
func (r *Rig) Answer(done <-chan struct{}) uint64 {
	before := r.backend.accepted
	r.until(func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	return r.backend.accepted - before
}

// Probe sends one request on a new connection and returns what passed. It waits for an answer with a
// Content-Length of BodySize, at most until ctx ends. Request is empty if the backend was not asked.
func (r *Rig) Probe(ctx context.Context, addr netip.AddrPort, cfg *tls.Config, request []byte) (x Exchange, err error) {
	r.backend.capture, r.backend.head = true, nil
	defer func() { r.backend.capture = false }()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		err = site.Try(func() { probe(ctx, addr, cfg, request, &x) })
	}()
	r.Answer(answered)
	x.Request = bytes.Clone(r.backend.head)
	return x, err
}

func probe(ctx context.Context, addr netip.AddrPort, cfg *tls.Config, request []byte, x *Exchange) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", addr.String())
	site.Checkf(err, "cannot connect")
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if cfg != nil {
		t := tls.Client(conn, cfg)
		site.Checkf(t.HandshakeContext(ctx), "cannot complete the handshake")
		site.Check(checkCipher(t.ConnectionState()))
		conn = t
	}
	_, err = conn.Write(request)
	site.Checkf(err, "cannot send the probe")
	for in := make([]byte, 0, maxHead); len(x.Body) < BodySize; {
		if len(in) == cap(in) {
			site.Check(ErrHead)
		}
		n, err := conn.Read(in[len(in):cap(in)])
		in = in[:len(in)+n]
		if x.Answer, x.Body, _ = bytes.Cut(in, headEnd); err != nil && len(x.Body) < BodySize {
			site.Checkf(context.Cause(ctx), "cannot get an answer to the probe")
			site.Checkf(err, "cannot read the answer to the probe")
		}
	}
}
