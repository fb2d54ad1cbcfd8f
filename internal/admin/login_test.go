package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
)

// startWith is a server with changes of its configuration, ready.
func startWith(t *testing.T, change func(*Config)) testServer {
	t.Helper()
	cfg := Config{
		Addr: "127.0.0.1:0", Ready: make(chan struct{}), Routes: listOf(),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metric 1\n") }),
		Log:     func(err error) { t.Error(err) },
	}
	change(&cfg)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return testServer{s, t, nil}
}

func user(name, password string) Login { return Login{User: name, Password: password} }

// TestReview: who comes without user and password is judged by a token, or by having none.
func TestReview(t *testing.T) {
	l := user("admin", "secret")
	l.Review = func(_ context.Context, source, token, method, path string) (int, string) {
		if method != "GET" || path != "/metrics" || source != "127.0.0.1/32" {
			t.Errorf("asked about %s %s from %s", method, path, source)
		}
		switch token {
		case "good":
			return 200, ""
		case "many":
			return 429, "later"
		case "":
			return 403, "Forbidden: anonymous"
		}
		return 401, "who are you?"
	}
	s := startWith(t, func(cfg *Config) { cfg.Login = l })
	for authorization, want := range map[string]string{
		"": "403 Forbidden: anonymous\n", "Bearer good": "200 metric 1\n", "bearer bad": "401 who are you?\n", "Bearer many": "429 later\n", "Other good": "403 Forbidden: anonymous\n",
		"Basic YWRtaW46c2VjcmV0": "200 metric 1\n", "Basic Z29vZDo=": "401 Unauthorized\n",
	} {
		r, err := http.NewRequest(http.MethodGet, "http://"+s.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", authorization)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := fmt.Sprint(answer.StatusCode, " ", string(body)); got != want || err != nil || (answer.Header.Get("Retry-After") != "") != (answer.StatusCode == 429) {
			t.Errorf("%q: %q, want %q, %v", authorization, got, want, err)
		}
	}
}

func TestLogin(t *testing.T) {
	login := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", value) }
	}
	for _, c := range []struct {
		name   string
		login  Login
		path   string
		with   func(*http.Request)
		status int
	}{
		{"nobody is asked", Login{}, "/metrics", nil, 200},
		{"right", user("admin", "secret"), "/metrics", login("admin", "secret"), 200},
		{"right for routes", user("admin", "secret"), "/routes", login("admin", "secret"), 200},
		{"none", user("admin", "secret"), "/metrics", nil, 401},
		{"none, routes", user("admin", "secret"), "/routes", nil, 401},
		{"none, no such path", user("admin", "secret"), "/none", nil, 401},
		{"right, no such path", user("admin", "secret"), "/none", login("admin", "secret"), 404},
		{"wrong password", user("admin", "secret"), "/metrics", login("admin", "secret2"), 401},
		{"wrong user", user("admin", "secret"), "/metrics", login("", "secret"), 401},
		{"the colon elsewhere", user("a:b", "c"), "/metrics", login("a", "b:c"), 200}, // one text, as RFC 7617 section 2 has it
		{"password only", user("", "secret"), "/metrics", login("", "secret"), 200},
		{"a line break belongs to it", user("admin", "secret\n"), "/metrics", login("admin", "secret"), 401},
		{"another scheme", user("admin", "secret"), "/metrics", header("Bearer YWRtaW46c2VjcmV0"), 401},
		{"scheme in capitals", user("admin", "secret"), "/metrics", header("BASIC YWRtaW46c2VjcmV0"), 200},
		{"not base64", user("admin", "secret"), "/metrics", header("Basic admin:secret"), 401},
		{"health needs none", user("admin", "secret"), "/healthz", nil, 200},
		{"nor does one check", user("admin", "secret"), "/healthz/ready/process-running", nil, 200},
		{"nor is it refused with one", user("admin", "secret"), "/healthz", login("x", "y"), 200},
	} {
		s := startWith(t, func(cfg *Config) { cfg.Login = c.login })
		r, err := http.NewRequest(http.MethodGet, "http://"+s.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.with != nil {
			c.with(r)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status || (answer.Header.Get("WWW-Authenticate") != "") != (c.status == 401) {
			t.Errorf("%s: status %d, want %d, %v", c.name, answer.StatusCode, c.status, answer.Header)
		}
	}
}

// pair makes a certificate for loopback.
func pair(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	p := testcert.Sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
	roots := x509.NewCertPool()
	roots.AddCert(p.Cert)
	return p.TLS(), roots
}

// TestBothProtocolsOnOnePort: with a certificate the port speaks TLS to those who begin it and plain HTTP to the others.
func TestBothProtocolsOnOnePort(t *testing.T) {
	cert, roots := pair(t)
	s := startWith(t, func(cfg *Config) {
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for _, scheme := range []string{"http", "https", "http"} {
		for range 2 {
			answer, err := client.Get(scheme + "://" + s.Addr().String() + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || string(body) != "metric 1\n" || (answer.TLS != nil) != (scheme == "https") {
				t.Errorf("%s: %q, %v", scheme, body, err)
			}
		}
	}
	// Who says nothing, or half of a handshake, holds nobody up.
	for _, text := range []string{"", "\x16\x03"} {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := client.Get("https://" + s.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	client.CloseIdleConnections()
}

// TestClosingWaitsForNobody: the end of the process does not depend on visitors who do not read.
func TestClosingWaitsForNobody(t *testing.T) {
	cert, roots := pair(t)
	ours, theirs := net.Pipe() // what is written waits for who reads
	defer theirs.Close()
	g := newGate(&net.TCPListener{}, &Config{TLS: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}}, defaults())
	c := &sniffed{Conn: g.admit(ours), config: g.tls}
	client := tls.Client(theirs, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MaxVersion: tls.VersionTLS12}) // of 1.3 there is something to read after the handshake
	read := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	errs := make(chan error, 1)
	go func() {
		if err := client.Handshake(); err != nil {
			errs <- err
			return
		}
		_, err := client.Write([]byte("x"))
		errs <- err
	}()
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	g.close()
	begun := time.Now()
	if err := c.Close(); err != nil || time.Since(begun) > 2*time.Second {
		t.Errorf("closed after %v: %v", time.Since(begun), err)
	}
	if len(g.visits) != 0 || len(g.sources) != 0 {
		t.Errorf("%d visits are left", len(g.visits))
	}
}
