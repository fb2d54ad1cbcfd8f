package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Windows as browsers open them.
const (
	streamWindow = 6 << 20
	connWindow   = 15 << 20
	updateAfter  = 1 << 20
)

// dial opens a connection of TLS 1.3 that speaks protocol.
func (r *rig) dial(ctx context.Context, protocol string) (net.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{
		ServerName: "localhost", InsecureSkipVerify: true, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13, //nolint:gosec // its own certificate
	}}
	c, err := d.DialContext(ctx, "tcp", r.router.HTTPS)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	if got := c.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != protocol {
		_ = c.Close()
		return nil, fmt.Errorf("cannot speak %s: the router chose %q", protocol, got)
	}
	return c, nil
}

// downloadHTTP1 gets /large.
func (r *rig) downloadHTTP1(ctx context.Context) error {
	c, err := r.dial(ctx, "http/1.1")
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return fmt.Errorf("cannot ask: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(c, 256<<10), nil)
	if err != nil {
		return fmt.Errorf("cannot read an answer: %w", err)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, 256<<10))
	_ = resp.Body.Close()
	return whole(n, r.size, err)
}

func whole(n, want int64, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("cannot read a download: %w", err)
	case n != want:
		return fmt.Errorf("a download has %d bytes, want %d", n, want)
	}
	return nil
}

// stream is a connection of HTTP/2 with a request that is always the same.
type stream struct {
	c    net.Conn
	r    *bufio.Reader
	out  bytes.Buffer
	fr   *http2.Framer // writes to out
	head []byte
}

// connect greets, with windows that are open wide.
func (r *rig) connect(ctx context.Context, path string) (*stream, error) {
	c, err := r.dial(ctx, "h2")
	if err != nil {
		return nil, err
	}
	st := &stream{c: c, r: bufio.NewReaderSize(c, 256<<10)}
	st.fr = http2.NewFramer(&st.out, nil)
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}} {
		_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // the same block every time
	}
	st.head = block.Bytes()
	st.out.WriteString(http2.ClientPreface)
	_ = st.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow})
	_ = st.fr.WriteWindowUpdate(0, connWindow-65535)
	return st, nil
}

func (st *stream) ask(id uint32) {
	_ = st.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: st.head, EndHeaders: true, EndStream: true})
}

// flush sends what was written.
func (st *stream) flush() error {
	if st.out.Len() == 0 {
		return nil
	}
	_, err := st.c.Write(st.out.Bytes())
	st.out.Reset()
	if err != nil {
		return fmt.Errorf("cannot send: %w", err)
	}
	return nil
}

// next reads a frame and drops its payload. SETTINGS are acknowledged.
func (st *stream) next() (h http2.FrameHeader, err error) {
	var b [9]byte
	if _, err = io.ReadFull(st.r, b[:]); err != nil {
		return h, fmt.Errorf("cannot read: %w", err)
	}
	h.Length = uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
	h.Type, h.Flags, h.StreamID = http2.FrameType(b[3]), http2.Flags(b[4]), binary.BigEndian.Uint32(b[5:])
	if _, err = st.r.Discard(int(h.Length)); err != nil {
		return h, fmt.Errorf("cannot read: %w", err)
	}
	switch h.Type {
	case http2.FrameSettings:
		if !h.Flags.Has(http2.FlagSettingsAck) {
			_ = st.fr.WriteSettingsAck()
			err = st.flush()
		}
	case http2.FrameRSTStream, http2.FrameGoAway:
		err = errors.New("the router ended a stream or the connection")
	}
	return h, err
}

// downloadHTTP2 gets /large on one stream.
func (r *rig) downloadHTTP2(ctx context.Context) error {
	st, err := r.connect(ctx, "/large")
	if err != nil {
		return err
	}
	defer func() { _ = st.c.Close() }()
	st.ask(1)
	total, owed := int64(0), uint32(0)
	for {
		if err := st.flush(); err != nil {
			return err
		}
		h, err := st.next()
		if err != nil {
			return err
		}
		if h.Type != http2.FrameData {
			continue
		}
		total += int64(h.Length)
		if h.Flags.Has(http2.FlagDataEndStream) {
			return whole(total, r.size, nil)
		}
		if owed += h.Length; owed >= updateAfter {
			_ = st.fr.WriteWindowUpdate(0, owed)
			_ = st.fr.WriteWindowUpdate(1, owed)
			owed = 0
		}
	}
}

// storm keeps all streams busy until the requests are answered, and returns how long each took; the first tenth warms up.
func (r *rig) storm(ctx context.Context, o options) ([]time.Duration, error) {
	type result struct {
		times []time.Duration
		err   error
	}
	results := make(chan result, o.connections)
	for range o.connections {
		go func() {
			times, err := r.lane(ctx, o.streams/o.connections, o.requests/o.connections)
			results <- result{times, err}
		}()
	}
	var all []time.Duration
	var wrong []error
	for range o.connections {
		r := <-results
		all, wrong = append(all, r.times...), append(wrong, r.err)
	}
	return all, errors.Join(wrong...)
}

// lane is one connection with so many streams.
func (r *rig) lane(ctx context.Context, streams, requests int) ([]time.Duration, error) {
	st, err := r.connect(ctx, "/small")
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.c.Close() }()
	began := map[uint32]time.Time{}
	id := uint32(1)
	ask := func() {
		began[id] = time.Now()
		st.ask(id)
		id += 2
	}
	for range streams {
		ask()
	}
	times := make([]time.Duration, 0, requests)
	for done, owed := 0, uint32(0); done < requests; {
		if st.r.Buffered() == 0 {
			if err := st.flush(); err != nil {
				return nil, err
			}
		}
		h, err := st.next()
		if err != nil {
			return nil, err
		}
		if h.Type == http2.FrameData {
			if owed += h.Length; owed >= updateAfter {
				_ = st.fr.WriteWindowUpdate(0, owed)
				owed = 0
			}
		}
		if (h.Type == http2.FrameData || h.Type == http2.FrameHeaders) && h.Flags.Has(http2.FlagDataEndStream) {
			if done++; done > requests/10 {
				times = append(times, time.Since(began[h.StreamID]))
			}
			delete(began, h.StreamID)
			ask()
		}
	}
	return times, nil
}
