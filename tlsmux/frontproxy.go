package tlsmux

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"turnout/internal/reactor"
)

// FrontProxyConfig configures a FrontProxy.
type FrontProxyConfig struct {
	// Timeout is the time from the accept until the PROXY header has to be complete. Default 5 s.
	Timeout time.Duration
	// Trusted are the peers whose header is believed; connections of others are closed without a byte. Empty: everybody is.
	Trusted []netip.Prefix
}

// FrontProxy takes connections that come through another proxy: each begins with a PROXY header, before TLS and everything
// else. A connection without one is closed without a byte. It may be shared by all loops and ports.
type FrontProxy struct {
	timeout  atomic.Int64 // in nanoseconds
	trusted  []netip.Prefix
	rejected atomic.Uint64
}

// NewFrontProxy checks the configuration.
func NewFrontProxy(cfg FrontProxyConfig) (*FrontProxy, error) {
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("cannot make PROXY protocol acceptor: Timeout is %v", cfg.Timeout)
	}
	f := &FrontProxy{trusted: cfg.Trusted}
	f.SetTimeout(cfg.Timeout)
	return f, nil
}

// SetTimeout replaces FrontProxyConfig.Timeout for connections that are accepted from now on; 0 is the default.
func (f *FrontProxy) SetTimeout(d time.Duration) { f.timeout.Store(int64(cmp.Or(d, 5*time.Second))) }

// trusts reports that a peer may say who its client is.
func (f *FrontProxy) trusts(peer netip.Addr) bool {
	peer = peer.Unmap().WithZone("")
	return len(f.trusted) == 0 || slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// Rejected counts connections closed because their PROXY header was missing, wrong, late or of a peer that is not trusted.
func (f *FrontProxy) Rejected() uint64 { return f.rejected.Load() }

// Accept wraps the accept function of a port: next gets the connection once its header was read. Its addresses are then those
// the header announces, and its first byte is the one after the header.
func (f *FrontProxy) Accept(next func(*reactor.Conn) reactor.Handler) func(*reactor.Conn) reactor.Handler {
	return func(c *reactor.Conn) reactor.Handler {
		if !f.trusts(c.RemoteAddr().Addr()) {
			f.rejected.Add(1)
			return nil
		}
		a := &announcing{front: f, conn: c, next: next}
		a.timer = c.NewTimer(a.reject)
		a.timer.Reset(time.Duration(f.timeout.Load()))
		return a
	}
}

// announcing is a connection whose PROXY header is not complete.
type announcing struct {
	front *FrontProxy
	conn  *reactor.Conn
	timer *reactor.Timer
	next  func(*reactor.Conn) reactor.Handler
	over  bool
}

func (a *announcing) reject() {
	if a.over {
		return
	}
	a.over = true
	a.timer.Stop()
	a.front.rejected.Add(1)
	a.conn.CloseNow(false)
}

// Connected implements reactor.Handler.
func (a *announcing) Connected(*reactor.Conn) {}

// Data implements reactor.Handler.
func (a *announcing) Data(c *reactor.Conn, p []byte) int {
	if a.over {
		return len(p)
	}
	said, n, err := ParseProxy(p)
	var bad *ProxyError
	switch {
	case errors.As(err, &bad):
		a.reject()
		return len(p)
	case n == 0:
		return 0
	}
	a.over = true
	a.timer.Stop()
	if said.Source.IsValid() {
		c.Announce(said.Destination, said.Source)
	}
	h := a.next(c)
	if h == nil {
		c.CloseNow(false)
		return len(p)
	}
	c.SetHandler(h)
	return n
}

// EOF implements reactor.Handler.
func (a *announcing) EOF(*reactor.Conn) { a.reject() }

// Drained implements reactor.Handler.
func (a *announcing) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler.
func (a *announcing) Closed(*reactor.Conn, error) { a.reject() }
