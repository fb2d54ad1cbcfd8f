package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/balancer"
	"turnout/internal/explain"
	"turnout/internal/ratelimit"
	"turnout/internal/server"
	"turnout/internal/testkit"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
	"turnout/proxy"
	"turnout/routing"
	"turnout/routing/rewrite"
)

// set is a server with many routes of all kinds, and what asks it.
type set struct {
	t       *testing.T
	rng     *rand.Rand
	server  *server.Server
	x       *explain.Explainer
	records chan proxy.Record
	specs   []routing.RouteSpec
	plain   *line            // connection without TLS
	secure  map[string]*line // by server name
}

// line is a connection of HTTP/1.1.
type line struct {
	net.Conn
	in *bufio.Reader
}

// Log implements proxy.AccessLog.
func (s *set) Log(rec *proxy.Record) {
	kept := *rec
	kept.Method, kept.Host, kept.Target = bytes.Clone(rec.Method), bytes.Clone(rec.Host), bytes.Clone(rec.Target)
	s.records <- kept
}

// newSet serves n routes, with pods that answer 200.
func newSet(t *testing.T, n int) *set {
	s := &set{t: t, rng: rand.New(rand.NewPCG(7, 8)), records: make(chan proxy.Record, 16), secure: map[string]*line{}}
	cfg := server.Config{
		HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 1,
		Proxy: proxy.Config{AccessLog: s, Timeouts: proxy.DefaultTimeouts(), MonitorPath: "/_monitor", MaxRewrite: 1024},
	}
	cfg.Proxy.Timeouts.Drain = 100 * time.Millisecond
	var err error
	if s.server, err = server.New(cfg); err != nil {
		t.Fatal(err)
	}
	pair := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"*.test"}}, nil)
	certificate := &routing.CertificateSpec{Certificate: pair.PEM(), Key: pair.KeyPEM(t)}
	fallback := pair.TLS()
	pod := netip.MustParseAddrPort(testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	secret := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"pod"}}, nil).TLS()
	tlsPod := netip.MustParseAddrPort(testkit.Serve(t, func(c net.Conn) {
		testkit.AnswerHeads(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{secret}}), []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	}))
	for i := range n {
		s.specs = append(s.specs, s.route(i, pod, tlsPod, certificate))
	}
	table, rejected := routing.Compile(routing.Options{Registry: s.server.Registry(), DefaultCertificate: &fallback}, nil, s.specs)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	s.server.Store().Publish(table)
	if s.x, err = explain.New(explain.Config{Deciding: s.server.Deciding}); err != nil {
		t.Fatal(err)
	}
	if err := s.server.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.server.Run(ctx) }()
	t.Cleanup(func() {
		s.hangUp()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// route makes up the i-th route.
func (s *set) route(i int, pod, tlsPod netip.AddrPort, certificate *routing.CertificateSpec) routing.RouteSpec {
	pick := func(n int) bool { return s.rng.IntN(n) == 0 }
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: fmt.Sprint("ns", i%7), Name: fmt.Sprint("r", i), UID: fmt.Sprint(i)},
		Host:     fmt.Sprintf("h%d.test", s.rng.IntN(len(s.specs)/2+1)),
		Path:     []string{"", "", "/", "/a", "/a/", "/a/b", "/c"}[s.rng.IntN(7)],
		Balance:  balancer.Algorithm(s.rng.IntN(4)),
		Policy:   routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second, Forwarded: routing.ForwardedPolicy(s.rng.IntN(4))},
	}
	if pick(50) {
		spec.Host, spec.Wildcard, spec.Path, spec.Termination, spec.Certificate = fmt.Sprintf("any.d%d.test", i%20), true, "", routing.TermEdge, certificate
		spec.Targets = []balancer.Target{{ID: "pod1", Addr: testaddr.Of(pod), Weight: 1}}
		return spec
	}
	switch s.rng.IntN(5) {
	case 0, 1:
		spec.Termination, spec.Insecure, spec.Certificate = routing.TermEdge, routing.InsecurePolicy(s.rng.IntN(3)), certificate
	case 2:
		if spec.Path == "" && pick(6) {
			spec.Termination, pod = routing.TermPassthrough, tlsPod
		}
	}
	if pick(3) {
		spec.CookieName = "sticky"
	}
	if pick(12) {
		spec.Policy.Allow = routing.NewAllowList([]netip.Prefix{netip.MustParsePrefix([]string{"127.0.0.0/8", "10.0.0.0/8"}[s.rng.IntN(2)])})
	}
	if pick(12) {
		spec.Policy.Rates = ratelimit.Limits{HTTP: ratelimit.Limit{On: true, N: 1 + s.rng.IntN(2)}}
	}
	if pick(8) {
		to := "/z"
		if pick(3) {
			to = "/" + strings.Repeat("z", 2000)
		}
		spec.Policy.Rewrite = rewrite.Compile(spec.Path, to)
	}
	for range s.rng.IntN(4) {
		k := len(spec.Targets)
		spec.Targets = append(spec.Targets, balancer.Target{ID: fmt.Sprint("pod", k), Addr: testaddr.Of(pod), Weight: s.rng.IntN(3)})
	}
	return spec
}

