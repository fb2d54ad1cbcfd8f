package conformance

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/proxy"
	"turnout/routing"
)

const request = "GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"

// large is an answer that does not fit into any queue.
func large(size int) []reply {
	return []reply{{data: []byte("HTTP/1.1 200 OK\r\nContent-Length: " + itoa(size) + "\r\n\r\n" + strings.Repeat("x", size))}}
}

func itoa(n int) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

func (r *rig) reason(t *testing.T, want proxy.Reason) {
	t.Helper()
	if n := len(r.log); n == 0 || r.log[n-1].Reason != want {
		t.Fatalf("want last reason %v, log is %+v", want, r.log)
	}
}

// TestSlowReaderIsServed: a client that takes bytes, however slowly, gets all of them, also when pods may take less time than clients.
func TestSlowReaderIsServed(t *testing.T) {
	for _, server := range []time.Duration{30 * time.Second, 2 * time.Second} {
		t.Run(server.String(), func(t *testing.T) { slowReader(t, server) })
	}
}

func slowReader(t *testing.T, server time.Duration) {
	const size = 1 << 20
	n := memnet.New(1)
	r := newRig(t, n, large(size))
	r.republish(t, func(p *routing.Policy) { p.ServerTimeout = server })
	c := n.Connect(plainPort)
	c.ReadWindow(1 << 10)
	c.StopReading()
	c.Write([]byte(request))
	n.Run()
	for range 3000 {
		c.StartReading()
		c.StopReading()
		n.Advance(7 * time.Second)
		if c.EOF() || c.ResetSeen() {
			break
		}
	}
	if !bytes.HasSuffix(c.Received(), bytes.Repeat([]byte("x"), 100)) || c.Total() < size {
		t.Fatalf("%d bytes arrived, ended %v", c.Total(), c.EOF())
	}
	r.reason(t, proxy.ReasonOK)
}

// TestSlowReaderHoldsLittle: of an answer that a client does not take, the router keeps at most 64 KiB, however it is framed;
// twice as much when the client was fast before. The rest stays with the pod.
func TestSlowReaderHoldsLittle(t *testing.T) {
	const size, window = 4 << 20, 64 << 10 // of what is on the way from the pod
	chunks := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", size/4096) + "0\r\n\r\n"
	for name, replies := range map[string][]reply{"length": large(size), "chunked": {{data: []byte(chunks)}}} {
		for fast, bound := range map[int]int{0: 64 << 10, 1 << 20: 128 << 10} {
			n := memnet.New(1)
			r := newRig(t, n, replies)
			c := n.Connect(plainPort)
			c.OnData = func(p *memnet.Peer) {
				if p.Total() >= fast {
					p.StopReading()
					p.ReadWindow(1 << 10)
				}
			}
			if fast == 0 {
				c.OnData(c)
			}
			c.Write([]byte(request))
			n.Run()
			for range 100 { // a little is taken now and then
				pod := r.pod.conns[0]
				if held := len(replies[0].data) - pod.Unsent() - window - c.Total(); held > bound {
					t.Fatalf("%s, after %d fast bytes: about %d bytes are held", name, fast, held)
				}
				c.StartReading()
				c.StopReading()
				n.Advance(time.Second)
			}
		}
	}
}

// TestStoppedReaderIsCutOff: a client that takes none is cut off after the client timeout,
// and the pod is not held up for longer.
func TestStoppedReaderIsCutOff(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, large(4<<20))
	c := n.Connect(plainPort)
	c.StopReading()
	c.Write([]byte(request))
	n.Advance(29 * time.Second)
	if c.ResetSeen() || len(r.log) != 0 {
		t.Fatal("cut off before its time")
	}
	n.Advance(5 * time.Second)
	r.reason(t, proxy.ReasonClientTimeout)
	if r.perLoop.Pools1.Idle() != 0 {
		t.Error("the pod's connection was pooled")
	}
	if r.perLoop.HTTP1.Open(false) != 0 {
		t.Error("the client's connection is kept")
	}
}

// TestStoppedReaderOfTheRest: an answer that fits into the queue is complete for the
// pod; the client that never takes it is not kept for the whole keep-alive time.
func TestStoppedReaderOfTheRest(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, large(40<<10))
	c := n.Connect(plainPort)
	c.StopReading()
	c.ReadWindow(1 << 10)
	c.Write([]byte(request))
	n.Advance(20 * time.Second)
	r.reason(t, proxy.ReasonOK)
	if r.perLoop.Pools1.Idle() != 0 || r.perLoop.HTTP1.Open(false) != 1 {
		t.Logf("%d pooled, %d open", r.perLoop.Pools1.Idle(), r.perLoop.HTTP1.Open(false))
	}
	n.Advance(60 * time.Second)
	if r.perLoop.HTTP1.Open(false) != 0 {
		t.Error("a client that reads nothing is kept")
	}
}

