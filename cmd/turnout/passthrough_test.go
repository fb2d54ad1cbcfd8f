package main

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestPassthroughBehindProxy: a PROXY header in front of a ClientHello says who the client is and is not passed on, whether
// the server name is that of a route or of a wildcard.
func TestPassthroughBehindProxy(t *testing.T) {
	pod, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pod.Close()
	only := func(route string) string {
		return strings.Replace(route, "metadata: {", `metadata: {annotations: {haproxy.router.openshift.io/ip_whitelist: "203.0.113.9"}, `, 1)
	}
	wild := strings.Replace(boxRoute("wild", "any.wild.test", "passthrough"), "spec:\n", "spec:\n  wildcardPolicy: Subdomain\n", 1)
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(only(boxRoute("exact", "exact.test", "passthrough"))+only(wild)+slice("secure", pod.Addr())))
	p := startRouter(t, []string{"ROUTER_USE_PROXY_PROTOCOL=true", "ROUTER_ALLOW_WILDCARD_ROUTES=true"}, "--manifests", dir)
	for _, name := range []string{"exact.test", "other.wild.test"} {
		said := helloOf(t, name)
		c := dial(t, p.https, "PROXY TCP4 203.0.113.9 198.51.100.1 4660 7443\r\n"+string(said))
		served, err := pod.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { served.Close() })
		_ = served.SetDeadline(time.Now().Add(10 * time.Second))
		got := make([]byte, len(said))
		if _, err := io.ReadFull(served, got); err != nil || !bytes.Equal(got, said) {
			t.Errorf("%s: the pod got %.40q, %v; want the ClientHello", name, got, err)
		}
		if _, err := io.WriteString(served, "answer"); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(c, got[:6]); err != nil || string(got[:6]) != "answer" {
			t.Errorf("%s: the client got %q, %v", name, got[:6], err)
		}
		other := dial(t, p.https, "PROXY TCP4 203.0.113.10 198.51.100.1 4660 7443\r\n"+string(said))
		if got, _ := io.ReadAll(other); len(got) > 0 {
			t.Errorf("%s: a client whose address is not allowed got %q", name, got)
		}
	}
}

// helloOf is the ClientHello of a client that asks for a server name.
func helloOf(t *testing.T, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() // fails when server closes
		client.Close()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(server, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(head, body...)
}
