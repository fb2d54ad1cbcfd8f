package h1

import (
	"testing"

	"turnout/internal/reactor/memnet"
)

// TestPromisedClose: who says that a request is its last is not waited for once the answer has gone; who does not say so, or may
// have more bytes on their way behind a body, is (RFC 9112 section 9.6).
func TestPromisedClose(t *testing.T) {
	for name, c := range map[string]struct {
		request string
		waits   bool
	}{
		"close":                         {"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n", false},
		"HTTP/1.0":                      {"GET / HTTP/1.0\r\nHost: app.test\r\n\r\n", false},
		"close, answered by the router": {"GET / HTTP/1.1\r\nHost: nobody.test\r\nConnection: close\r\n\r\n", true},
		"a body before":                 {"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", true},
		"an empty line behind":          {"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n\r\n", true},
		"another request behind":        {"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOn(t, memnet.New(1))
			p := r.pod(1, always("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"))
			r.route("app", "app.test", nil, p.Addr)
			client := r.net.Connect(frontAddr)
			client.Write([]byte(c.request))
			r.net.Run()
			if !client.EOF() {
				t.Fatal("the answer has no end")
			}
			if waits := r.loop.Conns() > 0; waits != c.waits {
				t.Errorf("waits for the client: %v, want %v", waits, c.waits)
			}
		})
	}
}
