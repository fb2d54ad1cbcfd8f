//go:build !race

package h2_test

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"turnout/balancer"
	"turnout/internal/testkit"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// pod is an endpoint that answers every request with the same 128 bytes, without allocating.
type pod struct {
	name   string
	secure bool
	http2  bool
}

var pods = []pod{{"HTTP/1.1", false, false}, {"h2c", false, true}, {"HTTP/1.1 over TLS", true, false}, {"HTTP/2 over TLS", true, true}}

// start starts it behind a router and publishes a route to it.
func (p pod) start(t testing.TB, r *testkit.Router, change func(*routing.RouteSpec)) {
	t.Helper()
	serve := answerStreams
	if !p.http2 {
		serve = func(c net.Conn) {
			testkit.AnswerHeads(c, []byte("HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"+strings.Repeat("x", 128)))
		}
	}
	spec := testkit.Spec("app.test", p.listen(t, r, serve))
	switch {
	case p.secure:
		id, err := balancer.NewTLS(balancer.TLSConfig{ALPN: []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}})
		if err != nil {
			t.Fatal(err)
		}
		spec.Termination, spec.Insecure = routing.TermReencrypt, routing.InsecureAllow
		spec.Targets[0].TLS = id
	case p.http2:
		spec.Targets[0].Protocol = protocol.HTTP2
	}
	if change != nil {
		change(&spec)
	}
	r.Publish(t, spec)
}

// listen serves connections on loopback.
func (p pod) listen(t testing.TB, r *testkit.Router, serve func(net.Conn)) string {
	t.Helper()
	cfg := &tls.Config{Certificates: []tls.Certificate{*r.Certificate}, NextProtos: []string{"http/1.1"}}
	if p.http2 {
		cfg.NextProtos = []string{"h2"}
	}
	return testkit.Serve(t, func(c net.Conn) {
		if p.secure {
			c = tls.Server(c, cfg)
		}
		serve(c)
	})
}

// answerStreams answers the requests of one HTTP/2 connection. It knows nothing of HPACK: all answers are alike.
func answerStreams(c net.Conn) {
	defer c.Close()
	buf, out := make([]byte, 64<<10), make([]byte, 0, 64<<10)
	if _, err := io.ReadFull(c, buf[:len(http2.ClientPreface)]); err != nil {
		return
	}
	out = append(out, 0, 0, 0, 4, 0, 0, 0, 0, 0) // SETTINGS
	n := 0
	for {
		if len(out) > 0 {
			if _, err := c.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
		k, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		n += k
		at := 0
		for n-at >= 9 {
			size := 9 + int(buf[at+1])<<8 + int(buf[at+2])
			if n-at < size {
				break
			}
			switch kind, flags := http2.FrameType(buf[at+3]), http2.Flags(buf[at+4]); {
			case kind == http2.FrameSettings && flags == 0:
				out = append(out, 0, 0, 0, 4, 1, 0, 0, 0, 0)
			case kind == http2.FrameHeaders:
				out = append(out, 0, 0, 1, 1, 4, buf[at+5], buf[at+6], buf[at+7], buf[at+8], 0x88) // :status 200
				out = append(out, 0, 0, 128, 0, 1)
				out = binary.BigEndian.AppendUint32(out, binary.BigEndian.Uint32(buf[at+5:]))
				out = append(out, body128...)
			}
			at += size
		}
		n = copy(buf, buf[at:n])
	}
}

const body128 = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// TestNoAllocationTowardsPods: whatever the pod speaks, a request costs no allocation, and those that come together leave
// together where the protocol allows it. Over TLS there is one of 24 bytes for each record that crypto/tls reads, here and at
// the pod.
func TestNoAllocationTowardsPods(t *testing.T) {
	for _, p := range pods {
		t.Run(p.name, func(t *testing.T) {
			r := testkit.StartRouter(t, 1, discard{})
			p.start(t, r, nil)
			for _, count := range []int{1, 16} {
				cl := newCaller(t, r.Addr.String(), count)
				for range 200 {
					cl.trip()
				}
				before := r.Stats(t)
				const rounds = 500
				records := 0
				switch {
				case p.secure && p.http2:
					records = 2
				case p.secure:
					records = 2 * count
				}
				if got := testing.AllocsPerRun(rounds, cl.trip); got > float64(records) {
					t.Errorf("%v allocations for %d requests at once, want %d", got, count, records)
				}
				after := r.Stats(t)
				sends := float64(after.Writes-before.Writes) / float64((rounds+1)*count)
				t.Logf("%d at once: %.2f sends for each request", count, sends)
				most := 2.0
				if p.http2 && count == 16 {
					most = 0.6 // 2/16 when each side's frames come in one piece
				}
				if sends > most {
					t.Errorf("%v sends for each of %d requests at once, want at most %v", sends, count, most)
				}
			}
		})
	}
}

// BenchmarkPods is one request of an HTTP/2 client and its answer by each kind of pod, client and pod included.
func BenchmarkPods(b *testing.B) {
	for _, p := range pods {
		r := testkit.StartRouter(b, 1, nil)
		p.start(b, r, nil)
		for _, count := range []int{1, 16} {
			b.Run(p.name+map[int]string{1: "/alone", 16: "/16 at once"}[count], func(b *testing.B) {
				cl := newCaller(b, r.Addr.String(), count)
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N/count + 1 {
					cl.trip()
				}
			})
		}
	}
}
