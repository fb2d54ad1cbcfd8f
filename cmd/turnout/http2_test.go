package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/controller"
	"turnout/internal/server"
)

// TestHTTP2OverTLS: ALPN offers it on every host that TLS ends for, whatever its certificate, unless it is disabled; a
// host that is passed through is misdirected (421) on a connection made for another.
func TestHTTP2OverTLS(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s version %q", r.Host, r.Header.Get("X-Forwarded-Proto-Version"))
	}))
	t.Cleanup(pod.Close)
	ca := newAuthority(t, "authority")
	_, ownKey, ownPEM := sign(t, ca, "own.test")
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(
		tlsRoute("own", "edge", "certificate", ownPEM, "key", keyPEM(t, ownKey))+tlsRoute("plain", "edge")+tlsRoute("through", "passthrough")+
			slice("secure", pod.Listener.Addr())))
	for _, disabled := range []bool{false, true} {
		plane, _ := startInProcess(t, dir, controller.Options{}, func(c *server.Config) { c.TLS.DisableHTTP2 = disabled })
		for _, name := range []string{"own.test", "plain.test"} {
			conn, err := tls.Dial("tcp", plane.HTTPS().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
			if err != nil {
				t.Fatal(err)
			}
			got := conn.ConnectionState().NegotiatedProtocol
			if want := map[bool]string{false: "h2", true: "http/1.1"}[disabled]; got != want {
				t.Errorf("disabled %v: %s negotiates %q, want %q", disabled, name, got, want)
			}
			if got == "h2" {
				client, err := new(http2.Transport).NewClientConn(conn)
				if err != nil {
					t.Fatal(err)
				}
				wantAnswer(t, client, name, 200, name+` version "h2"`)
				wantAnswer(t, client, "through.test", 421, "")
				wantAnswer(t, client, "unknown.test", 503, "")
			}
			conn.Close()
		}
		priorKnowledge := dialHTTP2(t, plane.HTTPS().String(), "own.test")
		wantAnswer(t, priorKnowledge, "own.test", 200, `own.test version ""`)
	}
}

// dialHTTP2 is a client of HTTP/2 on the TLS port, with these protocols for ALPN.
func dialHTTP2(t *testing.T, addr, serverName string, protocols ...string) *http2.ClientConn {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{ServerName: serverName, InsecureSkipVerify: true, NextProtos: protocols})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client, err := new(http2.Transport).NewClientConn(conn)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func wantAnswer(t *testing.T, client *http2.ClientConn, host string, status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || !strings.Contains(string(got), body) {
		t.Errorf("%s: status %d, body %.80q, %v; want %d, %q", host, resp.StatusCode, got, err, status, body)
	}
}
