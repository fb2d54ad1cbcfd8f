package adversary

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// pipeline sends requests and reads nothing.
func pipeline(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.HTTP)
		if c == nil {
			return
		}
		defer c.Close()
		many := []byte(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 1000))
		for ctx.Err() == nil {
			_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			if n, err := c.Write(many); err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
				many = append(many[n:], many[:n]...)
			}
		}
	}
}

// streams2 is a client of HTTP/2 that does what it likes.
type streams2 struct {
	c   net.Conn
	fr  *http2.Framer
	enc *hpack.Encoder
	b   strings.Builder
	id  uint32
}

func newStreams2(t *targets, settings ...http2.Setting) *streams2 {
	c := dialed(t.HTTP)
	if c == nil {
		return nil
	}
	s := &streams2{c: c, fr: http2.NewFramer(c, c), id: 1}
	s.enc = hpack.NewEncoder(&s.b)
	_, err := io.WriteString(c, http2.ClientPreface)
	if err != nil || s.fr.WriteSettings(settings...) != nil || s.fr.WriteSettingsAck() != nil {
		c.Close()
		return nil
	}
	return s
}

// get opens a stream.
func (s *streams2) get(host, path string) (uint32, error) {
	s.b.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", host}, {":path", path}} {
		_ = s.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	id := s.id
	s.id += 2
	_ = s.c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	err := s.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(s.b.String()), EndStream: true, EndHeaders: true})
	return id, err //nolint:wrapcheck // only that there was one counts
}

// openStreams opens streams and reads nothing.
func openStreams(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		s := newStreams2(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		if s == nil {
			return
		}
		defer s.c.Close()
		_ = s.fr.WriteWindowUpdate(0, 1<<30)
		for ctx.Err() == nil {
			if _, err := s.get(host, path); err != nil {
				return
			}
		}
	}
}

// shutWindows opens streams whose windows stay shut, and reads.
func shutWindows(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		s := newStreams2(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if s == nil {
			return
		}
		defer s.c.Close()
		for range 20 {
			if _, err := s.get(host, path); err != nil {
				return
			}
		}
		go func() { _, _ = io.Copy(io.Discard, s.c) }()
		held(ctx, s.c)
	}
}

// leaveEvents opens event streams and gives them up, again and again.
func leaveEvents(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		s := newStreams2(t)
		if s == nil {
			return
		}
		defer s.c.Close()
		go func() { _, _ = io.Copy(io.Discard, s.c) }()
		for n := 0; ctx.Err() == nil && n < 15; n++ { // a connection gives up so many streams as it may
			var ids []uint32
			for range 10 {
				id, err := s.get(host, path)
				if err != nil {
					return
				}
				ids = append(ids, id)
			}
			pause(ctx, 58*time.Millisecond)
			for _, id := range ids {
				_ = s.fr.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
	}
}

// leaveTunnels opens tunnels, ends its side before the answer, reads that and leaves.
func leaveTunnels(host, path string) func(context.Context, *targets) {
	return func(_ context.Context, t *targets) {
		c, ok := dialed(t.HTTP).(*net.TCPConn)
		if !ok {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", path, host)
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, _ = http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // a tunnel has none
	}
}

// tinyRequests pipelines the smallest requests there are, and reads the answers.
func tinyRequests(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.HTTP)
		if c == nil {
			return
		}
		defer c.Close()
		go func() { _, _ = io.Copy(io.Discard, c) }()
		many := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 2000))
		for ctx.Err() == nil {
			if _, err := c.Write(many); err != nil {
				return
			}
		}
	}
}

// tinyStreams keeps as many streams open as a connection may have, with the smallest requests there are, and reads the answers.
func tinyStreams(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		s := newStreams2(t)
		if s == nil {
			return
		}
		defer s.c.Close()
		stop := context.AfterFunc(ctx, func() { s.c.Close() })
		defer stop()
		in, out := bufio.NewReaderSize(s.c, 64<<10), bufio.NewWriterSize(s.c, 64<<10)
		s.fr = http2.NewFramer(out, in)
		for open := 0; ; {
			for ; open < mostStreams && s.id < 1<<30; open++ {
				if _, err := s.get(host, "/"); err != nil {
					return
				}
			}
			if in.Buffered() == 0 && out.Flush() != nil {
				return
			}
			f, err := s.fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				if f.StreamEnded() {
					open--
				}
			case *http2.DataFrame:
				_ = s.fr.WriteWindowUpdate(0, max(f.Length, 1))
				if f.StreamEnded() {
					open--
				}
			case *http2.RSTStreamFrame:
				open--
			}
		}
	}
}

// mostStreams is how many streams the router lets a connection have.
const mostStreams = 100

// deafHandshake begins a TLS handshake and does not read.
func deafHandshake(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.HTTPS)
		if c == nil {
			return
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(1024)
		}
		hello := &writeOnly{c}
		_ = tls.Client(hello, &tls.Config{ServerName: host, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).HandshakeContext(ctx) //nolint:gosec // nothing is read anyway
		held(ctx, c)
	}
}

// writeOnly is a connection from which nothing is read.
type writeOnly struct{ net.Conn }

// Read implements net.Conn: it fails, so that the handshake stops after its first message.
func (writeOnly) Read([]byte) (int, error) { return 0, io.EOF }

// askLoop sends a request that goes round for ever.
func askLoop(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		_, _ = get(ctx, "http://"+t.HTTP+"/", host, 5*time.Second)
		pause(ctx, 200*time.Millisecond)
	}
}

// idleAdmin holds a connection to the admin port.
func idleAdmin(ctx context.Context, t *targets) {
	if c := dialed(t.Admin); c != nil {
		held(ctx, c)
	}
}

// deafReader asks the admin port for a long page and does not read it.
func deafReader(path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.Admin)
		if c == nil {
			return
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(1024)
		}
		_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: admin\r\n\r\n")
		held(ctx, c)
	}
}
