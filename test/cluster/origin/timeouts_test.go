package origin

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// TestHAProxyTimeouts: each of the timeouts that an IngressController has ends what it is
// about, after its time. There the values are looked for in HAProxy's configuration.
func TestHAProxyTimeouts(t *testing.T) { //nolint:tparallel // times are taken one after the other
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled(`tuningOptions:
  {clientTimeout: 1500ms, serverTimeout: 1s, tunnelTimeout: 2s, tlsInspectDelay: 1s, clientFinTimeout: 1500ms, serverFinTimeout: 1500ms}
`))
	host := n.served(r, "echo")
	t.Run("serverTimeout", func(t *testing.T) {
		begin := time.Now()
		if got := n.got(r, "http://"+host+"/?delay=10s"); got.Code != 504 {
			t.Errorf("status %d, want 504", got.Code)
		}
		between(t, "504", time.Since(begin), time.Second, 5*time.Second)
	})
	t.Run("clientTimeout", func(t *testing.T) {
		c := n.dial(r, "80")
		c.say("POST / HTTP/1.1", "Host: "+host, "Content-Length: 10", "", "ab")
		took, rest := c.ends()
		between(t, "end of an upload that stalls", took, time.Second, 6*time.Second)
		if !strings.HasPrefix(rest, "HTTP/1.1 408 ") {
			t.Errorf("answer %q, want 408", rest)
		}
	})
	t.Run("tunnelTimeout", func(t *testing.T) {
		c := n.tunnel(r, host)
		took, _ := c.ends()
		between(t, "end of an idle tunnel", took, 1900*time.Millisecond, 8*time.Second)
	})
	t.Run("clientFinTimeout", func(t *testing.T) {
		c := n.tunnel(r, host)
		if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		took, _ := c.ends()
		between(t, "end of a half-closed tunnel", took, 0, 5*time.Second)
	})
	t.Run("tlsInspectDelay", func(t *testing.T) {
		took, _ := n.dial(r, "443").ends()
		between(t, "end of a silent connection", took, 900*time.Millisecond, 5*time.Second)
	})
}

// tunnel opens a connection whose every byte comes back.
func (n namespace) tunnel(r *router, host string) conversation {
	n.Helper()
	c := n.dial(r, "80")
	c.say("GET /?upgrade=echo HTTP/1.1", "Host: "+host, "Connection: upgrade", "Upgrade: echo", "")
	if head, _ := c.hear(); !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		n.Fatalf("answer %q, want 101", head)
	}
	c.say("hello")
	if line, err := c.read.ReadString('\n'); err != nil || line != "hello\r\n" {
		n.Fatalf("%q came back, %v", line, err)
	}
	return c
}

// TestHAProxyTimeoutsRejection: times that are none leave the defaults: an answer after two
// seconds comes, and the log names each of them.
func TestHAProxyTimeoutsRejection(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	s := env(
		"ROUTER_DEFAULT_CLIENT_TIMEOUT", "-45s", "ROUTER_CLIENT_FIN_TIMEOUT", "0", "ROUTER_DEFAULT_SERVER_TIMEOUT", "0s",
		"ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", "-5s", "ROUTER_DEFAULT_TUNNEL_TIMEOUT", "-90m", "ROUTER_INSPECT_DELAY", "-720h",
	)
	r := with(t, s)
	host := n.served(r, "echo")
	n.got(r, "http://"+host+"/?delay=2s")
	for name := range s.Env {
		r.logged(t, name+"=")
	}
}

