package adversary

import (
	"bufio"
	"context"
	"crypto/elliptic"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"turnout/bench/load"
	"turnout/bench/site"
	"turnout/internal/testkit/testcert"
	"turnout/internal/testkit/testhttp"
)

// pipeline sends requests and reads nothing.
func pipeline(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.HTTP)
		defer func() { _ = c.Close() }()
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

// newStreams returns streamsTo the HTTP port.
func newStreams(t *targets, settings ...http2.Setting) *site.H2 {
	return streamsTo(t.HTTP, settings...)
}

// streamsTo returns an HTTP/2 connection that acknowledges settings before they come.
func streamsTo(addr string, settings ...http2.Setting) *site.H2 {
	h := site.NewH2(dialed(addr), 64<<10, settings...)
	_ = h.WriteSettingsAck()
	return h
}

// openStreams opens streams and reads nothing.
func openStreams(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		h := newStreams(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		defer h.Close()
		_ = h.WriteWindowUpdate(0, 1<<30)
		for ctx.Err() == nil {
			_ = h.SetWriteDeadline(time.Now().Add(5 * time.Second))
			h.Get(host, path)
			h.Flush()
		}
	}
}

// shutWindows opens streams whose windows stay shut, and reads.
func shutWindows(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		h := newStreams(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		defer h.Close()
		for range 20 {
			h.Get(host, path)
		}
		h.Flush()
		go func() { _, _ = io.Copy(io.Discard, h.Conn) }()
		held(ctx, h.Conn)
	}
}

// leaveEvents opens event streams and gives them up, again and again.
func leaveEvents(host, path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		h := newStreams(t)
		defer h.Close()
		go func() { _, _ = io.Copy(io.Discard, h.Conn) }()
		for range 15 { // a connection gives up so many streams as it may
			var ids []uint32
			for range 10 {
				ids = append(ids, h.Get(host, path))
			}
			h.Flush()
			site.Check(site.Pause(ctx, 58*time.Millisecond))
			for _, id := range ids {
				_ = h.WriteRSTStream(id, http2.ErrCodeCancel)
			}
			h.Flush()
		}
	}
}

// leaveTunnels opens tunnels, ends its side before the answer, reads that and leaves.
func leaveTunnels(host, path string) func(context.Context, *targets) {
	return func(_ context.Context, t *targets) {
		c := dialed(t.HTTP)
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
		defer func() { _ = c.Close() }()
		go func() { _, _ = io.Copy(io.Discard, c) }()
		many := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 2000))
		for ctx.Err() == nil {
			site.Must(c.Write(many))
		}
	}
}

// tinyStreams opens as many streams as it may with the smallest requests.
func tinyStreams(host string) func(context.Context, *targets) {
	return fullOfStreams(func(t *targets) string { return t.HTTP }, func(h *site.H2) { h.Get(host, "/") })
}

// fullOfStreams keeps as many streams of a connection open as the router allows, and reads the
// responses. ask opens one.
func fullOfStreams(addr func(t *targets) string, ask func(h *site.H2)) func(context.Context, *targets) {
	const mostStreams = 100
	return func(ctx context.Context, t *targets) {
		h := streamsTo(addr(t))
		defer h.Close()
		stop := context.AfterFunc(ctx, func() { h.Close() })
		defer stop()
		for open := 0; ; {
			for ; open < mostStreams && h.ID < 1<<30; open++ {
				ask(h)
			}
			if h.Buffered() == 0 {
				h.Flush()
			}
			f := h.Next()
			if f.Type == http2.FrameData {
				_ = h.WriteWindowUpdate(0, max(f.Length, 1))
			}
			if site.Ends(f) || f.Type == http2.FrameRSTStream {
				open--
			}
		}
	}
}

// deafHandshake begins a TLS handshake and does not read.
func deafHandshake(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.HTTPS)
		_ = c.SetReadBuffer(1024)
		site.Must(c.Write(load.ClientHello(&tls.Config{ServerName: host, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})))
		held(ctx, c)
	}
}

// costlyChains presents client certificates that take many signature checks to refuse. They have as
// many possible issuers as a verification admits, or many more.
func costlyChains(host string) func(context.Context, *targets) {
	var mu sync.Mutex
	var known [2]tls.Certificate
	turn := 0
	next := func(authority []byte) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		turn = 1 - turn
		if known[turn].Certificate == nil {
			var err error
			if known[turn], err = testcert.NewStrangers(authority, nil, [...]int{8, 90}[turn], elliptic.P521()); err != nil {
				return nil, err
			}
		}
		return &known[turn], nil
	}
	return func(ctx context.Context, t *targets) {
		dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true, GetClientCertificate: func(q *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return next(q.AcceptableCAs[0])
		}}}
		c, err := dialer.DialContext(ctx, "tcp", t.HTTPS)
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, _ = c.Read(make([]byte, 1)) // the alert
	}
}

// askLoop sends a request that goes round for ever.
func askLoop(host string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		patient, end := context.WithTimeout(ctx, 5*time.Second)
		defer end()
		_, _, _ = testhttp.Get(patient, &http.Transport{DisableKeepAlives: true}, "http://"+t.HTTP+"/", host)
		_ = site.Pause(ctx, 200*time.Millisecond)
	}
}

// idleAdmin holds a connection to the admin port.
func idleAdmin(ctx context.Context, t *targets) {
	held(ctx, dialed(t.Admin))
}

// deafReader asks the admin port for a long page and does not read it.
func deafReader(path string) func(context.Context, *targets) {
	return func(ctx context.Context, t *targets) {
		c := dialed(t.Admin)
		_ = c.SetReadBuffer(1024)
		_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: admin\r\n\r\n")
		held(ctx, c)
	}
}
