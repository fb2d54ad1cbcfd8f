package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/controller"
	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/source"
	"turnout/internal/explain"
	"turnout/internal/server"
	"turnout/internal/testkit"
	"turnout/internal/testkit/testcert"
	"turnout/proxy"
	"turnout/routing"
)

// gatewaySet is a router with Gateways, many routes of all their kinds, and what asks it.
type gatewaySet struct {
	t       *testing.T
	rng     *rand.Rand
	server  *server.Server
	control *controller.Controller
	x       *explain.Explainer
	records chan proxy.Record
	client  tls.Certificate
	echo    netip.AddrPort
}

// Log implements proxy.AccessLog.
func (s *gatewaySet) Log(rec *proxy.Record) {
	kept := *rec
	kept.Method, kept.Host, kept.Target = bytes.Clone(rec.Method), bytes.Clone(rec.Host), bytes.Clone(rec.Target)
	s.records <- kept
}

// Set implements controller.Sockets: at ports of the system's choice.
func (s *gatewaySet) Set(list []expose.Socket) map[string]error {
	kinds := map[gateway.PortKind]server.PortKind{gateway.PortHTTP: server.PortHTTP, gateway.PortTLS: server.PortTLS, gateway.PortTCP: server.PortTCP, gateway.PortUDP: server.PortUDP}
	var ports []server.Port
	for _, p := range list {
		ports = append(ports, server.Port{Name: p.Name, Addr: "127.0.0.1:0", Kind: kinds[p.Kind]})
	}
	if err := errors.Join(s.server.SetPorts(ports)...); err != nil {
		s.t.Error(err)
	}
	return nil
}

// manifest is an object of the Gateway API.
func manifest(kind, namespace, name, spec string) string {
	return fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: %s\n---\n", kind, name, namespace, spec)
}

// serviceTo is a Service with an endpoint; without an address it has none.
func serviceTo(name string, addr netip.AddrPort, protocol string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop}\nspec: {ports: [{name: p, port: 80, protocol: %s}]}\n---\n", name, protocol)
	if addr.IsValid() {
		text += fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-1, namespace: shop, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\nports: [{name: p, port: %d, protocol: %s}]\n"+
			"endpoints: [{addresses: [%s], conditions: {ready: true}}]\n---\n", name, name, addr.Port(), protocol, addr.Addr())
	}
	return text
}

// secretOf is a Secret with a certificate.
func secretOf(t *testing.T, name string, pair *testcert.Pair) string {
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: shop}\ntype: kubernetes.io/tls\ndata: {tls.crt: %s, tls.key: %s}\n---\n", name, encode(pair.PEM()), encode(pair.KeyPEM(t)))
}

