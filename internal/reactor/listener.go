package reactor

import "net/netip"

// Listener accepts connections for one loop.
type Listener struct{ loop *Loop }

// Listen accepts connections on addr.
func (l *Loop) Listen(addr netip.AddrPort, accept func(c *Conn) Handler) (*Listener, error) {
	panic("not yet")
}

// Addr is the address in use.
func (ln *Listener) Addr() netip.AddrPort { panic("not yet") }

// Pause stops accepting.
func (ln *Listener) Pause() { panic("not yet") }

// Resume accepts again.
func (ln *Listener) Resume() { panic("not yet") }

// Close stops listening.
func (ln *Listener) Close() { panic("not yet") }
