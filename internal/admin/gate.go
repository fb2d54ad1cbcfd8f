package admin

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"turnout/internal/bound"
)

// gate is the listener of the admin port. It accepts every connection, because it may be a probe, and beyond the bound closes
// another connection instead: of the source that has most of them the one that has been of no use for longest.
type gate struct {
	net.Listener
	tls    *tls.Config // nil = plain HTTP only
	limits limits
	bounds *bound.Counts
	// closing is closed when nobody else is let in.
	closing chan struct{}
	close   func() // closes it; may be called again

	mu      sync.Mutex
	visits  map[*visit]struct{}
	sources map[netip.Prefix]int // connections of each
}

// limits are the bounds of the port.
type limits struct {
	connections int           // at a time
	head        time.Duration // for a whole request head, the TLS handshake included
	idle        time.Duration // between two requests
	stall       time.Duration // in which a reader takes nothing
	answer      time.Duration // for a whole answer
}

func newGate(ln net.Listener, cfg *Config, l limits) *gate {
	closing := make(chan struct{})
	return &gate{
		Listener: ln, tls: cfg.TLS, limits: l, bounds: cfg.Bounds, closing: closing, close: sync.OnceFunc(func() { close(closing) }),
		visits: make(map[*visit]struct{}), sources: make(map[netip.Prefix]int),
	}
}

// Close implements net.Listener.
func (g *gate) Close() error {
	g.close()
	return g.Listener.Close()
}

// closed reports whether nobody else is let in.
func (g *gate) closed() bool {
	select {
	case <-g.closing:
		return true
	default:
		return false
	}
}

// acceptPause is between two attempts to accept while the process has no descriptor left.
const acceptPause = 20 * time.Millisecond

// Accept implements net.Listener. Nothing is read yet: that is for the goroutine of the connection.
func (g *gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		if err == nil {
			return &sniffed{Conn: g.admit(raw), config: g.tls}, nil
		}
		if errors.Is(err, net.ErrClosed) || g.closed() {
			return nil, err
		}
		g.pause(acceptPause) // too many descriptors, or the peer has gone already
	}
}

// admit lets a connection in, and closes another one if there are too many.
func (g *gate) admit(raw net.Conn) *visit {
	v := &visit{Conn: raw, gate: g, source: sourceOf(raw.RemoteAddr()), born: time.Now()}
	v.touch()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.visits[v] = struct{}{}
	g.sources[v.source]++
	for len(g.visits) > g.limits.connections {
		victim := g.useless(v)
		if young := victim.young(time.Now()); young > graceSlack && !g.closed() {
			g.mu.Unlock()
			g.pause(young) // it may be a probe that is about to ask; those that come wait in the queue of the system
			g.mu.Lock()
			continue
		}
		g.forget(victim)
		g.bounds.Reached(bound.AdminConnections)
		victim.abort()
	}
	return v
}

const (
	grace      = 100 * time.Millisecond // that a connection has at least, however many come
	graceSlack = grace / 10             // less than that is not waited for: pauses are long and few
)

// pause waits, or until the port is closed.
func (g *gate) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.closing:
	}
}

// useless returns the connection that is given up for a new one. g.mu is held.
func (g *gate) useless(but *visit) *visit {
	var worst *visit
	now := time.Now()
	for v := range g.visits {
		if v != but && (worst == nil || g.before(v, worst, now)) {
			worst = v
		}
	}
	return worst
}

// before reports whether a is given up rather than b: who has more connections, who has had time to ask, who waits for a request rather
// than answers one, who has done so for longer.
func (g *gate) before(a, b *visit, now time.Time) bool {
	if x, y := g.sources[a.source], g.sources[b.source]; x != y {
		return x > y
	}
	if x, y := a.young(now) > 0, b.young(now) > 0; x != y {
		return y
	}
	if x, y := a.busy.Load(), b.busy.Load(); x != y {
		return y
	}
	return a.since.Load() < b.since.Load()
}

// forget ends the count of a connection. g.mu is held.
func (g *gate) forget(v *visit) {
	if _, ok := g.visits[v]; !ok {
		return
	}
	delete(g.visits, v)
	if g.sources[v.source]--; g.sources[v.source] == 0 {
		delete(g.sources, v.source)
	}
}

// abortAll closes what is left.
func (g *gate) abortAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for v := range g.visits {
		v.abort()
	}
}

// sourceOf is whom a connection counts for: an address, or the network of one of IPv6, the client that has one has all of it.
func sourceOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if addr.Is4() || addr.IsLoopback() {
		bits = addr.BitLen()
	}
	p, _ := addr.Prefix(bits) // both fit
	return p
}

// visit is a connection of TCP to the admin port, below TLS. A writer may be another goroutine than the reader.
type visit struct {
	net.Conn
	gate   *gate
	source netip.Prefix
	born   time.Time
	served int          // requests; of the goroutine that serves them
	busy   atomic.Bool  // a request is answered
	since  atomic.Int64 // when it last got on, in nanoseconds since 1970
	end    atomic.Int64 // of what is written, just so; 0 = never
}

// young returns how long the connection must not be closed yet.
func (v *visit) young(now time.Time) time.Duration { return grace - now.Sub(v.born) }

func (v *visit) touch() { v.since.Store(time.Now().UnixNano()) }

// SetWriteDeadline implements net.Conn. It is the end of all that is written; besides, the peer has to take something now and then.
func (v *visit) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		v.end.Store(0)
	} else {
		v.end.Store(t.UnixNano())
	}
	return nil
}

// writePart is how much is handed to the system at a time.
const writePart = 64 << 10

// Write implements net.Conn. It gives up when the peer has taken nothing for too long.
func (v *visit) Write(p []byte) (n int, err error) {
	for n < len(p) {
		deadline := time.Now().Add(v.gate.limits.stall)
		if end := v.end.Load(); end != 0 {
			if last := time.Unix(0, end); last.Before(deadline) {
				deadline = last
			}
		}
		if err := v.Conn.SetWriteDeadline(deadline); err != nil {
			return n, err
		}
		m, err := v.Conn.Write(p[n:min(n+writePart, len(p))])
		n += m
		if m > 0 {
			v.touch()
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late && m > 0 && (v.end.Load() == 0 || time.Now().UnixNano() < v.end.Load()) {
			continue // slow, but it takes something
		}
		if late {
			v.gate.bounds.Reached(bound.AdminAnswers)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close implements net.Conn.
func (v *visit) Close() error {
	v.gate.mu.Lock()
	v.gate.forget(v)
	v.gate.mu.Unlock()
	return v.Conn.Close()
}

// abort closes the connection at once. What the peer has not taken is dropped.
func (v *visit) abort() {
	if tcp, ok := v.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed in any case
	}
	_ = v.Conn.Close() // its user sees that
}
