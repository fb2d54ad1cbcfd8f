package reactor

import (
	"net/netip"
	"testing"
	"time"
)

// TestTTL sends with a TTL and reads it where a connection or datagram arrives, over IPv4, IPv6,
// and IPv4 on a socket of IPv6.
func TestTTL(t *testing.T) {
	for _, c := range []struct{ listen, dial string }{
		{"127.0.0.1:0", "127.0.0.1"},
		{"0.0.0.0:0", "127.0.0.1"},
		{"[::1]:0", "::1"},
		{"[::]:0", "::1"},
		{"[::]:0", "127.0.0.1"},
	} {
		l := startLoop(t, Config{})
		received := make(chan uint8, 2)
		var stream, datagram netip.AddrPort
		on(t, l, func() {
			ln, err := l.Listen(netip.MustParseAddrPort(c.listen), func(c *Conn) Handler {
				received <- c.ReceivedTTL()
				return &hooks{}
			})
			if err != nil {
				t.Error(err)
				return
			}
			stream = ln.Addr()
			s, err := l.ListenDatagrams(netip.MustParseAddrPort(c.listen), &receiver{func(all []Datagram) { received <- all[0].TTL }, func(error) {}})
			if err != nil {
				t.Error(err)
				return
			}
			datagram = s.Addr()
		})
		for _, ttl := range []uint8{37, 0, 255} {
			want := ttl
			if want == 0 {
				want = 64
			}
			to := netip.MustParseAddr(c.dial)
			on(t, l, func() { l.DialTTL(netip.AddrPortFrom(to, stream.Port()), &hooks{}, time.Minute, ttl) })
			if got := get(t, "connection", received); got != want {
				t.Errorf("a connection from %s to %s with TTL %d arrived with %d", c.dial, c.listen, ttl, got)
			}
			on(t, l, func() {
				s, err := l.DialDatagrams(netip.AddrPortFrom(to, datagram.Port()), ttl, &receiver{func([]Datagram) {}, func(error) {}})
				if err != nil {
					t.Error(err)
					return
				}
				if n, err := s.Send([]Datagram{{Data: []byte("x")}}); n != 1 {
					t.Error(err)
				}
			})
			if got := get(t, "datagram", received); got != want {
				t.Errorf("a datagram from %s to %s with TTL %d arrived with %d", c.dial, c.listen, ttl, got)
			}
		}
	}
}
