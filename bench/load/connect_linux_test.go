package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// connectProfile is a short run against a server with its configuration.
func connectProfile(addr netip.AddrPort, cfg *tls.Config) ConnectProfile {
	return ConnectProfile{
		Addr: addr, TLS: &tls.Config{ServerName: "bench.test"}, Certificate: cfg.Certificates[0].Certificate[0],
		Dialers: 2, Span: Span{Measure: 30 * time.Millisecond},
	}
}

// answerOne reads one request, if there is one, and answers it, and closes when the client has.
func answerOne(c net.Conn) {
	r := bufio.NewReader(c)
	if _, err := http.ReadRequest(r); err != nil {
		return
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", BodySize, Body(0))
	_, _ = io.Copy(io.Discard, r)
}

func TestConnectCountsHandshakes(t *testing.T) {
	cfg, _ := tlsConfigs(t, 0)
	var full, resumed atomic.Int64
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		if s.DidResume {
			resumed.Add(1)
		} else {
			full.Add(1)
		}
		return nil
	}
	addr := serve(t, cfg, answerOne)
	for _, resume := range []bool{false, true} {
		full.Store(0)
		resumed.Store(0)
		p := connectProfile(addr, cfg)
		p.Resume = resume
		if resume {
			p.Request, p.Body = []byte("GET / HTTP/1.1\r\nHost: bench.test\r\n\r\n"), Body(0)
		}
		var marks []bool
		p.Mark = func(end bool) { marks = append(marks, end) }
		res, err := Connect(t.Context(), p)
		if err != nil || res.First != nil || res.Requests == 0 || res.Elapsed < p.Measure {
			t.Fatalf("resume %v: %+v, %v", resume, res, err)
		}
		if len(marks) != 2 || marks[0] || !marks[1] {
			t.Errorf("marks are %v", marks)
		}
		f, r := full.Load(), resumed.Load()
		counted, others := f, r
		if resume {
			counted, others = r, f-int64(p.Dialers) // the first of each dialer is a full one
		}
		// Connections under way at the end are cut off.
		if counted < int64(res.Requests) || others < 0 || others > int64(p.Dialers) {
			t.Errorf("resume %v: counted %d, the server %d full and %d resumed", resume, res.Requests, f, r)
		}
	}
}

func TestConnectRefusesWhatIsNotCompared(t *testing.T) {
	for name, c := range map[string]struct {
		change func(server *tls.Config, p *ConnectProfile)
		handle func(net.Conn)
		want   string
	}{
		"TLS 1.2":             {change: func(s *tls.Config, _ *ConnectProfile) { s.MaxVersion = tls.VersionTLS12 }, want: "protocol version"},
		"another group":       {change: func(s *tls.Config, _ *ConnectProfile) { s.CurvePreferences = []tls.CurveID{tls.CurveP256} }, want: "handshake"},
		"another certificate": {change: func(_ *tls.Config, p *ConnectProfile) { p.Certificate = []byte("x") }, want: "certificate"},
		"no resumption": {change: func(s *tls.Config, p *ConnectProfile) { s.SessionTicketsDisabled, p.Resume = true, true },
			want: "resumed: false, want true"},
		"a wrong answer": {change: func(_ *tls.Config, p *ConnectProfile) {
			p.Request, p.Body = []byte("GET / HTTP/1.1\r\nHost: bench.test\r\n\r\n"), Body(1)
		}, want: ErrBody.Error()},
		"bytes nobody asked for": {handle: func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad request\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, want: ErrExcess.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := tlsConfigs(t, 0)
			handle := c.handle
			if handle == nil {
				handle = answerOne
			}
			var p ConnectProfile
			if c.change != nil {
				c.change(cfg, &p)
			}
			full := connectProfile(serve(t, cfg, handle), cfg)
			full.Resume, full.Request, full.Body = p.Resume, p.Request, p.Body
			if p.Certificate != nil {
				full.Certificate = p.Certificate
			}
			res, err := Connect(t.Context(), full)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want %q", res, err, c.want)
			}
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	cfg, _ := tlsConfigs(t, 0)
	p := connectProfile(serve(t, cfg, answerOne), cfg)
	p.Measure = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	p.Mark = func(bool) { cancel() }
	if res, err := Connect(ctx, p); err == nil {
		t.Errorf("got %+v", res)
	}
	if _, err := Connect(ctx, ConnectProfile{}); err == nil {
		t.Error("a profile of nothing was accepted")
	}
}

func TestAnswerServesUntilItIsDone(t *testing.T) {
	r := newRig(t, 1)
	stop, done := make(chan struct{}), make(chan struct{})
	count := ask(t, r, stop)
	accepted := make(chan uint64)
	go func() { accepted <- r.Answer(done) }()
	time.AfterFunc(20*time.Millisecond, func() { close(stop) })
	if n := <-count; n == 0 {
		t.Error("nothing was answered")
	}
	close(done)
	if n := <-accepted; n != 1 {
		t.Errorf("accepted %d connections, want 1", n)
	}
}