// asked is one request, as it is explained and as it is sent.
type asked struct {
	explain.Query
	host, target string
	secure       bool
}

// request makes up a request.
func (s *set) request() asked {
	spec := s.specs[s.rng.IntN(len(s.specs))]
	a := asked{host: spec.Host, secure: s.rng.IntN(2) == 0}
	switch s.rng.IntN(12) {
	case 0:
		a.host = "nobody.example"
	case 1:
		a.host = strings.ToUpper(a.host) + ":8080"
	case 2, 3:
		a.host = fmt.Sprintf("other.d%d.test", s.rng.IntN(25))
	}
	a.target = []string{"/", spec.Path + "/x", "/a", "/a/b?q=1", "/c/d", "/_monitor", "/ab"}[s.rng.IntN(7)]
	a.Method = []string{"GET", "GET", "HEAD", "DELETE", "TRACE"}[s.rng.IntN(5)]
	a.Client = netip.MustParseAddr("127.0.0.1")
	if s.rng.IntN(3) == 0 {
		a.Header = append(a.Header, "Cookie: sticky="+balancer.CookieValue("pod1")+"; other=1")
	}
	if s.rng.IntN(20) == 0 {
		a.Header = append(a.Header, "CDN-Loop: "+strings.Repeat("turnout, ", 9)+"x")
	}
	scheme := "http://"
	if a.secure {
		scheme = "https://"
		a.HTTP2 = s.rng.IntN(3) == 0
		a.ServerName = []string{"h1.test", "h2.test", "h3.test", "x.d1.test", "nobody.example"}[s.rng.IntN(5)]
		if s.rng.IntN(30) == 0 {
			a.ServerName = strings.ToLower(spec.Host)
		}
	}
	a.URL = scheme + a.host + a.target
	return a
}

// explained is what is predicted: who gets it, which status and why.
func (s *set) explained(a asked) *explain.Answer {
	got, err := s.x.Explain(s.server.Store().Load(), a.Query)
	if err != nil {
		s.t.Fatalf("%s: %v", a.URL, err)
	}
	return got
}

