package server_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
	"turnout/tlsmux/clientcert"
)

// web is a router with ports for listeners, its certificates and curl.
type web struct {
	*server.Server

	t         *testing.T
	dir       string
	curl      string
	authority *testcert.Pair
	backend   netip.AddrPort
	kinds     map[string]server.PortKind // of ports with a name
	explained int                        // requests whose explanation was compared
}

// startWeb starts a router with the pair of ports of OpenShift Routes, a plain port "web" and TLS ports "tls" and "mtls".
func startWeb(t *testing.T, change ...func(*server.Config)) *web {
	t.Helper()
	w := &web{t: t, dir: t.TempDir(), kinds: map[string]server.PortKind{}}
	var err error
	if w.curl, err = exec.LookPath("curl"); err != nil {
		t.Skip("needs curl, which .ci/run installs")
	}
	w.authority = testcert.Sign(t, authority("authority"), nil)
	w.write("ca.pem", w.authority.PEM())
	backend := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("X-Target", r.URL.RequestURI())
		out.Header().Set("X-Added", "one")
		fmt.Fprintf(out, "%s %s client=%q", r.Header.Get("X-Rule"), r.Host, r.Header.Get("X-Ssl-Client-Cn"))
	}))
	t.Cleanup(backend.Close)
	w.backend = netip.MustParseAddrPort(backend.Listener.Addr().String())
	cfg := server.Config{
		HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", Loops: 2,
		Ports: []server.Port{{Name: "web", Addr: "127.0.0.1:0"}, {Name: "tls", Addr: "127.0.0.1:0", Kind: server.PortTLS}, {Name: "mtls", Addr: "127.0.0.1:0", Kind: server.PortTLS}},
	}
	for _, c := range change {
		c(&cfg)
	}
	w.know(cfg.Ports)
	w.Server, err = server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

func authority(name string) *x509.Certificate {
	form := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	testcert.Authority(form)
	return form
}

func (w *web) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// client writes the certificate and key of a client to NAME.pem.
func (w *web) client(name string, issuer *testcert.Pair) {
	w.t.Helper()
	pair := testcert.Sign(w.t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, issuer)
	w.write(name+".pem", pair.PEM()+pair.KeyPEM(w.t))
}

// served is the certificate of a server for names.
func (w *web) served(names ...string) *routing.CertificateSpec {
	w.t.Helper()
	pair := testcert.Sign(w.t, &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, w.authority)
	return &routing.CertificateSpec{Certificate: pair.PEM(), Key: pair.KeyPEM(w.t)}
}

// rule is one of a listener, "" = the pair of ports of OpenShift Routes, that endpoints know by X-Rule.
func (w *web) rule(listener, name, host string, change ...func(*routing.RuleSpec)) routing.RuleSpec {
	s := routing.RuleSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: name, UID: "u"}, Listener: listener, Host: host, Wildcard: strings.HasPrefix(host, "*"), Labels: true,
		Policy:  routing.Policy{ServerTimeout: 30 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second},
		Targets: []balancer.Target{{ID: "backend", Addr: testaddr.Of(w.backend), Weight: 1}},
	}
	s.Policy.RequestActions = setting(w.t, "X-Rule", name)
	for _, c := range change {
		c(&s)
	}
	return s
}

func edge(s *routing.RuleSpec) { s.Termination = routing.TermEdge }

// publish makes the table.
func (w *web) publish(listeners []routing.ListenerSpec, rules ...routing.RuleSpec) {
	w.t.Helper()
	table, rejected := routing.CompileRules(routing.Options{Registry: w.Registry()}, w.Store().Load(), rules)
	table, more := table.ApplyListeners(listeners, nil)
	if len(rejected)+len(more) > 0 {
		w.t.Fatal(rejected, more)
	}
	w.Store().Publish(table)
}

// ask is curled, of a request that was explained before, where that is possible without a certificate.
func (w *web) ask(port netip.AddrPort, url string, args ...string) string {
	w.t.Helper()
	want := w.explain(port, url, args)
	got := w.curled(port, url, args...)
	if want == "" {
		return got
	}
	if w.explained++; want != got && !(want == "200" && strings.HasPrefix(got, "HTTP/")) {
		w.t.Errorf("%s %v: %s was explained, and it was %s", url, args, want, got)
	}
	return got
}