// TestConnectTimeout: when the network drops what a router sends to connect a pod, the client
// has 503 after the time that is set.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	r := with(t, controlled("tuningOptions: {connectTimeout: 2s}"))
	n.echo("echo")
	address := n.running("echo").Status.PodIP
	n.nft("add table ip " + n.table())
	t.Cleanup(func() { n.nft("delete table ip " + n.table()) })
	n.nft("add chain ip " + n.table() + " f { type filter hook forward priority -10; }")
	n.nft("add rule ip " + n.table() + " f ip daddr " + address + " tcp dport 8080 tcp flags & (syn|ack) == syn drop")
	host := n.create(n.newRoute(r, "echo")).Spec.Host
	eventually(t, "503", func() error {
		begin := time.Now()
		got, err := r.get("http://" + host + "/")
		// Before the router knows the route and its pod, 503 comes at once.
		if took := time.Since(begin); err == nil && (got.Code != 503 || took < 1900*time.Millisecond) {
			err = fmt.Errorf("status %d of %s after %s", got.Code, got.from(), took)
		} else if err == nil {
			between(t, "503", took, 1900*time.Millisecond, 10*time.Second)
		}
		return err
	})
}

// table is the name of the namespace's table of packet filters.
func (n namespace) table() string { return strings.ReplaceAll(n.name, "-", "_") }

// nft changes the packet filter of the sandbox.
func (n namespace) nft(command string) {
	n.Helper()
	if out, err := exec.Command("nft", command).CombinedOutput(); err != nil {
		n.Errorf("nft %s: %v: %s", command, err, out)
	}
}

// Test_HTTPKeepAliveTimeout: requests within the time share a connection; once it was idle for
// so long, the router closes it, and the next request has another.
func Test_HTTPKeepAliveTimeout(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	// The field is newer than the definition of the API that the cases have.
	r := with(t, env("ROUTER_SLOWLORIS_HTTP_KEEPALIVE", "2s"))
	host := n.served(r, "echo")
	c := n.dial(r, "80")
	for range 3 {
		c.say("GET / HTTP/1.1", "Host: "+host, "")
		if head, _ := c.hear(); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
			t.Fatalf("answer %q", head)
		}
	}
	took, rest := c.ends()
	between(t, "end of an idle connection", took, 1900*time.Millisecond, 8*time.Second)
	if rest != "" {
		t.Errorf("it ended with %q", rest)
	}
}

// Test_IdleConnectionTerminationPolicyImmediate: a kept connection is answered by the service
// that its route has at the time of the request. There it is closed by the reload that the
// change makes, and the client needs a second one; here it goes on.
func Test_IdleConnectionTerminationPolicyImmediate(t *testing.T) {
	t.Parallel()
	keptConnection(t, controlled("idleConnectionTerminationPolicy: Immediate"))
}

// Test_IdleConnectionTerminationPolicyDeferred: the same. There the kept connection is answered
// by the old service once more.
func Test_IdleConnectionTerminationPolicyDeferred(t *testing.T) {
	t.Parallel()
	keptConnection(t, controlled("idleConnectionTerminationPolicy: Deferred"))
}

// keptConnection sends a request, changes the route's service, and sends two more over the
// same connection.
func keptConnection(t *testing.T, s settings) {
	t.Helper()
	n := newNamespace(t, nil)
	r := with(t, s)
	n.echo("web-service-1")
	n.echo("web-service-2")
	route := n.newRoute(r, "web-service-1")
	n.create(route)
	at := "http://" + route.Spec.Host + "/"
	n.answers(r, at, 200)
	c := r.client(dials{})
	first := must[response](t)(c.get(at))
	if first.from() != "web-service-1" {
		t.Errorf("step 1: %s answers", first.from())
	}
	n.running("web-service-2")
	n.change("web-service-1", func(route *routev1.Route) { route.Spec.To.Name = "web-service-2" })
	eventually(t, "the other service", func() error {
		// Others see the change; the kept connection is not used meanwhile.
		got, err := r.get(at)
		if err == nil && got.from() != "web-service-2" {
			err = fmt.Errorf("%s answers", got.from())
		}
		return err
	})
	for step := 2; step <= 3; step++ {
		got := must[response](t)(c.get(at))
		if got.from() != "web-service-2" || got.Local != first.Local {
			t.Errorf("step %d: %s answers on %s, want web-service-2 on %s", step, got.from(), got.Local, first.Local)
		}
	}
}