// site makes up the Gateways of the set, and n routes.
func (s *gatewaySet) site(n int) string {
	t := s.t
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}}
	testcert.Authority(authority)
	ca := testcert.Sign(t, authority, nil)
	s.client = testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, ca).TLS()
	pair := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"*.a.test", "*.b.test", "c.test"}}, nil)
	pod := netip.MustParseAddrPort(testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	secure := netip.MustParseAddrPort(testkit.Serve(t, func(c net.Conn) {
		testkit.AnswerHeads(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair.TLS()}}), []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	}))
	const all = "allowedRoutes: {namespaces: {from: All}}"
	crt := "tls: {certificateRefs: [{name: pair}]}, " + all
	var b strings.Builder
	b.WriteString("apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: turnout}\nspec: {controllerName: turnout.router/gateway}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca, namespace: shop}\ndata:\n  ca.crt: |\n    " + strings.ReplaceAll(strings.TrimSpace(ca.PEM()), "\n", "\n    ") + "\n---\n" +
		secretOf(t, "pair", pair) + serviceTo("web", pod, "TCP") + serviceTo("other", pod, "TCP") + serviceTo("grpc", speakingHTTP2(t), "TCP") + serviceTo("secure", secure, "TCP") + serviceTo("empty", netip.AddrPort{}, "TCP") + serviceTo("echo", s.echo, "UDP"))
	b.WriteString(manifest("Gateway", "shop", "one", `{gatewayClassName: turnout, tls: {frontend: {default: {}, perPort: [{port: 8443, tls: {validation: {caCertificateRefs: [{kind: ConfigMap, group: "", name: ca}]}}}]}}, listeners: [`+
		`{name: any, port: 80, protocol: HTTP, `+all+`}, {name: stars, port: 80, protocol: HTTP, hostname: "*.a.test", `+all+`}, {name: exact, port: 80, protocol: HTTP, hostname: x.a.test, `+all+`}, `+
		`{name: tls-stars, port: 443, protocol: HTTPS, hostname: "*.a.test", `+crt+`}, {name: tls-exact, port: 443, protocol: HTTPS, hostname: x.a.test, `+crt+`}, {name: tls-b, port: 443, protocol: HTTPS, hostname: "*.b.test", `+crt+`}, `+
		`{name: mutual, port: 8443, protocol: HTTPS, `+crt+`}, {name: pass, port: 9443, protocol: TLS, hostname: "*.a.test", tls: {mode: Passthrough}, `+all+`}, {name: ends, port: 9443, protocol: TLS, hostname: "*.b.test", `+crt+`}, `+
		`{name: tcp, port: 9000, protocol: TCP, `+all+`}, {name: idle, port: 9001, protocol: TCP, `+all+`}, {name: udp, port: 9000, protocol: UDP, `+all+`}, {name: bad, port: 81, protocol: HTTPS, tls: {certificateRefs: [{name: missing}]}}]}`))
	b.WriteString(manifest("Gateway", "shop", "two", `{gatewayClassName: turnout, addresses: [{value: 127.0.0.9}], listeners: [{name: any, port: 80, protocol: HTTP, `+all+`}]}`))
	b.WriteString(manifest("Gateway", "shop", "broken", `{gatewayClassName: turnout, listeners: [{name: any, port: 82, protocol: WRONG}]}`))
	to := func(service string) string { return `backendRefs: [{name: ` + service + `, port: 80}]` }
	b.WriteString(manifest("TLSRoute", "shop", "passes", `{parentRefs: [{name: one, sectionName: pass}], hostnames: [x.a.test, "*.y.a.test"], rules: [{`+to("secure")+`}]}`) +
		manifest("TLSRoute", "shop", "nobody", `{parentRefs: [{name: one, sectionName: pass}], hostnames: [empty.a.test], rules: [{`+to("empty")+`}]}`) +
		manifest("TLSRoute", "shop", "ended", `{parentRefs: [{name: one, sectionName: ends}], hostnames: [x.b.test], rules: [{`+to("web")+`}]}`) +
		manifest("TCPRoute", "shop", "bytes", `{parentRefs: [{name: one, sectionName: tcp}], rules: [{`+to("web")+`}]}`) +
		manifest("TCPRoute", "shop", "late", `{parentRefs: [{name: one, sectionName: tcp}], rules: [{`+to("other")+`}]}`) +
		manifest("UDPRoute", "shop", "packets", `{parentRefs: [{name: one, sectionName: udp}], rules: [{`+to("echo")+`}]}`))
	b.WriteString(manifest("HTTPRoute", "shop", "pages", `{parentRefs: [{name: one}], hostnames: [w.a.test], rules: [{filters: [{type: CORS, cors: {allowOrigins: ["https://app.test"], allowMethods: [GET]}}], `+to("web")+`}]}`))
	for i := range n {
		b.WriteString(s.route(i))
	}
	return b.String()
}

func (s *gatewaySet) one(words ...string) string { return words[s.rng.IntN(len(words))] }

// hosts of requests and of routes.
var gatewayHosts = []string{"x.a.test", "y.a.test", "z.y.a.test", "x.b.test", "c.test", "d.test", "w.a.test"}