// curled has curl ask for a URL such as "https://HOST/path" at a port and returns "STATUS BODY", or "curl CODE" with its exit code.
func (w *web) curled(port netip.AddrPort, url string, args ...string) string {
	w.t.Helper()
	scheme, rest, _ := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	at := ":" + strconv.Itoa(int(port.Port()))
	args = append([]string{"-sS", "--noproxy", "*", "--max-time", "20", "--cacert", "ca.pem", "--resolve", host + at + ":127.0.0.1", "-w", "\n%{http_code} %{http_version}", scheme + "://" + host + at + "/" + path}, args...)
	cmd := exec.Command(w.curl, args...)
	cmd.Dir = w.dir
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return "curl " + strconv.Itoa(cmd.ProcessState.ExitCode())
	}
	i := strings.LastIndexByte(out.String(), '\n')
	status, version, _ := strings.Cut(out.String()[i+1:], " ")
	if status != "200" {
		return status
	}
	return "HTTP/" + version + " " + strings.ReplaceAll(out.String()[:i], at, "")
}

// TestPorts: hosts, certificates and routes of one port are nobody's business on another.
func TestPorts(t *testing.T) {
	w := startWeb(t)
	w.publish([]routing.ListenerSpec{
		{Name: "web-any", Port: "web"}, {Name: "web-a", Port: "web", Hostname: "a.test"},
		{Name: "tls-a", Port: "tls", Hostname: "a.test", TLS: true, Certificates: []*routing.CertificateSpec{w.served("a.test", "b.test")}},
		{Name: "tls-stars", Port: "tls", Hostname: "*.stars.test", TLS: true, Certificates: []*routing.CertificateSpec{w.served("x.y.stars.test", "*.stars.test")}},
		{Name: "mtls-a", Port: "mtls", Hostname: "a.test", TLS: true, Certificates: []*routing.CertificateSpec{w.served("wrong.test")}},
	}, w.rule("", "pair", "a.test"), w.rule("web-any", "any", "*"), w.rule("web-a", "plain-a", "a.test"), w.rule("tls-a", "secure-a", "a.test", edge),
		w.rule("tls-stars", "stars", "*.stars.test", edge), w.rule("mtls-a", "wrong", "a.test", edge))
	web, secure := w.Port("web"), w.Port("tls")
	for _, c := range []struct {
		port netip.AddrPort
		url  string
		args []string
		want string
	}{
		{w.HTTP(), "http://a.test/", nil, `HTTP/1.1 pair a.test client=""`},
		{w.HTTP(), "http://b.test/", nil, "503"},
		{web, "http://a.test/", nil, `HTTP/1.1 plain-a a.test client=""`},
		{web, "http://b.test/", nil, `HTTP/1.1 any b.test client=""`},
		{web, "http://b.test/", []string{"--http2-prior-knowledge"}, `HTTP/2 any b.test client=""`},
		{secure, "https://a.test/", nil, `HTTP/2 secure-a a.test client=""`},
		{secure, "https://a.test/", []string{"--http1.1"}, `HTTP/1.1 secure-a a.test client=""`},
		{secure, "https://x.y.stars.test/", nil, `HTTP/2 stars x.y.stars.test client=""`},
		{secure, "https://z.stars.test/", nil, `HTTP/2 stars z.stars.test client=""`},
		{secure, "https://a.test/", []string{"-H", "Host: z.stars.test"}, "421"},
		{secure, "https://a.test/", []string{"-H", "Host: z.stars.test", "--http1.1"}, "421"},
		{secure, "https://a.test/", []string{"-H", "Host: nobody.test"}, "404"},
		{secure, "https://nobody.test/", nil, "curl 35"},          // no listener: alert unrecognized_name
		{w.Port("mtls"), "https://a.test/", nil, "curl 60"},       // another certificate
		{w.HTTPS(), "https://a.test/", []string{"-k"}, "curl 35"}, // no default certificate
	} {
		if got := w.ask(c.port, c.url, c.args...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.url, c.args, got, c.want)
		}
	}
	if p := w.Port("unknown"); p.IsValid() {
		t.Errorf("a port that is not configured is at %s", p)
	}
	sockets, err := w.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, s := range sockets {
		names += s.Name + ","
		for _, fd := range s.Sockets {
			os.NewFile(uintptr(fd), s.Name).Close()
		}
	}
	if want := "http 127.0.0.1:0,https 127.0.0.1:0,port web 127.0.0.1:0,port tls 127.0.0.1:0,port mtls 127.0.0.1:0,"; names != want {
		t.Errorf("sockets to hand over: %s", names)
	}
}

