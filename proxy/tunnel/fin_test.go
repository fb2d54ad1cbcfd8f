package tunnel

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
	"turnout/proxy"
)

// shifted is a layer that changes each byte, as TLS would, and ends with a zero byte.
type shifted struct {
	c  *reactor.Conn
	in []byte
}

func shift(p []byte, by byte) []byte {
	out := bytes.Clone(p)
	for i := range out {
		out[i] += by
	}
	return out
}

func (s *shifted) Feed(p []byte) { s.in = append(s.in, p...) }
func (s *shifted) Stash()        {}
func (s *shifted) Held() int     { return 0 }
func (s *shifted) Read(p []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, reactor.ErrAgain
	}
	n := copy(p, shift(s.in, 255))
	s.in = s.in[n:]
	return n, nil
}

func (s *shifted) Write(p []byte) error { s.c.WireWrite(shift(p, 1)); return nil }
func (s *shifted) CloseWrite() error    { s.c.WireWrite([]byte{0}); return nil }

// joined is a tunnel between a client and a pod, without a pipeline.
type joined struct {
	net         *memnet.Network
	client, pod *memnet.Peer
	ended       bool
	cuts        int
}

// join makes a tunnel with fin timeouts of a second; layered has the client speak shifted.
func join(t *testing.T, layered bool) *joined {
	t.Helper()
	j := &joined{net: memnet.New(1)}
	loop := reactor.NewOn(j.net, reactor.Config{})
	acceptor := j.net.Accept(podA, nil)
	cfg := Config{Idle: time.Hour, ClientFin: time.Second, ServerFin: time.Second, Stall: 10 * time.Second, Done: func() { j.ended = true }, Cut: func() { j.cuts++ }}
	_, err := loop.Listen(front, func(c *reactor.Conn) reactor.Handler {
		if layered {
			c.SetLayer(&shifted{c: c})
		}
		loop.Dial(podA, dialer(func(p *reactor.Conn) { Join(c, p, cfg) }), 0)
		return &looker{}
	})
	must(t, err)
	j.client = j.net.Connect(front)
	j.net.Run()
	j.pod = acceptor.Peers()[0]
	return j
}

// dialer is called when a dialled connection stands.
type dialer func(*reactor.Conn)

func (d dialer) Connected(c *reactor.Conn)    { d(c) }
func (dialer) Data(*reactor.Conn, []byte) int { return 0 }
func (dialer) EOF(*reactor.Conn)              {}
func (dialer) Drained(*reactor.Conn)          {}
func (dialer) Closed(*reactor.Conn, error)    {}

// TestSlowClientGetsEverything: bytes that are queued when the pod ends are not cut while the client takes some of them, with and
// without a layer; who takes none for the fin timeout is cut, and counted.
func TestSlowClientGetsEverything(t *testing.T) {
	const size, window = 15_000, 600
	for name, layered := range map[string]bool{"plain": false, "layer": true} {
		for what, reads := range map[string]int{"reads to the end": 1 << 30, "stops reading": 6} {
			t.Run(name+", "+what, func(t *testing.T) {
				j := join(t, layered)
				j.client.StopReading()
				j.client.ReadWindow(window)
				j.pod.Write(bytes.Repeat([]byte("x"), size))
				j.pod.CloseWrite()
				for i := range 60 {
					j.net.Advance(700 * time.Millisecond)
					if i == 3 { // a packet is lost
						j.net.Advance(8 * time.Second)
					}
					if i < reads {
						j.client.StartReading()
						j.client.StopReading()
					}
				}
				want, cuts := size, 0
				if layered {
					want++
				}
				if reads < 60 {
					want, cuts = reads*window, 1
				}
				if got := j.client.Total(); got < want || cuts > 0 && got > want+window || j.client.EOF() != (cuts == 0) {
					t.Errorf("the client got %d bytes, want %d; the end: %v", got, want, j.client.EOF())
				}
				if !layered && strings.Trim(string(j.client.Received()), "x") != "" {
					t.Error("other bytes than those sent")
				}
				if cuts > 0 && (j.cuts != cuts || !j.ended) {
					t.Errorf("cut %d times, ended %v", j.cuts, j.ended)
				}
			})
		}
	}
}

