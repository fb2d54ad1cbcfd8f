package load

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"turnout/bench/site"
)

// backend answers every request with a fixed 200: one that is its head (a GET), and a POST once its body has come, byte for byte that of
// Traffic. A request for a WebSocket makes its connection an echo, and a connection that begins as one of HTTP/2 is a podH2's. There is
// one listener per upstream, all on one port of different loopback addresses.
type backend struct {
	loop     *loop
	addrs    []netip.AddrPort
	bodies   [][]byte
	answers  [][]byte // heads and bodies
	accepted uint64   // connections
	served   uint64   // requests
	buffer   []byte   // shared read buffer: what is left of a step is copied to the connection
	pattern  []byte   // of uploads, as long as they were so far
	capture  bool     // keep the last head for Probe
	head     []byte
}

// upstreamHost is the loopback address of upstream n.
func upstreamHost(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 1, byte(n + 1)}) }

// newBackend listens for n upstreams. After an error, closing the loop frees what was opened.
func newBackend(l *loop, n int) *backend {
	b := &backend{loop: l, buffer: make([]byte, 256<<10)}
	port := uint16(0)
	for i := range n {
		ln, err := net.Listen("tcp4", netip.AddrPortFrom(upstreamHost(i), port).String())
		site.Checkf(err, "cannot listen for upstream %d", i)
		addr := ln.Addr().(*net.TCPAddr).AddrPort()
		port = addr.Port()
		b.addrs = append(b.addrs, addr)
		fd := take(ln.(*net.TCPListener))
		l.add(fd, &backendListener{backend: b, fd: fd, upstream: i})
	}
	b.size(BodySize)
	return b
}

// size has answers carry bodies of so many bytes from now on.
func (b *backend) size(size int) {
	b.bodies, b.answers = nil, nil
	for i := range b.addrs {
		body := sized(i, size)
		b.bodies = append(b.bodies, body)
		b.answers = append(b.answers, fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", size, body))
	}
}

// backendListener accepts the connections of one upstream.
type backendListener struct {
	backend  *backend
	fd       int
	upstream int
}

func (ln *backendListener) ready() {
	for {
		fd, _, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // nothing left, or the peer has gone already: the next event tells
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		ln.backend.loop.add(fd, &backendConn{backend: ln.backend, fd: fd, upstream: ln.upstream})
		ln.backend.accepted++
	}
}

// backendConn is one connection of a proxy to an upstream.
type backendConn struct {
	backend  *backend
	fd       int
	upstream int
	rest     []byte // beginning of a head that has not arrived completely
	upload   int    // size of the body that comes now
	got      int    // of it
	echo     bool
	out      []byte // that the socket has not taken yet; nothing is read meanwhile
}

func (c *backendConn) ready() {
	b := c.backend
	if len(c.out) > 0 {
		if !c.write(c.out) || len(c.out) > 0 {
			return
		}
		b.loop.wants(c.fd, false)
		c.work(b.buffer[:copy(b.buffer, c.rest)])
		return
	}
	kept := copy(b.buffer, c.rest)
	n, err := uninterrupted(unix.Read, c.fd, b.buffer[kept:])
	if errors.Is(err, unix.EAGAIN) {
		return
	}
	if err != nil || n == 0 {
		b.loop.remove(c.fd)
		return
	}
	c.work(b.buffer[:kept+n])
}

// work does what p, which is in the shared buffer, asks for, and keeps what is left of it.
func (c *backendConn) work(p []byte) {
	for len(p) > 0 && len(c.out) == 0 {
		n, ok := c.one(p)
		if !ok {
			return
		}
		if n == 0 {
			break
		}
		p = p[n:]
	}
	if len(p) > maxHead && len(c.out) == 0 {
		c.backend.loop.remove(c.fd)
		return
	}
	c.rest = append(c.rest[:0], p...)
}

var websocketToken = []byte("websocket")

// one takes a head, or some of what follows one, from p and returns how many bytes that were; 0 = it is incomplete. It returns false
// when the connection is no longer c's.
func (c *backendConn) one(p []byte) (int, bool) {
	b := c.backend
	switch {
	case c.echo:
		return len(p), c.write(p)
	case c.upload > 0:
		n := min(len(p), c.upload-c.got)
		if !bytes.Equal(p[:n], b.pattern[c.got:c.got+n]) {
			b.loop.remove(c.fd) // what is missing shows in the answers
			return 0, false
		}
		if c.got += n; c.got < c.upload {
			return n, true
		}
		c.upload, c.got = 0, 0
		return n, c.answer()
	}
	end := bytes.Index(p, headEnd)
	if end < 0 {
		return 0, true
	}
	head, size := p[:end], end+len(headEnd)
	if bytes.HasPrefix([]byte(http2.ClientPreface), p[:size]) {
		if len(p) < len(http2.ClientPreface) {
			return 0, true
		}
		newPodH2(c, p[len(http2.ClientPreface):])
		return 0, false
	}
	if b.capture {
		b.head = append(b.head[:0], head...)
	}
	switch {
	case head[0] == 'P':
		if c.upload = b.uploadSize(head); c.upload > 0 {
			return size, true
		}
	case bytes.Contains(head, websocketToken):
		b.served++
		c.echo = true
		return size, c.write(switching)
	}
	return size, c.answer()
}

// uploadSize is the length of the body of a POST, whose bytes are in pattern then.
func (b *backend) uploadSize(head []byte) int {
	for line := range bytes.SplitSeq(head, lineEnd) {
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, contentLength) {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(value)))
			if n > len(b.pattern) {
				b.pattern = uploaded(n)
			}
			return n
		}
	}
	return 0
}

func (c *backendConn) answer() bool {
	c.backend.served++
	return c.write(c.backend.answers[c.upstream])
}

// write writes p and keeps in out what the socket does not take. It returns false when the connection is broken, which is closed then.
func (c *backendConn) write(p []byte) bool {
	b := c.backend
	n, err := uninterrupted(unix.Write, c.fd, p)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		b.loop.remove(c.fd)
		return false
	}
	was := len(c.out) > 0
	if c.out = p[n:]; len(c.out) > 0 && !was {
		if c.echo {
			c.out = bytes.Clone(c.out) // p is in the shared buffer
		}
		b.loop.wants(c.fd, true)
	}
	return true
}
