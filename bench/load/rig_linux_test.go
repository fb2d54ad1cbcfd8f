package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
)

func newRig(t *testing.T, upstreams int) *Rig {
	t.Helper()
	r, err := NewRig(upstreams)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func traffic(t *testing.T, cfg TrafficConfig) *Traffic {
	t.Helper()
	tr, err := NewTraffic(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// serve accepts connections for a test and hands each to handle on its own goroutine.
func serve(t *testing.T, cfg *tls.Config, handle func(net.Conn)) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	addr := ln.Addr().(*net.TCPAddr).AddrPort()
	if cfg != nil {
		ln = tls.NewListener(ln, cfg)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return addr
}

// answerAll answers each request of c with what reply returns for its number on this connection.
func answerAll(c net.Conn, reply func(n int) string) {
	br := bufio.NewReader(c)
	for n := 0; ; n++ {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		_ = req.Body.Close()
		out := reply(n)
		if out == "" {
			return
		}
		if _, err := io.WriteString(c, out); err != nil {
			return
		}
	}
}

func ok(upstream int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", BodySize, Body(upstream))
}

func TestDriveCountsExactly(t *testing.T) {
	r := newRig(t, 3)
	for i, addr := range r.Upstreams() {
		// Host 0 belongs to upstream 0, so the others answer with the wrong body.
		res, err := r.Drive(t.Context(), Profile{Addr: addr, Conns: 4, Requests: 500, Traffic: traffic(t, TrafficConfig{Upstreams: 3})})
		if i == 0 {
			if err != nil || res.Requests != 500 || res.Failures != 0 || res.Connects > 4 {
				t.Errorf("upstream 0: %+v, %v; want 500 requests on at most 4 connections", res, err)
			}
			continue
		}
		if res.Requests != 0 || res.Failures == 0 || !errors.Is(res.First, ErrBody) {
			t.Errorf("upstream %d: %+v; want failures with ErrBody only", i, res)
		}
	}
}

func TestDriveWarmsUpAndMarks(t *testing.T) {
	r := newRig(t, 1)
	var marks []bool
	var begin, end time.Time
	start := time.Now()
	res, err := r.Drive(t.Context(), Profile{
		Addr: r.Upstreams()[0], Conns: 2, Traffic: traffic(t, TrafficConfig{}),
		Span: Span{Warmup: 30 * time.Millisecond, Measure: 50 * time.Millisecond, Mark: func(last bool) {
			marks = append(marks, last)
			if last {
				end = time.Now()
			} else {
				begin = time.Now()
			}
		}},
	})
	if err != nil || res.Requests == 0 || res.Failures != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(marks) != 2 || marks[0] || !marks[1] {
		t.Fatalf("marks %v, want false then true", marks)
	}
	if begin.Sub(start) < 30*time.Millisecond || end.Sub(start) < 80*time.Millisecond || res.Elapsed < 50*time.Millisecond {
		t.Errorf("warm-up %v, measured %v, said %v", begin.Sub(start), end.Sub(begin), res.Elapsed)
	}
}

func TestDriveCountsFailuresAndGoesOn(t *testing.T) {
	addr := serve(t, nil, func(c net.Conn) {
		answerAll(c, func(n int) string {
			if n == 3 {
				return "" // close instead of the fourth answer
			}
			return ok(0)
		})
	})
	r := newRig(t, 1)
	res, err := r.Drive(t.Context(), Profile{Addr: addr, Conns: 1, Requests: 9, Traffic: traffic(t, TrafficConfig{})})
	// Three answers and a failure, twice; the ninth request is the first of the third connection.
	if err != nil || res.Requests != 7 || res.Failures != 2 || !errors.Is(res.First, io.EOF) {
		t.Errorf("%+v, %v; want 7 answers and 2 failures", res, err)
	}
}

func TestDriveEnds(t *testing.T) {
	silent := serve(t, nil, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	r := newRig(t, 1)
	p := Profile{Addr: silent, Conns: 1, Requests: 1, Traffic: traffic(t, TrafficConfig{}), Span: Span{Patience: 30 * time.Millisecond}}
	if _, err := r.Drive(t.Context(), p); err == nil || !strings.Contains(err.Error(), "no answer for") {
		t.Errorf("silent proxy: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	p.Patience = time.Minute
	time.AfterFunc(30*time.Millisecond, cancel)
	if _, err := r.Drive(ctx, p); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}

	p.Addr = serve(t, nil, func(c net.Conn) {
		answerAll(c, func(int) string { return "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n" })
	})
	p.Requests, p.Measure = 0, time.Minute
	if res, err := r.Drive(t.Context(), p); !errors.Is(err, ErrStatus) || res.Failures != maxFailures || res.Requests != 0 {
		t.Errorf("only failures: %+v, %v", res, err)
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Addr = ln.Addr().(*net.TCPAddr).AddrPort()
	ln.Close()
	if res, err := r.Drive(t.Context(), p); err == nil || res.Failures != 1 {
		t.Errorf("nobody listens: %+v, %v", res, err)
	}
}

func TestDriveRefusesProfiles(t *testing.T) {
	r := newRig(t, 1)
	tr := traffic(t, TrafficConfig{})
	addr := r.Upstreams()[0]
	for _, p := range []Profile{
		{Addr: addr, Traffic: tr, Requests: 1},
		{Addr: addr, Conns: 1, Requests: 1},
		{Addr: addr, Conns: 1, Traffic: tr},
		{Addr: addr, Conns: 1, Traffic: tr, Requests: 1, Span: Span{Warmup: 1}},
		{Addr: netip.MustParseAddrPort("[::1]:80"), Conns: 1, Traffic: tr, Requests: 1},
	} {
		if _, err := r.Drive(t.Context(), p); err == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
	for _, n := range []int{0, MaxUpstreams + 1} {
		if _, err := NewRig(n); err == nil {
			t.Errorf("a rig of %d upstreams was made", n)
		}
	}
}

func TestBackendReadsSplitAndPipelinedHeads(t *testing.T) {
	r := newRig(t, 1)
	c, err := net.Dial("tcp", r.Upstreams()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"
	for i := range in {
		if _, err := io.WriteString(c, in[i:i+1]); err != nil {
			t.Fatal(err)
		}
		r.loop.step(time.Second)
	}
	for r.backend.served < 2 {
		r.loop.step(time.Second)
	}
	br := bufio.NewReader(c)
	for range 2 {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != string(Body(0)) {
			t.Errorf("body %q, %v", body, err)
		}
	}
}

func tlsConfigs(t *testing.T, suite uint16) (server, client *tls.Config) {
	t.Helper()
	pair := testcert.Sign(t, &x509.Certificate{DNSNames: []string{Host(0)}}, nil)
	server = &tls.Config{Certificates: []tls.Certificate{pair.TLS()}}
	if suite != 0 {
		server.MaxVersion, server.CipherSuites = tls.VersionTLS12, []uint16{suite}
	}
	return server, &tls.Config{ServerName: Host(0), InsecureSkipVerify: true}
}

func TestDriveTLS(t *testing.T) {
	server, client := tlsConfigs(t, 0)
	addr := serve(t, server, func(c net.Conn) {
		// Two writes make two records: the second waits in the client's TLS connection or socket.
		answerAll(c, func(int) string {
			head, body, _ := strings.Cut(ok(0), "\r\n\r\n")
			_, _ = io.WriteString(c, head+"\r\n\r\n")
			return body
		})
	})
	r := newRig(t, 1)
	p := Profile{Addr: addr, TLS: client, Conns: 3, Requests: 300, Traffic: traffic(t, TrafficConfig{})}
	if res, err := r.Drive(t.Context(), p); err != nil || res.Requests != 300 || res.Failures != 0 {
		t.Errorf("%+v, %v; want 300 answers", res, err)
	}

	old, client := tlsConfigs(t, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)
	p.Addr, p.TLS = serve(t, old, func(c net.Conn) { answerAll(c, func(int) string { return ok(0) }) }), client
	if _, err := r.Drive(t.Context(), p); err == nil || !strings.Contains(err.Error(), "want TLS 1.3") {
		t.Errorf("TLS 1.2: %v", err)
	}
}

func TestProbe(t *testing.T) {
	r := newRig(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	x, err := r.Probe(ctx, r.Upstreams()[1], nil, []byte("GET /p HTTP/1.1\r\nHost: a\r\n\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if string(x.Request) != "GET /p HTTP/1.1\r\nHost: a" || !strings.HasPrefix(string(x.Answer), "HTTP/1.1 200 OK\r\n") ||
		string(x.Body) != string(Body(1)) {
		t.Errorf("got %q, %q, %q", x.Request, x.Answer, x.Body)
	}

	closing := serve(t, nil, func(c net.Conn) { answerAll(c, func(int) string { return "" }) })
	if _, err := r.Probe(ctx, closing, nil, []byte("GET /p HTTP/1.1\r\nHost: a\r\n\r\n")); !errors.Is(err, io.EOF) {
		t.Errorf("closed without an answer: %v", err)
	}
	silent := serve(t, nil, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	soon, cancelSoon := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancelSoon()
	if _, err := r.Probe(soon, silent, nil, []byte("GET /p HTTP/1.1\r\nHost: a\r\n\r\n")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent: %v", err)
	}
}
