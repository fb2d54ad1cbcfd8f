package reactor

import (
	"errors"
	"net/netip"
	"testing"

	"turnout/internal/reactor/memnet"
	"turnout/internal/traffic"
)

// TestPortsEndAlone: connections that came in by one port are retired and cut without those of another.
func TestPortsEndAlone(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	var sessions traffic.Sessions
	ports := [2]Port{{Sessions: &sessions}, {Sessions: &sessions}}
	var conns [2]*Conn
	var why [2]error
	var peers [2]*memnet.Peer
	for i := range ports {
		ln := listen(t, l, netip.AddrPortFrom(memAddr.Addr(), uint16(8000+i)), func(c *Conn) Handler {
			c.CameBy(&ports[i])
			conns[i] = c
			h := echoHooks()
			h.closed = func(_ *Conn, err error) { why[i] = err }
			return h
		})
		peers[i] = n.Connect(ln.Addr())
	}
	n.Run()
	l.Retire(&ports[0])
	if !conns[0].Retired() || conns[1].Retired() {
		t.Errorf("retired: %v, %v", conns[0].Retired(), conns[1].Retired())
	}
	peers[0].Write([]byte("more"))
	n.Run()
	if got := string(peers[0].TakeReceived()); got != "more" {
		t.Errorf("a retired connection echoes %q", got)
	}
	l.Cut(&ports[0])
	n.Run()
	if !peers[0].EOF() || !errors.Is(why[0], ErrClosed) || peers[1].EOF() || sessions.Current() != 1 {
		t.Errorf("after the cut: EOF %v and %v, %v, %d open", peers[0].EOF(), peers[1].EOF(), why[0], sessions.Current())
	}
}
