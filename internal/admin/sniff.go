package admin

import (
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// sniffed is a connection that becomes one of TLS when its first byte says so (RFC 8446 section 5.1). One goroutine reads; any may close it.
type sniffed struct {
	net.Conn             // a *visit, or what speaks through it
	config   *tls.Config // nil = it never does
	known    bool
	secure   atomic.Pointer[tls.Conn]
}

const handshakeRecord = 22

// Read implements net.Conn.
func (c *sniffed) Read(p []byte) (int, error) {
	if t := c.secure.Load(); t != nil {
		return t.Read(p)
	}
	if c.known || c.config == nil {
		return c.Conn.Read(p)
	}
	var first [1]byte
	n, err := c.Conn.Read(first[:])
	if n == 0 {
		if err == nil {
			err = errors.New("nothing was read")
		}
		return 0, err
	}
	c.known = true
	if first[0] != handshakeRecord {
		p[0] = first[0]
		return 1, nil
	}
	t := tls.Server(&begun{Conn: c.Conn, first: first[:]}, c.config)
	c.secure.Store(t)
	return t.Read(p)
}

// Write implements net.Conn.
func (c *sniffed) Write(p []byte) (int, error) {
	if t := c.secure.Load(); t != nil {
		return t.Write(p)
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn. The peer is notified (RFC 8446 section 6.1), which may take seconds when it does not read, unless the port is being closed.
func (c *sniffed) Close() error {
	t, v := c.secure.Load(), visitOf(c)
	if t != nil && (v == nil || !v.gate.closed()) {
		return t.Close()
	}
	return c.Conn.Close()
}

// begun is a connection of which the first bytes have been read.
type begun struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (c *begun) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}
