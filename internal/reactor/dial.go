package reactor

import (
	"net/netip"
	"time"

	"turnout/internal/reactor/engine"
)

// Dial starts to connect to addr. h.Connected follows, or h.Closed with the reason, ErrDialTimeout
// after timeout (<= 0: the system's own); neither inside Dial itself. What is written before
// Connected is queued.
func (l *Loop) Dial(addr netip.AddrPort, h Handler, timeout time.Duration) *Conn {
	return l.DialTTL(addr, h, timeout, 0)
}

// DialTTL is Dial with a TTL for the packets of the connection, 0 = the system's default.
func (l *Loop) DialTTL(addr netip.AddrPort, h Handler, timeout time.Duration, ttl uint8) *Conn {
	c := &Conn{loop: l, h: h, state: stateConnecting}
	l.stats.Dialled++
	s, err := l.dial(addr, ttl, c)
	if err != nil {
		c.sock = noSocket{addr}
		c.bury(err)
		return c
	}
	c.sock = s
	l.link(c)
	if timeout > 0 {
		c.arm(timeout)
	}
	return c
}

// dial makes the socket of c within the budget.
func (l *Loop) dial(addr netip.AddrPort, ttl uint8, c *Conn) (engine.Socket, error) {
	if l.ended {
		return nil, ErrClosed
	}
	b := l.cfg.Budget
	if b != nil && !b.spend(1) {
		return nil, ErrExhausted
	}
	s, err := l.eng.Dial(addr, ttl)
	if err == nil {
		if err = l.eng.Register(s, c); err != nil {
			s.Close(true)
		}
	}
	switch {
	case b == nil:
	case err == nil:
		c.flags |= flagDialled
	default:
		b.restore(1)
		if Exhausted(err) {
			b.failures.Add(1)
		}
	}
	return s, err
}

// connected ends the connecting state. Only a failure is asked for: the question is a system call.
func (c *Conn) connected(ev engine.Events) {
	if ev&engine.Err != 0 {
		if err := c.sock.(engine.Dialer).ConnectError(); err != nil {
			c.kill(err, false)
			return
		}
	}
	c.disarm()
	c.seldom = nil
	c.state = stateOpen
	c.flags |= flagWritable
	if c.Pending() > 0 || c.flags&flagShut != 0 {
		c.markDirty()
	}
	c.h.Connected(c)
}

// noSocket stands in for the socket of a Conn that could not be dialled.
type noSocket struct{ peer netip.AddrPort }

func (noSocket) Read([]byte) (int, error)        { return 0, ErrClosed }
func (noSocket) Write([]byte) (int, error)       { return 0, ErrClosed }
func (noSocket) Writev(a, b []byte) (int, error) { return 0, ErrClosed }
func (noSocket) CloseWrite() error               { return ErrClosed }
func (noSocket) Close(bool)                      {}
func (noSocket) Local() netip.AddrPort           { return netip.AddrPort{} }
func (s noSocket) Remote() netip.AddrPort        { return s.peer }
