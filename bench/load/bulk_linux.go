package load

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"turnout/bench/site"
)

// MiB is the unit of Bulk's results, in bytes.
const MiB = 1 << 20

// bulkChunk is what the backend writes and the client reads at most at once.
const bulkChunk = 256 << 10

// Bulk is a backend and a client of TLS that is passed through: the client sends the ClientHello that crypto/tls
// makes for a name, and gets bytes whose values are known, which no proxy has a reason to look at.
type Bulk struct {
	*site.Backend

	pattern []byte
	hello   []byte
	size    int64
	other   atomic.Bool // the backend got another ClientHello
}

// NewBulk listens on loopback. A connection whose ClientHello asks for name gets size bytes.
func NewBulk(name string, size int64) *Bulk {
	b := &Bulk{hello: ClientHello(&tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}), size: size, pattern: make([]byte, bulkChunk)}
	for i := range b.pattern {
		b.pattern[i] = patternAt(int64(i))
	}
	b.Backend = site.ServeConns(netip.AddrPortFrom(upstreamHost(0), 0), b.serve)
	return b
}

// patternAt is the byte at an offset. It repeats after bulkChunk.
func patternAt(offset int64) byte {
	offset %= bulkChunk
	return byte(offset ^ offset>>8 ^ offset>>16)
}

// ClientHello is the first flight of crypto/tls as it is sent.
func ClientHello(cfg *tls.Config) []byte {
	var sent deaf
	_ = tls.Client(&sent, cfg).Handshake() // it fails once the hello is sent
	return sent.got
}

// deaf is a connection that keeps what is sent and answers nothing.
type deaf struct {
	net.Conn

	got []byte
}

func (d *deaf) Write(p []byte) (int, error) {
	d.got = append(d.got, p...)
	return len(p), nil
}

func (*deaf) Read([]byte) (int, error)         { return 0, io.EOF }
func (*deaf) Close() error                     { return nil }
func (*deaf) SetDeadline(time.Time) error      { return nil }
func (*deaf) SetWriteDeadline(time.Time) error { return nil }

// serve sends to one connection. A peer that goes is no failure: the client notices what is missing.
func (b *Bulk) serve(c net.Conn) {
	hello := make([]byte, len(b.hello))
	if _, err := io.ReadFull(c, hello); err != nil {
		return
	}
	if string(hello) != string(b.hello) {
		b.other.Store(true)
		return
	}
	for left := b.size; left > 0; {
		n, err := c.Write(b.pattern[:min(left, bulkChunk)])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

// BulkProfile describes one Run.
type BulkProfile struct {
	Span

	Addr    netip.AddrPort // the proxy
	Streams int            // connections at a time, each followed by another when it has got everything; at least 1
}

// Run transfers and counts whole MiB as requests. Anything but the right bytes in the right number, as far as it is
// looked at, is a failure and ends the run.
func (b *Bulk) Run(ctx context.Context, p BulkProfile) (res Result, err error) {
	defer site.Catch(&err)
	if p.Streams < 1 || p.Measure <= 0 {
		site.Stopf("cannot transfer: neither Streams nor Measure may be missing")
	}
	outer := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var received atomic.Int64
	var group sync.WaitGroup
	m := newMeter(p.Span, MiB, func() Result { return Result{Requests: uint64(received.Load())} })
	for range p.Streams {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := site.Try(func() { b.transfer(ctx, p.Addr, m.Patience, &received) }); err != nil && ctx.Err() == nil {
					fail(err)
				}
			}
		})
	}
	err = site.Try(func() { res = m.wait(ctx) })
	fail(nil)
	group.Wait()
	if b.other.Load() {
		err = errors.New("the backend got another ClientHello than the client sent")
	}
	if err != nil && outer.Err() == nil {
		res.Failures, res.First = 1, err
	}
	return res, err
}

// transfer is one connection.
func (b *Bulk) transfer(ctx context.Context, addr netip.AddrPort, patience time.Duration, received *atomic.Int64) {
	c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp4", addr.String())
	site.Checkf(err, "cannot connect")
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_, err = c.Write(b.hello)
	site.Checkf(err, "cannot send the ClientHello")
	buf := make([]byte, bulkChunk)
	for at := int64(0); ; {
		site.Checkf(c.SetReadDeadline(time.Now().Add(patience)), "cannot wait for bytes")
		n, err := c.Read(buf)
		if n > 0 && (buf[0] != patternAt(at) || buf[n-1] != patternAt(at+int64(n)-1)) {
			site.Stopf("wrong bytes between %d and %d", at, at+int64(n))
		}
		at += int64(n)
		received.Add(int64(n))
		if errors.Is(err, io.EOF) && at == b.size {
			return
		}
		site.Checkf(err, "got %d of %d bytes", at, b.size)
	}
}
