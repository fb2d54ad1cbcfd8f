package load

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// backend answers every request that ends with its head (a GET) with a fixed 200. It has one listener
// per upstream, all on one port of different loopback addresses.
type backend struct {
	loop     *loop
	addrs    []netip.AddrPort
	bodies   [][]byte
	accepted uint64 // connections
	served   uint64 // requests
	buffer   []byte // shared read buffer: what is left of a step is copied to the connection
	capture  bool   // keep the last head for Probe
	head     []byte
}

// upstreamHost is the loopback address of upstream n.
func upstreamHost(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 1, byte(n + 1)}) }

// newBackend listens for n upstreams. After an error, closing the loop frees what was opened.
func newBackend(l *loop, n int) *backend {
	b := &backend{loop: l, buffer: make([]byte, 64<<10)}
	port := uint16(0)
	for i := range n {
		ln, err := net.Listen("tcp4", netip.AddrPortFrom(upstreamHost(i), port).String())
		site.Checkf(err, "cannot listen for upstream %d", i)
		addr := ln.Addr().(*net.TCPAddr).AddrPort()
		port = addr.Port()
		body := Body(i)
		answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		b.addrs, b.bodies = append(b.addrs, addr), append(b.bodies, body)
		fd := take(ln.(*net.TCPListener))
		l.add(fd, &backendListener{backend: b, fd: fd, answer: answer})
	}
	return b
}

// backendListener accepts the connections of one upstream.
type backendListener struct {
	backend *backend
	fd      int
	answer  []byte
}

func (ln *backendListener) ready() {
	for {
		fd, _, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // nothing left, or the peer has gone already: the next event tells
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		ln.backend.loop.add(fd, &backendConn{backend: ln.backend, fd: fd, answer: ln.answer})
		ln.backend.accepted++
	}
}

// backendConn is one connection of a proxy to an upstream.
type backendConn struct {
	backend *backend
	fd      int
	answer  []byte
	rest    []byte // beginning of a head that has not arrived completely
}

func (c *backendConn) ready() {
	b := c.backend
	kept := copy(b.buffer, c.rest)
	n, err := uninterrupted(unix.Read, c.fd, b.buffer[kept:])
	if errors.Is(err, unix.EAGAIN) {
		return
	}
	if err != nil || n == 0 {
		b.loop.remove(c.fd)
		return
	}
	p := b.buffer[:kept+n]
	for {
		end := bytes.Index(p, headEnd)
		if end < 0 {
			break
		}
		b.served++
		if b.capture {
			b.head = append(b.head[:0], p[:end]...)
		}
		p = p[end+len(headEnd):]
		// An answer is far smaller than an empty socket buffer; a peer that does not read loses the connection.
		if n, err := uninterrupted(unix.Write, c.fd, c.answer); err != nil || n != len(c.answer) {
			b.loop.remove(c.fd)
			return
		}
	}
	if len(p) > maxHead {
		b.loop.remove(c.fd)
		return
	}
	c.rest = append(c.rest[:0], p...)
}
