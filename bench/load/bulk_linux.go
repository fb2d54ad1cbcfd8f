package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// MiB is the unit of Bulk's results, in bytes.
const MiB = 1 << 20

// bulkChunk is what the backend writes and the client reads at most at once.
const bulkChunk = 256 << 10

// Bulk is a backend and a client of TLS that is passed through: the client sends the ClientHello that crypto/tls
// makes for a name, and gets bytes whose values are known, which no proxy has a reason to look at.
type Bulk struct {
	ln      net.Listener
	pattern []byte
	hello   []byte
	size    int64
	failed  atomic.Pointer[error] // of the backend
	group   sync.WaitGroup
}

// NewBulk listens on loopback. A connection whose ClientHello asks for name gets size bytes.
func NewBulk(name string, size int64) (*Bulk, error) {
	hello, err := clientHello(name)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp4", netip.AddrPortFrom(upstreamHost(0), 0).String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	b := &Bulk{ln: ln, hello: hello, size: size, pattern: make([]byte, bulkChunk)}
	for i := range b.pattern {
		b.pattern[i] = patternAt(int64(i))
	}
	b.group.Go(b.accept)
	return b, nil
}

// patternAt is the byte at an offset. It repeats after bulkChunk.
func patternAt(offset int64) byte {
	offset %= bulkChunk
	return byte(offset ^ offset>>8 ^ offset>>16)
}

// Addr is where the backend listens.
func (b *Bulk) Addr() netip.AddrPort { return b.ln.Addr().(*net.TCPAddr).AddrPort() }

// Close ends the backend. Connections must have ended.
func (b *Bulk) Close() {
	_ = b.ln.Close()
	b.group.Wait()
}

// clientHello is the first flight of crypto/tls.
func clientHello(name string) ([]byte, error) {
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(near, &tls.Config{ServerName: name}).Handshake() //nolint:gosec // it never gets an answer
	}()
	defer func() { _, _ = near.Close(), far.Close() }()
	head := make([]byte, 5)
	if _, err := io.ReadFull(far, head); err != nil {
		return nil, fmt.Errorf("cannot make a ClientHello: %w", err)
	}
	hello := make([]byte, len(head)+(int(head[3])<<8|int(head[4])))
	if _, err := io.ReadFull(far, hello[copy(hello, head):]); err != nil {
		return nil, fmt.Errorf("cannot make a ClientHello: %w", err)
	}
	return hello, nil
}

func (b *Bulk) accept() {
	for {
		c, err := b.ln.Accept()
		if err != nil {
			return
		}
		b.group.Go(func() { b.serve(c) })
	}
}

// serve sends to one connection. A peer that goes is no failure: the client notices what is missing.
func (b *Bulk) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	hello := make([]byte, len(b.hello))
	if _, err := io.ReadFull(c, hello); err != nil {
		return
	}
	if string(hello) != string(b.hello) {
		err := errors.New("the backend got another ClientHello than the client sent")
		b.failed.Store(&err)
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
	Addr    netip.AddrPort // the proxy
	Streams int            // connections at a time, each followed by another when it has got everything; at least 1
	// Warmup passes before the measured part, Measure is its length.
	Warmup, Measure time.Duration
	// Patience is the longest time that a connection may wait for a byte; 0 means 10 s.
	Patience time.Duration
	// Mark is called at the start (false) and at the end (true) of the measured part, while bytes flow. It may
	// be nil. Its error ends the run.
	Mark func(end bool) error
}

// Run transfers and counts whole MiB as requests. Anything but the right bytes in the right number, as far as it is
// looked at, is a failure and ends the run.
func (b *Bulk) Run(ctx context.Context, p BulkProfile) (Result, error) {
	if p.Streams < 1 || p.Measure <= 0 {
		return Result{}, errors.New("cannot transfer: neither Streams nor Measure may be missing")
	}
	if p.Patience <= 0 {
		p.Patience = 10 * time.Second
	}
	outer := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var received atomic.Int64
	var group sync.WaitGroup
	for range p.Streams {
		group.Go(func() {
			for ctx.Err() == nil {
				if err := b.transfer(ctx, &p, &received); err != nil && ctx.Err() == nil {
					fail(err)
				}
			}
		})
	}
	res, err := measured(ctx, p.Warmup, p.Measure, p.Mark, func() uint64 { return uint64(received.Load()) }, MiB)
	fail(nil)
	group.Wait()
	if bad := b.failed.Load(); bad != nil {
		err = *bad
	}
	if err != nil && outer.Err() == nil {
		res.Failures, res.First = 1, err
	}
	return res, err
}

// transfer is one connection.
func (b *Bulk) transfer(ctx context.Context, p *BulkProfile, received *atomic.Int64) error {
	c, err := (&net.Dialer{Timeout: p.Patience}).DialContext(ctx, "tcp4", p.Addr.String())
	if err != nil {
		return fmt.Errorf("cannot connect: %w", err)
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := c.Write(b.hello); err != nil {
		return fmt.Errorf("cannot send the ClientHello: %w", err)
	}
	buf := make([]byte, bulkChunk)
	for at := int64(0); ; {
		if err := c.SetReadDeadline(time.Now().Add(p.Patience)); err != nil {
			return fmt.Errorf("cannot wait for bytes: %w", err)
		}
		n, err := c.Read(buf)
		if n > 0 && (buf[0] != patternAt(at) || buf[n-1] != patternAt(at+int64(n)-1)) {
			return fmt.Errorf("wrong bytes between %d and %d", at, at+int64(n))
		}
		at += int64(n)
		received.Add(int64(n))
		switch {
		case errors.Is(err, io.EOF) && at == b.size:
			return nil
		case err != nil:
			return fmt.Errorf("got %d of %d bytes: %w", at, b.size, err)
		}
	}
}
