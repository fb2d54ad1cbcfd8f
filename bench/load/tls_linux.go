package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// errAgain says that a socket has nothing to read now. crypto/tls does not remember temporary errors,
// so a read can be tried again.
var errAgain net.Error = againError{}

type againError struct{}

func (againError) Error() string   { return "nothing to read yet" }
func (againError) Timeout() bool   { return true }
func (againError) Temporary() bool { return true }

// rawConn makes a descriptor the transport of a tls.Conn.
type rawConn struct {
	fd int
}

func (c rawConn) Read(p []byte) (int, error) {
	n, err := readSocket(c.fd, p)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, errAgain
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c rawConn) Write(p []byte) (int, error) {
	n, err := writeSocket(c.fd, p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// The owner of the descriptor closes it; deadlines are the socket's own timeouts.

func (rawConn) Close() error                     { return nil }
func (rawConn) LocalAddr() net.Addr              { return nil }
func (rawConn) RemoteAddr() net.Addr             { return nil }
func (rawConn) SetDeadline(time.Time) error      { return nil }
func (rawConn) SetReadDeadline(time.Time) error  { return nil }
func (rawConn) SetWriteDeadline(time.Time) error { return nil }

// dial opens one connection, with TLS if cfg is not nil, and makes it non-blocking. A TLS connection
// must be TLS 1.3 with AES-128-GCM, so that no side is compared with a cheaper or dearer cipher.
func dial(addr netip.AddrPort, cfg *tls.Config) (int, io.ReadWriter, error) {
	fd, err := connect(addr)
	if err != nil {
		return 0, nil, err
	}
	var rw io.ReadWriter = rawConn{fd: fd}
	if cfg != nil {
		conn := tls.Client(rawConn{fd: fd}, cfg)
		if err = conn.Handshake(); err == nil {
			err = checkCipher(conn.ConnectionState())
		}
		rw = conn
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		_ = unix.Close(fd)
		return 0, nil, fmt.Errorf("cannot open a connection to %v: %w", addr, err)
	}
	return fd, rw, nil
}

func checkCipher(s tls.ConnectionState) error {
	if s.Version != tls.VersionTLS13 || s.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
		return fmt.Errorf("got %s with %s, want TLS 1.3 with TLS_AES_128_GCM_SHA256",
			tls.VersionName(s.Version), tls.CipherSuiteName(s.CipherSuite))
	}
	return nil
}
