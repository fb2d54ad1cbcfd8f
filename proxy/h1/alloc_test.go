//go:build !race

package h1_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"turnout/internal/testkit"
	"turnout/proxy"
	"turnout/proxy/identity"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

// TestNoAllocation: a proxied keep-alive request costs no allocation and exactly two
// receives and two sends, with every policy there is.
func TestNoAllocation(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n" + strings.Repeat("x", 128)
	id, _, err := proxy.NewUniqueID(proxy.UniqueIDConfig{Format: "%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid", Header: "x-request-id"})
	if err != nil {
		t.Fatal(err)
	}
	compile := func(side header.Side, name, value string) *header.Actions {
		a, errs := header.Compile(side, []header.Action{{Name: name, Value: value}, {Name: "x-gone", Delete: true}})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return a
	}
	r := testkit.StartRouter(t, 1, discard{}, func(c *proxy.Config) {
		c.UniqueID = id
		c.RequestActions = compile(header.Request, "x-host", "%[req.hdr(host),lower]")
		c.ResponseActions = compile(header.Response, "x-frame-options", "DENY")
		c.Captures = &proxy.Captures{Request: []proxy.Capture{{Name: "user-agent", Max: 20}}, Cookie: proxy.Capture{Name: "c=", Max: 9}}
	})
	spec := testkit.Spec("app.test", testkit.Answering(t, answer))
	spec.CookieName, spec.Policy.CookieAttributes = "sticky", "; path=/; HttpOnly"
	spec.Policy.HSTS = "max-age=1"
	spec.Policy.Rewrite = rewrite.Compile("/path", "/v2")
	spec.Policy.RequestActions = compile(header.Request, "x-agent", "<%{+E}[req.hdr(user-agent),base64]>")
	spec.Policy.ResponseActions = compile(header.Response, "x-length", "%[res.hdr(server),lower]")
	r.Publish(t, spec)
	r.Client.Identity = new(identity.Rules).Of(nil)

	c, err := net.Dial("tcp", r.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := []byte("GET /path?x=1 HTTP/1.1\r\nHost: app.test\r\nUser-Agent: test\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=b; c=d\r\n\r\n")
	trip, answered := warmed(t, c, request)
	if !strings.HasPrefix(string(answered), "HTTP/1.1 200 OK\r\n") || !strings.Contains(string(answered), "set-cookie: sticky=") {
		t.Fatalf("answer %q", answered)
	}
	before := r.Stats(t)
	const rounds = 2000
	if got := testing.AllocsPerRun(rounds, trip); got != 0 {
		t.Errorf("%v allocations per request, want 0", got)
	}
	after := r.Stats(t)
	reads, writes := after.Reads-before.Reads, after.Writes-before.Writes
	if reads != 2*(rounds+1) || writes != 2*(rounds+1) { // AllocsPerRun runs once more to warm up
		t.Errorf("%d receives and %d sends for %d requests, want 2 each", reads, writes, rounds+1)
	}
}

// warmed has made 100 trips over a connection: a request, and its answer. It returns the next trip, which allocates nothing of its
// own, and the answer to the latest. All answers are of one size, which must fit into 4 KiB.
func warmed(t *testing.T, c net.Conn, request []byte) (trip func(), answer []byte) {
	t.Helper()
	if _, err := c.Write(request); err != nil {
		t.Fatal(err)
	}
	answer = make([]byte, 4096)
	n, err := c.Read(answer) // the first answer tells how long they all are
	if err != nil {
		t.Fatal(err)
	}
	answer = answer[:n]
	trip = func() {
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Fatal(err)
		}
	}
	for range 99 {
		trip()
	}
	return trip, answer
}

// discard is an access log that costs what any log costs the pipeline.
type discard struct{}

func (discard) Log(*proxy.Record) {}
