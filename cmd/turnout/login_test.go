package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"turnout/controller"
	"turnout/internal/testkit/testrig"
	"turnout/internal/wire/protocol"
)

// loginHandler authenticates connections of HTTP/1.1, and challenges over HTTP/2.
type loginHandler struct {
	mu    sync.Mutex
	conns map[net.Conn]*testrig.LoginConn
}

type loginConnKey struct{}

func (h *loginHandler) configure(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, loginConnKey{}, c)
	}
}

// ServeHTTP implements http.Handler.
func (h *loginHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		w.Header().Set("WWW-Authenticate", "NTLM")
		w.WriteHeader(401)
		return
	}
	c, _ := r.Context().Value(loginConnKey{}).(net.Conn)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conns[c] == nil {
		h.conns[c] = new(testrig.LoginConn)
	}
	status, fields, user := h.conns[c].Step(r.Header.Get("Authorization"))
	for line := range strings.SplitSeq(strings.TrimSuffix(fields, "\r\n"), "\r\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			w.Header().Add(name, value)
		}
	}
	w.WriteHeader(status)
	fmt.Fprint(w, user)
}

// askAs sends a request with credentials, "" = without any.
func askAs(t *testing.T, client *http.Client, url, credentials string) (status int, challenge, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if credentials != "" {
		r.Header.Set("Authorization", credentials)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), string(text)
}

// TestLogins checks that 20 of 20 NTLM logins succeed over edge and re-encrypt routes, with either
// client protocol. Meanwhile other clients send requests without credentials; no response has one
// of the logged-in users.
func TestLogins(t *testing.T) {
	ca := newAuthority(t, "pods")
	h := &loginHandler{conns: map[net.Conn]*testrig.LoginConn{}}
	cert, key, _ := sign(t, ca, "secure.default.svc")
	plain, secure := httptest.NewUnstartedServer(h), httptest.NewUnstartedServer(h)
	h.configure(plain.Config)
	h.configure(secure.Config)
	secure.TLS, secure.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, NextProtos: []string{"h2", "http/1.1"}}, true
	plain.Start()
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for name, objects := range map[string]string{
		"edge":      tlsRoute("app", "edge") + slice("secure", plain.Listener.Addr()),
		"reencrypt": tlsRoute("app", "reencrypt", "destinationCACertificate", ca.pem) + slice("secure", secure.Listener.Addr()),
	} {
		dir := t.TempDir()
		write(t, dir, "all.yaml", []byte(objects))
		plane, _ := startInProcess(t, dir, controller.Options{UpstreamALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
		for _, front := range []string{"http/1.1", "h2"} {
			t.Run(name+", "+front, func(t *testing.T) {
				const url = "https://app.test/"
				stranger := browser(t, plane.HTTPS().String(), front)
				for i := range 20 {
					client, user := browser(t, plane.HTTPS().String(), front), fmt.Sprint("user", i)
					askAs(t, client, url, "")
					_, challenge, _ := askAs(t, client, url, testrig.Begin)
					if status, _, body := askAs(t, client, url, testrig.Finish(user, challenge)); status != 200 || body != user {
						t.Fatalf("login %d: %d %q", i, status, body)
					}
					for range 4 {
						if status, _, body := askAs(t, client, url, ""); status != 200 || body != user {
							t.Errorf("the next request of %s: %d %q", user, status, body)
						}
						for _, other := range []*http.Client{stranger, browser(t, plane.HTTPS().String(), front)} {
							if status, _, body := askAs(t, other, url, ""); status != 401 {
								t.Fatalf("a stranger got %d %q", status, body)
							}
						}
					}
				}
			})
		}
	}
}
