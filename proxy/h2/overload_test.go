package h2

import (
	"syscall"
	"testing"

	"turnout/proxy"
)

// TestMatrixOverload: new requests are refused in a way that tells clients to come back; what has begun is finished.
func TestMatrixOverload(t *testing.T) {
	var x *cross
	serve := func(q message) message {
		x.busy.Store(q.path == "/begins") // while the endpoint works on a request
		return echo(q)
	}
	matrix(t, serve, func(t *testing.T, this *cross) {
		x = this
		if a := x.exchange(message{method: "POST", path: "/begins", body: "hello"}, 0); a.status != 200 || a.body != "hello" {
			t.Errorf("what had begun got %+v", a)
		}
		a := x.exchange(message{method: "GET", path: "/"}, 0)
		if a.status != 503 || a.value("retry-after") != "1" || len(x.got) != 1 {
			t.Errorf("answer %+v, %d requests at the endpoint", a, len(x.got))
		}
		if last := x.logged[len(x.logged)-1]; last.Reason != proxy.ReasonOverload {
			t.Errorf("logged %v", last.Reason)
		}
		x.busy.Store(false)
		if a := x.exchange(message{method: "GET", path: "/"}, 0); a.status != 200 || a.value("retry-after") != "" {
			t.Errorf("afterwards %+v", a)
		}
	})
}

// TestMatrixExhausted: want of descriptors is nobody's fault but this machine's. No endpoint is tried in vain, and none is
// ejected for it.
func TestMatrixExhausted(t *testing.T) {
	matrix(t, echo, func(t *testing.T, x *cross) {
		server := x.Servers(0)[0]
		addr := server.Endpoint().Addr()
		x.net.RefuseDial(addr, syscall.EMFILE)
		for range 5 {
			a := x.exchange(message{method: "GET", path: "/"}, 0)
			if a.status != 503 || a.value("retry-after") != "1" {
				t.Errorf("answer %+v", a)
			}
			if last := x.logged[len(x.logged)-1]; last.Reason != proxy.ReasonOverload || last.Retries != 0 {
				t.Errorf("logged %v after %d retries", last.Reason, last.Retries)
			}
		}
		if n := server.Failures(); n != 0 {
			t.Errorf("the endpoint is blamed for %d failures", n)
		}
		x.net.AllowDial(addr)
		if a := x.exchange(message{method: "GET", path: "/"}, 0); a.status != 200 {
			t.Errorf("afterwards %+v", a)
		}
	})
}
