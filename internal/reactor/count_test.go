package reactor

import (
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
	"turnout/internal/traffic"
)

// TestCameBy: a connection is one of what it counts in from then until it has ended, once, however it ends.
func TestCameBy(t *testing.T) {
	for name, end := range map[string]func(n *memnet.Network, p *memnet.Peer){
		"closed by the peer":            func(_ *memnet.Network, p *memnet.Peer) { p.Close() },
		"reset by the peer":             func(_ *memnet.Network, p *memnet.Peer) { p.Reset() },
		"closed by the handler":         func(_ *memnet.Network, p *memnet.Peer) { p.Write([]byte("close")) },
		"reset by the handler":          func(_ *memnet.Network, p *memnet.Peer) { p.Write([]byte("abort")) },
		"a panic":                       func(_ *memnet.Network, p *memnet.Peer) { p.Write([]byte("panic")) },
		"a panic in Closed":             func(_ *memnet.Network, p *memnet.Peer) { p.Write([]byte("sorry")) },
		"the peer is gone at half time": func(n *memnet.Network, p *memnet.Peer) { p.CloseWrite(); n.Run(); p.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			var panics panicLog
			var sessions traffic.Sessions
			n := memnet.New(0)
			l := NewOn(n, panics.config())
			ln := listen(t, l, memAddr, func(c *Conn) Handler {
				c.CameBy(&Port{Sessions: &sessions})
				h := echoHooks()
				h.data = func(c *Conn, p []byte) int {
					switch string(p) {
					case "close":
						c.Close()
					case "abort":
						c.CloseNow(true)
					case "panic":
						panic(bad)
					case "sorry":
						h.closed = func(*Conn, error) { panic(bad) }
						c.Close()
					}
					return len(p)
				}
				return h
			})
			want := func(when string, current, most int64, total uint64) {
				t.Helper()
				if sessions.Current() != current || sessions.Most() != most || sessions.Total() != total {
					t.Errorf("%s: %d are open, at most %d were, %d in all; want %d, %d, %d", when, sessions.Current(), sessions.Most(), sessions.Total(), current, most, total)
				}
			}
			n.Advance(10 * time.Second)
			stays, p := n.Connect(ln.Addr()), n.Connect(ln.Addr())
			n.Run()
			want("two connections", 2, 2, 2)
			end(n, p)
			n.Advance(time.Minute)
			p.Close() // the handler's end waits for it, if at all
			n.Advance(time.Minute)
			want("one has ended", 1, 2, 2)
			if last, most := sessions.Rate(n.Now()); last != 0 || most != 2 {
				t.Errorf("%d began in the last second and %d in any, want 0 and 2: it is the time of the loop that counts", last, most)
			}
			n.Connect(ln.Addr())
			n.Run()
			want("another one", 2, 2, 3)
			stays.Close()
			n.Advance(time.Minute)
			want("the first one has ended", 1, 2, 3)
		})
	}
}

// TestCameByEndsWithTheLoop: what is open when a loop ends is counted off.
func TestCameByEndsWithTheLoop(t *testing.T) {
	var sessions traffic.Sessions
	n := memnet.New(0)
	l := NewOn(n, Config{})
	ln := listen(t, l, memAddr, func(c *Conn) Handler { c.CameBy(&Port{Sessions: &sessions}); return echo() })
	n.Connect(ln.Addr())
	n.Run()
	if got := sessions.Current(); got != 1 {
		t.Fatalf("%d are open", got)
	}
	l.shutdown()
	if sessions.Current() != 0 || sessions.Total() != 1 {
		t.Errorf("%d of %d are open after the end of the loop", sessions.Current(), sessions.Total())
	}
}
