package reactor

import (
	"net"
	"net/netip"
	"testing"

	"turnout/internal/reactor/memnet"
)

func TestQuiet(t *testing.T) {
	for name, end := range map[string]func(*net.TCPConn) error{
		"FIN":   (*net.TCPConn).CloseWrite,
		"reset": func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"bytes": func(c *net.TCPConn) error { _, err := c.Write([]byte("x")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			l := startLoop(t, Config{})
			peer, c := pair(t, l, &hooks{})
			on(t, l, c.Pause) // what comes is not presented
			on(t, l, func() {
				for range 2 {
					if !c.Quiet() {
						t.Error("a silent connection is not quiet")
					}
				}
				if err := end(peer); err != nil { // the loop is busy with this: it cannot know yet
					t.Error(err)
				}
				if c.Quiet() {
					t.Error("quiet after the end")
				}
			})
		})
	}
}

// Partial implements Partial.
func (x *xorLayer) Partial() bool { return len(x.own)+len(x.fed) > 0 }

// TestQuietLayers: what is on its way through a layer is not quiet either, how ever much of it has arrived.
func TestQuietLayers(t *testing.T) {
	for name, wire := range map[string][]byte{"bytes": xorEncode([]byte("unasked")), "end": {0, 0}} {
		for cut := range len(wire) + 1 {
			n := memnet.New(1)
			l := NewOn(n, Config{})
			var c *Conn
			a := n.Accept(netip.MustParseAddrPort("192.0.2.1:80"), nil)
			c = l.Dial(a.Addr(), &hooks{connected: func(c *Conn) { c.SetLayer(&xorLayer{c: c}) }, data: func(*Conn, []byte) int { return 0 }}, 0)
			n.Run()
			a.Peers()[0].Write(wire[:cut])
			n.Run()
			l.served = 0
			if quiet, soFar := c.Quiet(), c.QuietSoFar(); quiet != (cut == 0) || soFar != quiet {
				t.Errorf("%s: quiet %v, so far %v after %d of %d bytes", name, quiet, soFar, cut, len(wire))
			}
		}
	}
}

// TestQuietSoFar: what has arrived since the loop asked is found once the loop has served many others.
func TestQuietSoFar(t *testing.T) {
	l := startLoop(t, Config{})
	peer, c := pair(t, l, &hooks{})
	on(t, l, func() {
		before := l.Stats().Reads
		for l.served = 0; l.served <= freshServed; l.served++ {
			if !c.QuietSoFar() {
				t.Error("a silent connection is not quiet")
			}
		}
		if n := l.Stats().Reads - before; n != 0 {
			t.Errorf("the system was asked %d times", n)
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if c.QuietSoFar() {
			t.Error("quiet although bytes have come, and long ago")
		}
	})
}
