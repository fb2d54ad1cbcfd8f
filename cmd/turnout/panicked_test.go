package main

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnout/balancer"
	"turnout/controller"
	"turnout/internal/logging"
	"turnout/internal/server"
	"turnout/internal/testkit/testcert"
	"turnout/proxy"
	"turnout/routing"
)

// TestPanicFailsOneRequest: a panic over a message is answered 500 and logged once, with its stack; the router serves on.
func TestPanicFailsOneRequest(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.Header().Set("X-Bad", "value")
		}
	})
	core, logged := observer.New(zap.ErrorLevel)
	plane, _ := startInProcess(t, siteDir(t, app), controller.Options{}, func(c *server.Config) {
		c.Log, c.Proxy.AccessLog = logging.Server(zap.New(core)), noLog{}
		c.Proxy.Captures = &proxy.Captures{Response: []proxy.Capture{{Name: "x-bad", Max: -1}}}
	})
	for range 3 {
		for path, status := range map[string]int{"/bad": 500, "/good": 200} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://"+plane.HTTP().String()+path, nil)
			r.Host, r.RequestURI = "front.example.com", ""
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(w, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != status {
				t.Errorf("%s: status %d, want %d", path, answer.StatusCode, status)
			}
		}
	}
	lines := logged.All()
	if len(lines) == 0 || !strings.Contains(lines[0].ContextMap()["stack"].(string), "responsePolicy") {
		t.Errorf("logged %v", lines)
	}
}

// noLog is an access log that keeps nothing.
type noLog struct{}

func (noLog) Log(*proxy.Record) {}

// brokenLog is one that panics over requests for /bad.
type brokenLog struct{}

func (brokenLog) Log(r *proxy.Record) {
	if string(r.Target) == "/bad" {
		panic("a mistake")
	}
}

// TestPanicEndsOneConnection: a panic somewhere between the messages is logged, and the router serves on, over HTTP/1.1 and HTTP/2.
// What was counted for the request is given back.
func TestPanicEndsOneConnection(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	core, logged := observer.New(zap.ErrorLevel)
	plane, store := startInProcess(t, siteDir(t, app), controller.Options{}, func(c *server.Config) {
		c.Log, c.Proxy.AccessLog, c.Loops = logging.Server(zap.New(core)), brokenLog{}, 1
	})
	const rounds = 3
	for _, h2 := range []bool{false, true} {
		var protocols http.Protocols
		protocols.SetHTTP1(!h2)
		protocols.SetUnencryptedHTTP2(h2)
		for range rounds {
			good, bad := &http.Transport{Protocols: &protocols}, &http.Transport{Protocols: &protocols}
			for _, step := range []struct {
				over *http.Transport
				path string
			}{{good, "/good"}, {bad, "/bad"}, {good, "/good"}} {
				q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+plane.HTTP().String()+step.path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				q.Host = "front.example.com"
				a, err := step.over.RoundTrip(q)
				switch {
				case err == nil:
					_ = a.Body.Close()
					if a.StatusCode != http.StatusOK {
						t.Errorf("%s: status %d", step.path, a.StatusCode)
					}
				case step.over == good:
					t.Errorf("the other connection: %v", err)
				}
			}
			good.CloseIdleConnections()
			bad.CloseIdleConnections()
		}
	}
	if sums := plane.Stats(); sums.Panics != 2*rounds || sums.Active != 0 {
		t.Errorf("%d panics, want %d; %d active", sums.Panics, 2*rounds, sums.Active)
	}
	wantNothingInFlight(t, store)
	lines := logged.All()
	if len(lines) == 0 || !strings.Contains(lines[0].Message, "panic over a connection") || !strings.Contains(lines[0].ContextMap()["stack"].(string), "brokenLog") {
		t.Errorf("logged %v", lines)
	}
}

// TestPanicInTimer: a panic in the timer of an exchange, which belongs to no connection, ends that exchange.
func TestPanicInTimer(t *testing.T) {
	t.Parallel()
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	plane, store := startInProcess(t, siteDir(t, app), controller.Options{}, func(c *server.Config) {
		c.Proxy.AccessLog, c.Loops, c.Proxy.Timeouts.Client = brokenLog{}, 1, 50*time.Millisecond
	})
	const rounds = 10
	for range rounds {
		c, err := net.Dial("tcp", plane.HTTP().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "POST /bad HTTP/1.1\r\nHost: front.example.com\r\nContent-Length: 5\r\n\r\nhalf")
		if got, err := io.ReadAll(c); err == nil || len(got) > 0 {
			t.Errorf("got %q, %v", got, err)
		}
		c.Close()
	}
	status, _ := get(t, "http://"+plane.HTTP().String()+"/good", "front.example.com")
	if sums := plane.Stats(); status != http.StatusOK || sums.Panics != rounds || sums.Active != 0 {
		t.Errorf("status %d, %d panics, %d active", status, sums.Panics, sums.Active)
	}
	wantNothingInFlight(t, store)
}

// brokenKey is a private key that panics.
type brokenKey struct{ crypto.Signer }

func (brokenKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) { panic("a mistake") }

// TestPanicInHandshake: a panic in TLS handshakes ends these, is logged, and the router serves on.
func TestPanicInHandshake(t *testing.T) {
	core, logged := observer.New(zap.ErrorLevel)
	plane, store := startInProcess(t, siteDir(t, backend(t, func(http.ResponseWriter, *http.Request) {})), controller.Options{}, func(c *server.Config) {
		c.Log = logging.Server(zap.New(core))
	})
	dial := func() error {
		c, err := tls.Dial("tcp", plane.HTTPS().String(), &tls.Config{ServerName: "unknown.example.com", InsecureSkipVerify: true})
		if err == nil {
			c.Close()
		}
		return err
	}
	good := store.Load()
	cert := testcert.Sign(t, &x509.Certificate{}, nil)
	bad, rejected := routing.Compile(routing.Options{Registry: balancer.NewRegistry(), DefaultCertificate: &tls.Certificate{
		Certificate: [][]byte{cert.Cert.Raw}, PrivateKey: brokenKey{cert.Key}, Leaf: cert.Cert,
	}}, nil, nil)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	store.Publish(bad)
	const rounds = 50
	for range rounds {
		if dial() == nil {
			t.Fatal("a handshake succeeded")
		}
	}
	store.Publish(good)
	if err := dial(); err != nil {
		t.Error(err)
	}
	if n := plane.Stats().Panics; n != rounds {
		t.Errorf("%d panics, want %d", n, rounds)
	}
	lines := logged.All()
	if len(lines) == 0 || !strings.Contains(lines[0].Message, "panic in a TLS handshake") || !strings.Contains(lines[0].ContextMap()["stack"].(string), "brokenKey") {
		t.Errorf("logged %v", lines)
	}
}

// wantNothingInFlight fails the test if a server has requests.
func wantNothingInFlight(t *testing.T, store *routing.Store) {
	t.Helper()
	for r := range store.Load().Routes {
		for _, s := range r.Pool().Servers() {
			if n := s.InFlight(); n != 0 {
				t.Errorf("%s: %d requests in flight", s.ID(), n)
			}
		}
	}
}