// TestPortsThatCannotBeToldApart are refused.
func TestPortsThatCannotBeToldApart(t *testing.T) {
	for _, ports := range [][]server.Port{{{Addr: "127.0.0.1:0"}}, {{Name: "a"}}, {{Name: "a", Addr: "127.0.0.1:0"}, {Name: "a", Addr: "127.0.0.1:0", Kind: server.PortTLS}}} {
		if _, err := server.New(server.Config{Ports: ports}); err == nil || !strings.Contains(err.Error(), strconv.Quote(ports[0].Name)) {
			t.Errorf("%+v: %v", ports, err)
		}
	}
}

// TestClientCertificatesOfAHost: each host asks for its own, says who may come in, and has requests of other connections sent back.
func TestClientCertificatesOfAHost(t *testing.T) {
	w := startWeb(t)
	others := testcert.Sign(t, authority("others"), nil)
	w.client("alice", w.authority)
	w.client("bob", w.authority)
	w.client("mallory", others)
	auth := func(mode clientcert.Mode, ca *testcert.Pair, subjects string) func(*routing.RuleSpec) {
		return func(s *routing.RuleSpec) {
			s.Termination, s.ClientAuth = routing.TermEdge, &routing.ClientAuthSpec{Mode: mode, CA: ca.PEM(), Subjects: subjects}
		}
	}
	certificate := w.served("strict.test", "open.test", "alice.test", "any.test", "other.test", "maybe.test")
	with := func(s *routing.RuleSpec) { s.Certificate = certificate }
	w.publish([]routing.ListenerSpec{{
		Name: "l", Port: "mtls", TLS: true, Certificates: []*routing.CertificateSpec{certificate}, ClientAuth: &routing.ClientAuthSpec{Mode: clientcert.Required, CA: others.PEM()},
	}},
		w.rule("", "strict", "strict.test", auth(clientcert.Required, w.authority, ""), with), w.rule("", "open", "open.test", edge, with),
		w.rule("", "only-alice", "alice.test", auth(clientcert.Optional, w.authority, "CN=alice"), with), w.rule("", "any", "any.test", auth(clientcert.Unverified, others, ""), with),
		w.rule("", "maybe", "maybe.test", auth(clientcert.Optional, w.authority, ""), with), w.rule("l", "other", "other.test", edge), w.rule("l", "strict-there", "strict.test", auth(clientcert.Required, w.authority, "")))
	alice, bob, mallory := []string{"--cert", "alice.pem"}, []string{"--cert", "bob.pem"}, []string{"--cert", "mallory.pem"}
	and := func(list []string, more ...string) []string { return append(append([]string(nil), list...), more...) }
	pair, port := w.HTTPS(), w.Port("mtls")
	for _, c := range []struct {
		port netip.AddrPort
		host string
		args []string
		want string
	}{
		{pair, "strict.test", alice, `HTTP/2 strict strict.test client="alice"`},
		{pair, "strict.test", and(bob, "--http1.1"), `HTTP/1.1 strict strict.test client="bob"`},
		{pair, "strict.test", nil, "curl 56"}, {pair, "strict.test", mallory, "curl 56"}, // the alert comes after the handshake of TLS 1.3
		{pair, "strict.test", and(nil, "--tls-max", "1.2"), "curl 35"},
		{pair, "open.test", nil, `HTTP/2 open open.test client=""`}, {pair, "open.test", alice, `HTTP/2 open open.test client=""`},
		{pair, "alice.test", alice, `HTTP/2 only-alice alice.test client="alice"`}, {pair, "alice.test", bob, "403"}, {pair, "alice.test", nil, "403"},
		{pair, "any.test", nil, `HTTP/2 any any.test client=""`}, {pair, "any.test", mallory, `HTTP/2 any any.test client=""`},
		{pair, "maybe.test", nil, `HTTP/2 maybe maybe.test client=""`}, {pair, "maybe.test", bob, `HTTP/2 maybe maybe.test client="bob"`},
		// The certificate is for all of them, and yet a connection is for hosts only that ask for the same.
		{pair, "open.test", and(alice, "-H", "Host: strict.test"), "421"}, {pair, "open.test", and(nil, "-H", "Host: strict.test", "--http1.1"), "421"},
		{pair, "strict.test", and(alice, "-H", "Host: open.test"), "421"}, {pair, "alice.test", and(bob, "-H", "Host: open.test"), "421"},
		{pair, "maybe.test", and(nil, "-H", "Host: strict.test", "--http1.1"), "421"}, {pair, "any.test", and(mallory, "-H", "Host: strict.test"), "421"},
		{port, "other.test", mallory, `HTTP/2 other other.test client="mallory"`}, {port, "other.test", alice, "curl 56"}, {port, "other.test", nil, "curl 56"},
		{port, "strict.test", alice, `HTTP/2 strict-there strict.test client="alice"`}, {port, "strict.test", mallory, "curl 56"},
		{port, "other.test", and(mallory, "-H", "Host: strict.test"), "421"},
	} {
		if got := w.ask(c.port, "https://"+c.host+"/", c.args...); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.host, c.args, got, c.want)
		}
	}
}