// route makes up the i-th HTTPRoute or GRPCRoute.
func (s *gatewaySet) route(i int) string {
	parent := s.one("{name: one}", "{name: one}", "{name: one, sectionName: any}", "{name: one, sectionName: tls-stars}", "{name: one, port: 80}", "{name: two}", "{name: one, sectionName: missing}", "{name: one, sectionName: tcp}")
	hosts := ""
	if s.rng.IntN(4) > 0 {
		hosts = "hostnames: [" + s.one("x.a.test", "y.a.test", `"*.a.test"`, `"*.test"`, "x.b.test", "c.test, d.test", `"*.y.a.test"`, "stranger.example") + "], "
	}
	if i%12 == 0 {
		return manifest("GRPCRoute", "shop", fmt.Sprint("g", i), "{parentRefs: ["+parent+"], hostnames: [g"+fmt.Sprint(i)+".a.test], rules: [{matches: [{method: {service: echo.Echo, method: "+s.one("Say", "Hear")+"}}], backendRefs: [{name: grpc, port: 80}]}]}")
	}
	var rules []string
	for range 1 + s.rng.IntN(3) {
		rules = append(rules, s.rule())
	}
	return manifest("HTTPRoute", "shop", fmt.Sprint("r", i), "{parentRefs: ["+parent+"], "+hosts+"rules: ["+strings.Join(rules, ", ")+"]}")
}

// rule makes up a rule of an HTTPRoute.
func (s *gatewaySet) rule() string {
	var match []string
	prefix := false
	switch s.rng.IntN(5) {
	case 0:
		match = append(match, "path: {type: Exact, value: "+s.one("/", "/a", "/a/b")+"}")
	case 1:
		match = append(match, `path: {type: RegularExpression, value: "/a/[a-c]+"}`)
	case 2, 3:
		match, prefix = append(match, "path: {type: PathPrefix, value: "+s.one("/", "/a", "/a/b", "/c/")+"}"), true
	}
	if s.rng.IntN(4) == 0 {
		match = append(match, "method: "+s.one("GET", "POST", "OPTIONS"))
	}
	if s.rng.IntN(4) == 0 {
		match = append(match, "headers: [{name: X-Version, value: \""+s.one("1", "2")+"\"}]")
	}
	if s.rng.IntN(5) == 0 {
		match = append(match, s.one(`queryParams: [{name: q, value: "1"}]`, `queryParams: [{name: q, type: RegularExpression, value: "[0-9]"}]`))
	}
	var filters []string
	replace := "path: {type: ReplaceFullPath, replaceFullPath: /new}"
	if prefix {
		replace = "path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}"
	}
	redirects := false
	switch s.rng.IntN(8) {
	case 0:
		filters, redirects = append(filters, "{type: RequestRedirect, requestRedirect: {hostname: new.test, statusCode: "+s.one("301", "302", "303", "307", "308")+", "+replace+"}}"), true
	case 1:
		filters = append(filters, "{type: URLRewrite, urlRewrite: {hostname: pod.test, "+replace+"}}")
	case 2:
		filters = append(filters, "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: X-Set, value: s}], add: [{name: X-Version, value: \"9\"}], remove: [X-Gone]}}")
	case 3:
		filters = append(filters, "{type: CORS, cors: {allowOrigins: [\"https://app.test\"], allowMethods: [GET], allowCredentials: true}}")
	case 4:
		filters = append(filters, "{type: RequestMirror, requestMirror: {backendRef: {name: empty, port: 80}, percent: 50}}")
	}
	var rest []string
	if len(match) > 0 {
		rest = append(rest, "matches: [{"+strings.Join(match, ", ")+"}]")
	}
	if len(filters) > 0 {
		rest = append(rest, "filters: ["+strings.Join(filters, ", ")+"]")
	}
	if !redirects {
		rest = append(rest, "backendRefs: ["+s.one("{name: web, port: 80}", "{name: web, port: 80}", "{name: web, port: 80, weight: 3}, {name: missing, port: 80, weight: 2}", "{name: web, port: 80}, {name: other, port: 80}, {name: empty, port: 80}",
			"{name: empty, port: 80}", "{name: web, port: 80, weight: 0}", "{name: web, port: 80, namespace: elsewhere}", "")+"]")
	}
	switch s.rng.IntN(6) {
	case 0:
		rest = append(rest, "timeouts: {request: 20s, backendRequest: 10s}")
	case 1:
		rest = append(rest, "retry: {codes: [503], attempts: 2, backoff: 10ms}")
	case 2:
		rest = append(rest, "sessionPersistence: {sessionName: s, type: "+s.one("Cookie", "Header")+"}")
	}
	return "{" + strings.Join(rest, ", ") + "}"
}

