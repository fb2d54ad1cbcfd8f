package h2

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// call writes a gRPC call.
func (c *client) call(id uint32, host, contentType string) {
	c.headers(id, false, ":method", "POST", ":scheme", "http", ":authority", host, ":path", "/pkg.Service/Method",
		"content-type", contentType, "te", "trailers", "grpc-timeout", "10S")
}

func TestGRPCCallsPass(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if string(q.body) == "bad" { // trailers only
			c.headers(q.id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "5", "grpc-message", "no%20such%20thing")
			return
		}
		c.headers(q.id, false, ":status", "200", "content-type", "application/grpc")
		_ = c.fr.WriteData(q.id, false, q.body)
		c.headers(q.id, true, "grpc-status", "0", "grpc-message", "")
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.call(1, "app.test", "application/grpc")
	c.data(1, true, "\x00\x00\x00\x00\x01x")
	c.call(3, "app.test", "application/grpc+proto")
	c.data(3, true, "bad")
	c.run()
	a := c.want(1, 200, "\x00\x00\x00\x00\x01x")
	if a.fields != "content-type: application/grpc\n" || a.trailers != "grpc-status: 0\ngrpc-message: \n" {
		t.Errorf("answer %+v", a)
	}
	if a := c.want(3, 200, ""); a.fields != "content-type: application/grpc\ngrpc-status: 5\ngrpc-message: no%20such%20thing\n" {
		t.Errorf("trailers only: %+v", a)
	}
	if q := p.conns[0].order[0]; !strings.HasPrefix(q.fields, "content-type: application/grpc\nte: trailers\ngrpc-timeout: 10S\n") {
		t.Errorf("the pod got %q", q.fields)
	}
	r.wantQuiet()
}

// TestEarlyTrailersOnly: the pod ends the call before the client has, by trailers only or
// by a head and trailers.
func TestEarlyTrailersOnly(t *testing.T) {
	for name, answer := range map[string]func(c *podConn, q *podRequest){
		"trailers only": func(c *podConn, q *podRequest) {
			c.headers(q.id, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "4")
		},
		"head and trailers": func(c *podConn, q *podRequest) {
			c.headers(q.id, false, ":status", "200", "content-type", "application/grpc")
			c.headers(q.id, true, "grpc-status", "4")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.pod2(1, func(*podConn, *podRequest) {})
			p.early = answer
			r.route("app", "app.test", h2c, p.addr)
			c := r.connect()
			for id := uint32(1); id < 9; id += 2 { // memory of one stream serves the next
				c.call(id, "app.test", "application/grpc")
				c.data(id, false, "message")
				c.run()
				a := c.want(id, 200, "")
				if all := a.fields + a.trailers; all != "content-type: application/grpc\ngrpc-status: 4\n" {
					t.Errorf("answer %+v", a)
				}
			}
		})
	}
}

// TestGRPCStreamsBothWays: messages go either way as they come, and the call ends with the pod's trailers though the
// client has not ended.
func TestGRPCStreamsBothWays(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(*podConn, *podRequest) {})
	p.early = func(c *podConn, q *podRequest) { c.headers(q.id, false, ":status", "200") }
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.call(1, "app.test", "application/grpc")
	c.run()
	pc := p.conns[0]
	for _, word := range []string{"one", "two", "three"} {
		c.data(1, false, word)
		c.run()
		if q := pc.order[0]; !strings.HasSuffix(string(q.body), word) {
			t.Fatalf("the pod has %q", q.body)
		}
		_ = pc.fr.WriteData(1, false, []byte(word))
		pc.flush()
		c.run()
		if a := c.stream(1); !strings.HasSuffix(string(a.body), word) {
			t.Fatalf("the client has %q", a.body)
		}
	}
	pc.headers(1, true, "grpc-status", "0")
	pc.flush()
	c.run()
	r.net.Advance(earlyTime + 10*time.Millisecond)
	c.run()
	if a := c.want(1, 200, "onetwothree"); a.trailers != "grpc-status: 0\n" || !a.wasReset || a.reset != http2.ErrCodeNo {
		t.Errorf("answer %+v", a)
	}
	r.wantQuiet()
}

// TestGRPCLocalAnswers: what the router says itself is said so that a gRPC client understands it.
func TestGRPCLocalAnswers(t *testing.T) {
	r := newRig(t)
	r.route("empty", "empty.test", h2c)
	r.route("dead", "dead.test", h2c, addr("198.51.100.77:80"))
	slow := r.pod2(1, func(*podConn, *podRequest) {})
	r.route("slow", "slow.test", h2c, slow.addr)
	c := r.connect()
	for i, host := range []string{"nowhere.test", "empty.test", "dead.test", "slow.test"} {
		c.call(uint32(2*i+1), host, "application/grpc")
		c.data(uint32(2*i+1), true, "x")
	}
	c.call(21, "nowhere.test", "application/grpc-web")
	c.run()
	r.net.Advance(31 * time.Second)
	c.run()
	for i, message := range []string{"no-route", "no-endpoint", "connect-failed", "server-timeout"} {
		a := c.want(uint32(2*i+1), 200, "")
		if want := "content-type: application/grpc\ngrpc-status: 14\ngrpc-message: " + message + "\n"; a.fields != want {
			t.Errorf("fields %q, want %q", a.fields, want)
		}
	}
	if a := c.stream(21); a.status != "503" || len(a.body) == 0 {
		t.Errorf("grpc-web is no gRPC: %+v", a)
	}
	r.wantQuiet()
}

// TestPodTakesTheCallBack: a gRPC client gets CANCEL as it came, which it takes for its deadline if that is over, and
// others that there is no good answer.
func TestPodTakesTheCallBack(t *testing.T) {
	r := newRig(t)
	p := r.pod2(1, func(c *podConn, q *podRequest) {
		if strings.Contains(string(q.body), "head") {
			c.headers(q.id, false, ":status", "200", "content-type", "application/grpc")
		}
		_ = c.fr.WriteRSTStream(q.id, http2.ErrCodeCancel)
	})
	r.route("app", "app.test", h2c, p.addr)
	c := r.connect()
	c.call(1, "app.test", "application/grpc")
	c.data(1, true, "x")
	c.run()
	c.wantReset(1, http2.ErrCodeCancel)
	c.call(3, "app.test", "application/grpc")
	c.data(3, true, "head")
	c.run()
	c.wantReset(3, http2.ErrCodeCancel)
	if a := c.stream(3); a.status != "200" {
		t.Errorf("answer %+v", a)
	}
	c.get(5, "/")
	c.run()
	if a := c.stream(5); a.status != "502" || !a.ended {
		t.Errorf("answer %+v", a)
	}
	r.wantQuiet()
}
