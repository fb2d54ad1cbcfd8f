package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"turnout/controller"
	"turnout/internal/server"
)

// TestMisdirected sends the request of each row of the table in docs/http2.md.
func TestMisdirected(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(pod.Close)
	dir := t.TempDir()
	manifest := slice("secure", pod.Listener.Addr()) +
		tlsRoute("through", "passthrough") +
		"apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: insecure}\nspec: {host: insecure.test, to: {kind: Service, name: secure}}\n---\n"
	ca := newAuthority(t, "authority")
	for name, names := range map[string]string{"own": "own.test shared.test *.wild.test", "other": "other.test"} {
		_, key, text := sign(t, ca, names)
		manifest += tlsRoute(name, "edge", "certificate", text, "key", keyPEM(t, key))
	}
	manifest += tlsRoute("t.wild", "passthrough") + strings.Replace(tlsRoute("any.wild", "edge"), "spec:\n", "spec:\n  wildcardPolicy: Subdomain\n", 1)
	for _, name := range []string{"shared", "a.wild", "a.b.wild", "a.apps", "b.apps", "plain"} {
		manifest += tlsRoute(name, "edge")
	}
	write(t, dir, "all.yaml", []byte(manifest))
	plane, store := startInProcess(t, dir, controller.Options{AllowWildcard: true})
	cert, key, _ := sign(t, ca, "*.apps.test")
	store.Publish(store.Load().WithDefaultCertificate(&tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}))

	text, err := os.ReadFile("../../docs/http2.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Protocol | Server name |")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 5 || strings.HasPrefix(line, "|---") {
			if rows > 0 {
				break
			}
			continue
		}
		rows++
		protocol, server, host, want := strings.TrimPrefix(cells[0], "| "), cells[1], cells[2], cells[3]
		if got := fmt.Sprint(answerTo(t, plane, protocol, strings.TrimPrefix(server, "none"), host)); got != want {
			t.Errorf("%s, connection for %s, request for %s: %s, want %s", protocol, server, host, got, want)
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}

// answerTo sends one request on a connection of its own.
func answerTo(t *testing.T, plane *server.Server, protocol, server, host string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var conn net.Conn
	var err error
	switch protocol {
	case "h2 without TLS":
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", plane.HTTP().String())
	default:
		var protos []string
		if protocol == "h2" || protocol == "http/1.1" {
			protos = []string{protocol}
		}
		dialer := tls.Dialer{Config: &tls.Config{ServerName: server, InsecureSkipVerify: true, NextProtos: protos}}
		conn, err = dialer.DialContext(ctx, "tcp", plane.HTTPS().String())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if protocol == "http/1.1" {
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	client, err := new(http2.Transport).NewClientConn(conn)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s, connection for %s, request for %s: %v", protocol, server, host, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
