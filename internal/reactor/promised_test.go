package reactor

import (
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// TestClosePromised: a peer that has promised silence gets its output and FIN, and nobody waits for its own; one that broke the
// promise before is waited for as ever, so that no RST destroys what it was sent.
func TestClosePromised(t *testing.T) {
	for name, c := range map[string]struct {
		sends string // after what was consumed
		waits bool
	}{
		"silent":                        {"", false},
		"more came in the same segment": {"more", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := memnet.New(0)
			l := NewOn(n, Config{Linger: time.Minute})
			var conn *Conn
			h := &hooks{data: func(c *Conn, _ []byte) int { conn = c; return len("request") }}
			ln := listen(t, l, memAddr, func(*Conn) Handler { return h })
			peer := n.Connect(ln.Addr())
			peer.Write([]byte("request" + c.sends))
			n.Run()
			conn.Write([]byte("answer"))
			conn.ClosePromised()
			n.Run()
			if got := string(peer.Received()); got != "answer" || !peer.EOF() {
				t.Errorf("the peer got %q, its end: %v", got, peer.EOF())
			}
			if waits := l.Conns() == 1; waits != c.waits {
				t.Errorf("waits for the peer: %v, want %v", waits, c.waits)
			}
			peer.Close()
			n.Run()
			if l.Conns() != 0 {
				t.Error("a connection is left")
			}
		})
	}
}

// TestClosePromisedInsideData: while input is being presented nobody knows yet whether all of it is wanted.
func TestClosePromisedInsideData(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{Linger: time.Minute})
	h := &hooks{data: func(c *Conn, p []byte) int { c.ClosePromised(); return len(p) }}
	ln := listen(t, l, memAddr, func(*Conn) Handler { return h })
	peer := n.Connect(ln.Addr())
	peer.Write([]byte("request"))
	n.Run()
	if l.Conns() != 1 {
		t.Error("closed without waiting for the peer")
	}
}