// TestSlowWriter: a body may come slowly, and the pod may take it slowly.
func TestSlowWriter(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, nil)
	c := n.Connect(plainPort)
	c.Write([]byte("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 20\r\n\r\n"))
	for range 20 {
		n.Advance(20 * time.Second)
		c.Write([]byte("x"))
	}
	n.Run()
	if !bytes.HasPrefix(c.Received(), []byte("HTTP/1.1 200 OK\r\n")) || r.pod.requests != 1 {
		t.Fatalf("got %q", c.Received())
	}
	r.reason(t, proxy.ReasonOK)
}

func TestSlowPodTakesABody(t *testing.T) {
	const size = 2 << 20
	n := memnet.New(1)
	r := newRig(t, n, nil)
	c := n.Connect(plainPort)
	c.Write([]byte("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: " + itoa(size) + "\r\n\r\n"))
	n.Run()
	pod := r.pod.conns[0]
	pod.StopReading()
	pod.ReadWindow(4 << 10)
	c.Write(bytes.Repeat([]byte("x"), size))
	for range 2000 {
		n.Advance(time.Second)
		if c.Total() > 0 {
			break
		}
		pod.StartReading()
		pod.StopReading()
	}
	if !bytes.HasPrefix(c.Received(), []byte("HTTP/1.1 200 OK\r\n")) {
		t.Fatalf("got %.200q after %d bytes at the pod", c.Received(), r.pod.got.Len())
	}
}

func TestStoppedPodEndsABody(t *testing.T) {
	const size = 2 << 20
	n := memnet.New(1)
	r := newRig(t, n, nil)
	c := n.Connect(plainPort)
	c.Write([]byte("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: " + itoa(size) + "\r\n\r\n"))
	n.Run()
	r.pod.conns[0].StopReading()
	c.Write(bytes.Repeat([]byte("x"), size))
	n.Advance(70 * time.Second)
	if !bytes.HasPrefix(c.Received(), []byte("HTTP/1.1 504 ")) {
		t.Fatalf("got %.200q", c.Received())
	}
	r.reason(t, proxy.ReasonServerTimeout)
}

// TestPodThatCannotBeConnected: the connect timeout ends the attempt, not the server's.
func TestPodThatCannotBeConnected(t *testing.T) {
	n := memnet.New(1)
	r := newRig(t, n, nil)
	n.HangDial(podAddr)
	c := n.Connect(plainPort)
	c.Write([]byte(request))
	n.Advance(4 * time.Second)
	if c.Total() != 0 {
		t.Fatalf("answered %q before its time", c.Received())
	}
	n.Advance(2 * time.Second)
	if !bytes.HasPrefix(c.Received(), []byte("HTTP/1.1 503 ")) {
		t.Fatalf("got %q", c.Received())
	}
	r.reason(t, proxy.ReasonConnect)
}

// TestRouteHasItsOwnTimeouts: the annotations of a route beat the router's defaults.
func TestRouteHasItsOwnTimeouts(t *testing.T) {
	own := func(p *routing.Policy) { p.ServerTimeout, p.TunnelTimeout = 2*time.Second, 8*time.Second }
	t.Run("server", func(t *testing.T) {
		n := memnet.New(1)
		r := newRig(t, n, []reply{{silent: true}})
		r.republish(t, own)
		c := n.Connect(plainPort)
		c.Write([]byte(request))
		n.Advance(3 * time.Second)
		if !bytes.HasPrefix(c.Received(), []byte("HTTP/1.1 504 ")) {
			t.Fatalf("got %q", c.Received())
		}
		r.reason(t, proxy.ReasonServerTimeout)
	})
	t.Run("tunnel", func(t *testing.T) {
		n := memnet.New(1)
		r := newRig(t, n, []reply{{data: []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")}})
		r.republish(t, own)
		c := n.Connect(plainPort)
		c.Write([]byte("GET / HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"))
		n.Advance(7 * time.Second)
		if len(r.log) != 0 {
			t.Fatal("ended before its time")
		}
		n.Advance(4 * time.Second)
		r.reason(t, proxy.ReasonTunnelClosed)
	})
}