// newGatewaySet serves n routes, with pods that answer 200.
func newGatewaySet(t *testing.T, n int) *gatewaySet {
	s := &gatewaySet{t: t, rng: rand.New(rand.NewPCG(11, 12)), records: make(chan proxy.Record, 64), echo: echoing(t)}
	cfg := server.Config{HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 1, Proxy: proxy.Config{AccessLog: s, Timeouts: proxy.DefaultTimeouts(), MaxRewrite: 1024}}
	cfg.Proxy.Timeouts.Drain = 100 * time.Millisecond
	var err error
	if s.server, err = server.New(cfg); err != nil {
		t.Fatal(err)
	}
	if s.control, err = controller.New(controller.Config{
		Store: s.server.Store(), Routing: routing.Options{Registry: s.server.Registry()}, Sockets: s,
		Options: controller.Options{AllowLoopback: true, Gateways: controller.GatewayOptions{Controller: "turnout.router/gateway"}},
	}); err != nil {
		t.Fatal(err)
	}
	if s.x, err = explain.New(explain.Config{Deciding: s.server.Deciding, Gateways: s.control, Claimants: explain.Claims(s.control, nil)}); err != nil {
		t.Fatal(err)
	}
	sink := s.control.Sink("test")
	for _, doc := range source.Split([]byte(s.site(n)), false) {
		objects, findings := source.Decode(doc)
		if len(findings) > 0 {
			t.Fatalf("%s\n%v", doc.Data, findings)
		}
		for _, o := range objects {
			sink.Event(source.Event{Kind: o.Kind, Key: o.Key, Object: o.Object, Origin: "test"})
		}
	}
	sink.Synced()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- s.server.Run(ctx) }()
	go func() { done <- s.control.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
	<-s.server.Started()
	<-s.control.Ready()
	return s
}