// setting compiles the action that sets a field.
func setting(t *testing.T, name, value string) *header.Actions {
	t.Helper()
	actions, errs := header.Compile(header.Request, []header.Action{{Name: name, Value: value}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return actions
}

// TestFilters: what a rule does to requests and answers besides sending them to an endpoint.
func TestFilters(t *testing.T) {
	w := startWeb(t)
	path := func(value string) func(*routing.RuleSpec) {
		return func(s *routing.RuleSpec) {
			s.Match.Path = routing.PathMatch{Kind: routing.PathPrefix, Value: value}
		}
	}
	url := func(u rewrite.URL) func(*routing.RuleSpec) {
		return func(s *routing.RuleSpec) {
			var err error
			if s.Policy.Rewrite, err = rewrite.New(u); err != nil {
				t.Fatal(err)
			}
		}
	}
	to := func(target redirect.Target) func(*routing.RuleSpec) {
		return func(s *routing.RuleSpec) {
			var err error
			if s.Policy.Redirect, err = redirect.New(target); err != nil {
				t.Fatal(err)
			}
		}
	}
	adding := func(s *routing.RuleSpec) {
		var errs []error
		if s.Policy.ResponseActions, errs = header.Compile(header.Response, []header.Action{{Name: "X-Added", Value: "two", Add: true}, {Name: "Content-Type", Delete: true}}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	w.publish([]routing.ListenerSpec{{Name: "l", Port: "web"}},
		w.rule("l", "host", "*", path("/host"), url(rewrite.URL{Host: "other.test:81"})),
		w.rule("l", "prefix", "*", path("/prefix"), url(rewrite.URL{Host: "p.test", Kind: rewrite.ReplacePrefix, Prefix: "/prefix", Path: "/show"}), adding),
		w.rule("l", "moved", "*", path("/moved"), to(redirect.Target{Scheme: "https", Port: 8443, Status: 308, URL: rewrite.URL{Host: "new.test", Kind: rewrite.ReplacePrefix, Prefix: "/moved", Path: "/here"}})),
		w.rule("l", "see", "*", path("/see"), to(redirect.Target{Status: 303})))
	at := w.Port("web")
	for _, c := range []struct {
		url  string
		args []string
		want []string
	}{
		{"http://a.test/host/x?y", nil, []string{`host other.test:81 client=""`}},
		{"http://a.test/host/x?y", []string{"--http2-prior-knowledge"}, []string{`host other.test:81 client=""`}},
		{"http://a.test/prefix/x?y=1", []string{"-i"}, []string{`prefix p.test client=""`, "x-target: /show/x?y=1\r\n", "x-added: one\r\n", "x-added: two\r\n", "-content-type"}},
		{"http://a.test/moved/x?y=1", []string{"-i", "-w", "\n200 1.1"}, []string{"308 Permanent Redirect\r\n", "location: https://new.test:8443/here/x?y=1\r\n", "-cache-control"}},
		{"http://a.test/see", []string{"-i", "-X", "POST", "-w", "\n200 1.1"}, []string{"303 See Other\r\n", "location: http://a.test/see\r\n", "cache-control: no-cache\r\n"}},
	} {
		got := strings.ToLower(w.ask(at, c.url, c.args...))
		for _, want := range c.want {
			absent, not := strings.CutPrefix(want, "-")
			if strings.Contains(got, strings.ToLower(absent)) == not {
				t.Errorf("%s %v: %q in it is %t:\n%s", c.url, c.args, absent, not, got)
			}
		}
	}
}