// TestSlowPodGetsEverything is the same the other way.
func TestSlowPodGetsEverything(t *testing.T) {
	const size, window = 15_000, 600
	j := join(t, false)
	j.pod.StopReading()
	j.pod.ReadWindow(window)
	j.client.Write(bytes.Repeat([]byte("x"), size))
	j.client.CloseWrite()
	for range size/window + 2 {
		j.net.Advance(700 * time.Millisecond)
		j.pod.StartReading()
		j.pod.StopReading()
	}
	if got := j.pod.Total(); got != size || !j.pod.EOF() {
		t.Errorf("the pod got %d of %d bytes; the end: %v", got, size, j.pod.EOF())
	}
	j.net.Advance(5 * time.Second)
	if !j.ended || j.cuts != 1 {
		t.Errorf("ended %v, cut %d times: the pod has nothing to say", j.ended, j.cuts)
	}
}

// TestWhoLeavesWithBytesUnderWay: neither side keeps a tunnel by sending more than the other takes before it leaves: nobody can
// read the end of what it sent.
func TestWhoLeavesWithBytesUnderWay(t *testing.T) {
	for name, leave := range map[string]func(p *memnet.Peer){
		"FIN": (*memnet.Peer).CloseWrite, "RST": (*memnet.Peer).Reset, "close": (*memnet.Peer).Close,
	} {
		for _, podLeaves := range []bool{false, true} {
			for _, size := range []int{40 << 10, 120 << 10, 1 << 20} {
				j := join(t, false)
				from, to := j.client, j.pod
				if podLeaves {
					from, to = to, from
				}
				to.StopReading()
				to.ReadWindow(1000)
				from.Write(make([]byte, size))
				j.net.Advance(time.Minute)
				if j.ended {
					t.Fatal("ended before anybody left")
				}
				if from.Unsent() > 0 && name != "RST" {
					continue // the FIN itself has no room
				}
				leave(from)
				j.net.Advance(9 * time.Second)
				if j.ended && name != "RST" {
					t.Errorf("%s, pod leaves: %v, %d bytes: ended early", name, podLeaves, size)
				}
				j.net.Advance(6 * time.Second)
				if !j.ended || j.cuts != 1 {
					t.Errorf("%s, pod leaves: %v, %d bytes: ended %v, cut %d times", name, podLeaves, size, j.ended, j.cuts)
				}
			}
		}
	}
}

// TestEndedBeforeTheTunnel: the end of a side's sending that came before the tunnel began counts.
func TestEndedBeforeTheTunnel(t *testing.T) {
	n := memnet.New(1)
	loop := reactor.NewOn(n, reactor.Config{})
	pods := n.Accept(podA, nil)
	var client, pod *reactor.Conn
	_, err := loop.Listen(front, func(c *reactor.Conn) reactor.Handler { client = c; return &ignore{} })
	must(t, err)
	pod = loop.Dial(podA, &ignore{}, 0)
	c := n.Connect(front)
	c.CloseWrite()
	n.Run()
	if !client.Ended() {
		t.Fatal("the end has not come")
	}
	ended, cuts := false, 0
	loop.Post(func() {
		Join(client, pod, Config{Idle: time.Hour, ClientFin: time.Second, ServerFin: time.Hour, Done: func() { ended = true }, Cut: func() { cuts++ }})
	})
	n.Run()
	if p := pods.Peers()[0]; !p.EOF() || ended {
		t.Fatalf("the pod's end %v, tunnel ended %v", p.EOF(), ended)
	}
	n.Advance(3 * time.Second)
	if !ended || cuts != 1 {
		t.Errorf("ended %v, cut %d times", ended, cuts)
	}
}

// ignore takes everything.
type ignore struct{ looker }

func (*ignore) Data(_ *reactor.Conn, p []byte) int { return len(p) }

// TestPassthroughOfClientsThatLeft: a FIN that comes before the endpoint stands counts, and all that is bounded is given back.
func TestPassthroughOfClientsThatLeft(t *testing.T) {
	const clients = 100
	n := memnet.New(1)
	r := newRig(t, n, podA)
	n.Accept(podA, nil)
	for range clients {
		c := n.Connect(front)
		c.Write([]byte("hello"))
		c.CloseWrite()
	}
	n.Advance(4 * time.Second)
	if len(r.logged) != clients || r.pool.Servers()[0].InFlight() != 0 || r.logged[0].Reason != proxy.ReasonTunnelClosed {
		t.Errorf("%d of %d ended, %d in flight", len(r.logged), clients, r.pool.Servers()[0].InFlight())
	}
	if got := r.bounds.Of(bound.TunnelFin); got != clients {
		t.Errorf("%d were counted, want %d", got, clients)
	}
}