// speakingHTTP2 is a pod that speaks HTTP/2 only, as those of GRPCRoutes do.
func speakingHTTP2(t *testing.T) netip.AddrPort {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	pod := &http.Server{Protocols: &only, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { _ = pod.Serve(ln) }() // it ends with Close
	t.Cleanup(func() { pod.Close() })
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

// echoing sends datagrams back.
func echoing(t *testing.T) netip.AddrPort {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		var buf [100]byte
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf[:])
			if err != nil {
				return
			}
			_, _ = c.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}

// request makes up a request to a port of a Gateway.
func (s *gatewaySet) request() asked {
	a := asked{host: gatewayHosts[s.rng.IntN(len(gatewayHosts))]}
	switch s.rng.IntN(10) {
	case 0:
		a.host = "nobody.example"
	case 1:
		a.host = strings.ToUpper(a.host) + ":8080"
	case 2:
		a.host = fmt.Sprintf("g%d.a.test", 12*s.rng.IntN(8))
	}
	place := s.one("one:80", "one:80", "one:80", "two:80", "one:443", "one:443", "one:443", "one:8443", "broken:82", "nowhere:80", "one:81")
	a.Gateway = "shop/" + place
	a.target = s.one("/", "/a", "/a/b", "/a/abc", "/a/b/c?q=1", "/c/x?q=%31", "/c", "/x?q=5&q=1", "/echo.Echo/Say")
	a.Method = s.one("GET", "GET", "POST", "OPTIONS", "HEAD", "TRACE")
	a.Client = netip.MustParseAddr("127.0.0.1")
	for _, line := range []string{"X-Version: " + s.one("1", "2", "3"), "X-Gone: 1", "Origin: https://" + s.one("app", "foe") + ".test", "Access-Control-Request-Method: GET", "Content-Type: application/grpc"} {
		if s.rng.IntN(4) == 0 {
			a.Header = append(a.Header, line)
		}
	}
	if a.host == "w.a.test" && s.rng.IntN(2) == 0 {
		a.Method, a.Header = "OPTIONS", []string{"Origin: https://app.test", "Access-Control-Request-Method: GET"}
	}
	scheme := "http://"
	if a.secure = strings.HasSuffix(place, "443"); a.secure {
		scheme = "https://"
		a.ServerName = strings.ToLower(strings.TrimSuffix(a.host, ":8080"))
		if s.rng.IntN(4) == 0 {
			a.ServerName = s.one("x.a.test", "y.a.test", "x.b.test", "nobody.example")
		}
	}
	a.HTTP2 = s.rng.IntN(4) == 0
	a.URL = scheme + a.host + a.target
	return a
}

// port is where a port of a Gateway is.
func (s *gatewaySet) port(place string) string { return s.server.Port(place).String() }

// send sends it over a connection of its own and returns the status that the client got, 0 = none; "" for err says that there was a connection.
func (s *gatewaySet) send(a asked) (status int, failed string) {
	c, err := net.Dial("tcp", s.port(a.Gateway))
	if err != nil {
		return 0, "no port"
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if a.secure {
		cfg := &tls.Config{ServerName: a.ServerName, InsecureSkipVerify: true, Certificates: []tls.Certificate{s.client}}
		if a.HTTP2 {
			cfg.NextProtos = []string{"h2"}
		}
		over := tls.Client(c, cfg)
		if over.Handshake() != nil {
			return 0, "no handshake"
		}
		c = over
	}
	if a.HTTP2 {
		return s.sendHTTP2(c, a), ""
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", a.Method, a.target, a.host)
	for _, h := range a.Header {
		head += h + "\r\n"
	}
	_, _ = io.WriteString(c, head+"\r\n") // a connection that is closed shows that below
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: a.Method})
	if err != nil {
		return 0, ""
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, ""
}

func (s *gatewaySet) sendHTTP2(over net.Conn, a asked) int {
	c, err := new(http2.Transport).NewClientConn(over)
	if err != nil {
		return 0
	}
	target, err := url.Parse("http://" + a.host + a.target)
	if err != nil {
		s.t.Fatal(err)
	}
	req := &http.Request{Method: a.Method, URL: target, Host: a.host, Header: http.Header{}}
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

// TestExplainPredictsGateways explains requests of all kinds to ports of Gateways, sends each, and compares.
func TestExplainPredictsGateways(t *testing.T) {
	requests := 4000
	if testing.Short() {
		requests = 600
	}
	s := newGatewaySet(t, 90)
	reasons, lost := map[string]int{}, map[string]int{}
	for n := range requests {
		a := s.request()
		want, err := s.x.Explain(s.server.Store().Load(), a.Query)
		if err != nil {
			t.Fatal(err)
		}
		o, route := &want.Outcome, ""
		if want.Route != nil {
			route = want.Route.Name
		}
		reasons[o.Reason]++
		for _, c := range want.Candidates {
			lost[c.Reason]++
		}
		status, failed := s.send(a)
		if refused := map[string]string{explain.ReasonGateway: "no port", "no-certificate": "no handshake"}[o.Reason]; failed != "" || refused != "" {
			if failed != refused {
				t.Fatalf("%d: %s at %s, server name %q: %s was explained, and there was %q", n, a.URL, a.Gateway, a.ServerName, o.Reason, failed)
			}
			continue
		}
		rec := <-s.records
		expected := o.Status
		if o.By == explain.ByEndpoint {
			expected = 200
		}
		if rec.Reason.String() != o.Reason || rec.Route != route || status != expected || rec.Detail != o.Detail {
			t.Fatalf("%d: %s %s at %s %v, server name %q, HTTP/2 %t: %s %d by %q was explained, and it was %s %d by %q (%s), and the client got %d",
				n, a.Method, a.URL, a.Gateway, a.Header, a.ServerName, a.HTTP2, o.Reason, expected, route, rec.Reason, rec.Status, rec.Route, rec.Detail, status)
		}
	}
	t.Logf("%d requests: %v; candidates: %v", requests, reasons, lost)
	for _, r := range []proxy.Reason{proxy.ReasonOK, proxy.ReasonRedirect, proxy.ReasonNoRoute, proxy.ReasonNoEndpoint, proxy.ReasonBackend, proxy.ReasonRefused, proxy.ReasonMisdirected, proxy.ReasonPreflight} {
		if reasons[r.String()] == 0 {
			t.Errorf("no request ended with %v", r)
		}
	}
	for _, word := range []string{"path", "method", "header", "query", "order", "wildcard", "listener", "connection", explain.ReasonRejected} {
		if lost[word] == 0 {
			t.Errorf("no candidate lost by %s", word)
		}
	}
}

// TestExplainPredictsStreams: what is said of connections to ports of TLS, TCP and UDP is what becomes of them.
func TestExplainPredictsStreams(t *testing.T) {
	s := newGatewaySet(t, 0)
	const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for _, c := range []struct{ url, route, reason string }{
		{"tls://x.a.test:9443", "passes", "tunnel-closed"}, {"https://z.y.a.test:9443/path", "passes", "tunnel-closed"}, {"tls://empty.a.test:9443", "nobody", "no-endpoint"},
		{"tls://other.a.test:9443", "", "no-certificate"}, {"tls://c.test:9443", "", "no-certificate"}, {"tls://x.b.test:9443", "ended", "tunnel-closed"}, {"tls://y.b.test:9443", "", "no-certificate"},
		{"tcp://any:9000", "bytes", "tunnel-closed"}, {"http://any:9000/", "bytes", "tunnel-closed"}, {"tcp://any:9001", "", "no-route"},
	} {
		a, err := s.x.Explain(s.server.Store().Load(), explain.Query{URL: c.url})
		if err != nil {
			t.Fatal(err)
		}
		route := ""
		if a.Route != nil {
			route = a.Route.Name
		}
		if a.Outcome.Reason != c.reason || route != c.route || a.Listener.Gateway != "shop/one" {
			t.Errorf("%s: explained %s by %q at %q, want %s by %q", c.url, a.Outcome.Reason, route, a.Listener.Gateway, c.reason, c.route)
		}
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", s.port("shop/one:"+u.Port()))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		if u.Scheme == "tls" || u.Scheme == "https" {
			conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
		}
		_, _ = io.WriteString(conn, get)
		answer, _ := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		if served := strings.HasPrefix(answer, "HTTP/1.1 200"); served != (a.Outcome.By == explain.ByEndpoint) {
			t.Errorf("%s: %s by %s, and the answer is %q", c.url, a.Outcome.Reason, a.Outcome.By, answer)
		}
		if route == "" {
			continue // nobody logs it
		}
		if rec := <-s.records; rec.Reason.String() != c.reason || rec.Route != c.route {
			t.Errorf("%s: it was %s by %q", c.url, rec.Reason, rec.Route)
		}
	}
	a, err := s.x.Explain(s.server.Store().Load(), explain.Query{URL: "udp://any:9000"})
	if err != nil || a.Outcome.By != explain.ByEndpoint || a.Route == nil || a.Route.Kind != "UDPRoute" || len(a.Endpoints) != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	conn, err := net.Dial("udp", s.port("shop/one:9000/udp"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = conn.Write([]byte("ping"))
	var buf [10]byte
	if n, err := conn.Read(buf[:]); err != nil || string(buf[:n]) != "ping" {
		t.Errorf("%q %v", buf[:n], err)
	}
}

// TestExplainPredictsWrongSchemes: TLS to a port without, and none to a port with it.
func TestExplainPredictsWrongSchemes(t *testing.T) {
	s := newGatewaySet(t, 10)
	a, err := s.x.Explain(s.server.Store().Load(), explain.Query{URL: "https://x.a.test:80/", Gateway: "shop/one:80"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", s.port("shop/one:80"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake() == nil {
		t.Error("a handshake at a plain port")
	}
	rec := <-s.records
	if o := &a.Outcome; o.Reason != rec.Reason.String() || o.Status != rec.Status || o.Detail != rec.Detail || !slices.ContainsFunc(a.Findings, func(f explain.Finding) bool { return f.Reason == explain.ReasonScheme }) {
		t.Errorf("%+v %+v, and it was %s %d %s", o, a.Findings, rec.Reason, rec.Status, rec.Detail)
	}
	a, err = s.x.Explain(s.server.Store().Load(), explain.Query{URL: "http://x.a.test:443/", Gateway: "shop/one:443"})
	if err != nil || a.Outcome.Reason != explain.ReasonScheme || a.Outcome.Status != 0 {
		t.Errorf("%+v %v", a, err)
	}
	plain, err := net.Dial("tcp", s.port("shop/one:443"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(plain, "GET / HTTP/1.1\r\nHost: x.a.test\r\n\r\n")
	if all, _ := io.ReadAll(plain); len(all) != 0 {
		t.Errorf("%q", all)
	}
}
