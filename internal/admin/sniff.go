package admin

import (
	"crypto/tls"
	"errors"
	"net"
)

// sniffer is a listener whose connections may begin with TLS: their first byte tells (RFC 8446 section 5.1).
type sniffer struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener. Nothing is read yet: that is for the goroutine of the connection.
func (s *sniffer) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffed{Conn: c, config: s.config}, nil
}

// sniffed is a connection that becomes one of TLS when its first byte says so. It is used by one goroutine.
type sniffed struct {
	net.Conn // of TCP, then perhaps of TLS
	config   *tls.Config
	known    bool
}

const handshakeRecord = 22

// Read implements net.Conn.
func (c *sniffed) Read(p []byte) (int, error) {
	if !c.known {
		var first [1]byte
		n, err := c.Conn.Read(first[:])
		if n == 0 {
			if err == nil {
				err = errors.New("nothing was read")
			}
			return 0, err
		}
		c.known = true
		begun := &begun{Conn: c.Conn, first: first[:]}
		c.Conn = begun
		if first[0] == handshakeRecord {
			c.Conn = tls.Server(begun, c.config)
		}
	}
	return c.Conn.Read(p)
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