// send sends it and returns the status that the client got, 0 = none.
func (s *set) send(a asked) int {
	s.t.Helper()
	if a.HTTP2 {
		return s.sendHTTP2(a)
	}
	c := s.connection(a)
	c.SetDeadline(time.Now().Add(20 * time.Second))
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", a.Method, a.target, a.host)
	for _, h := range a.Header {
		head += h + "\r\n"
	}
	_, _ = io.WriteString(c, head+"\r\n") // a connection that is closed shows that below
	resp, err := http.ReadResponse(c.in, &http.Request{Method: a.Method})
	if err != nil {
		s.forget(c)
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.Close {
		s.forget(c)
	}
	return resp.StatusCode
}

// connection is one that is open, or another one.
func (s *set) connection(a asked) *line {
	if c := s.plain; c != nil && !a.secure {
		return c
	}
	if c := s.secure[a.ServerName]; c != nil && a.secure {
		return c
	}
	if !a.secure {
		s.plain = s.dial(s.server.HTTP().String(), nil)
		return s.plain
	}
	c := s.dial(s.server.HTTPS().String(), &tls.Config{ServerName: a.ServerName, InsecureSkipVerify: true})
	s.secure[a.ServerName] = c
	return c
}

func (s *set) dial(addr string, secure *tls.Config) *line {
	c, err := net.Dial("tcp", addr)
	if err == nil && secure != nil {
		c, err = tls.Client(c, secure), nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &line{c, bufio.NewReader(c)}
}

func (s *set) forget(c *line) {
	c.Close()
	if s.plain == c {
		s.plain = nil
	}
	for name, other := range s.secure {
		if other == c {
			delete(s.secure, name)
		}
	}
}

func (s *set) hangUp() {
	if s.plain != nil {
		s.plain.Close()
	}
	for _, c := range s.secure {
		c.Close()
	}
}

func (s *set) sendHTTP2(a asked) int {
	raw := s.dial(s.server.HTTPS().String(), &tls.Config{ServerName: a.ServerName, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	c, err := new(http2.Transport).NewClientConn(raw.Conn)
	if err != nil {
		return 0
	}
	req, err := http.NewRequest(a.Method, a.URL, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range a.Header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestExplainPredictsASet explains requests of all kinds to many routes, sends each, and compares.
func TestExplainPredictsASet(t *testing.T) {
	requests := 10_000
	if testing.Short() {
		requests = 1000
	}
	s := newSet(t, requests)
	reasons := map[string]int{}
	var longest, sum time.Duration
	for n := range requests {
		a := s.request()
		began := time.Now()
		want := s.explained(a)
		took := time.Since(began)
		longest, sum = max(longest, took), sum+took
		status := s.send(a)
		passed := want.TLS != nil && want.TLS.Passthrough
		if c := s.secure[a.ServerName]; passed && c != nil {
			s.forget(c) // the connection ends with its only request
		}
		o, route := &want.Outcome, ""
		if want.Route != nil {
			route = want.Route.Name
		}
		reasons[o.Reason]++
		if o.Reason == proxy.ReasonMonitor.String() {
			if status != 200 {
				t.Errorf("%d: %s: the monitor path answers %d", n, a.URL, status)
			}
			continue // nobody logs it
		}
		rec := <-s.records
		expected := o.Status
		if o.By == explain.ByEndpoint {
			expected = 200
		}
		if passed {
			status, expected = rec.Status, o.Status // of the connection; what goes over it is between client and pod
			if rec.Frontend != "public_ssl" {
				t.Errorf("%d: %s is not passed through", n, a.URL)
			}
		}
		if rec.Reason.String() != o.Reason || rec.Route != route || status != expected || rec.Detail != o.Detail {
			t.Fatalf("%d: %s %s %v, server name %q, HTTP/2 %t: %s %d by %q was explained, and it was %s %d by %q, and the client got %d",
				n, a.Method, a.URL, a.Header, a.ServerName, a.HTTP2, o.Reason, expected, route, rec.Reason, rec.Status, rec.Route, status)
		}
	}
	t.Logf("%v; explained in %v on average, at most %v", reasons, sum/time.Duration(requests), longest)
	for _, r := range []proxy.Reason{
		proxy.ReasonOK, proxy.ReasonRedirect, proxy.ReasonNoRoute, proxy.ReasonNoEndpoint, proxy.ReasonDenied, proxy.ReasonRateLimited, proxy.ReasonRewrite,
		proxy.ReasonMonitor, proxy.ReasonRefused, proxy.ReasonLoop, proxy.ReasonMisdirected,
	} {
		if reasons[r.String()] == 0 {
			t.Errorf("no request ended with %v", r)
		}
	}
}
