package reactor

import (
	"net/netip"
	"testing"
	"time"
)

// budgeted is two loops that share an address and a Budget on a memory network.
func budgeted(n *Network, most int) (*Budget, netip.AddrPort, *[]*Conn) {
	b, at := NewBudget(most), netip.MustParseAddrPort("192.0.2.1:80")
	accepted := &[]*Conn{}
	for range 2 {
		l := n.NewLoop(Config{Budget: b})
		if _, err := l.Listen(at, func(c *Conn) Handler { *accepted = append(*accepted, c); return ignore{} }); err != nil {
			panic(err)
		}
	}
	return b, at, accepted
}

// ignore takes everything and does nothing.
type ignore struct{}

func (ignore) Connected(*Conn)            {}
func (ignore) Data(_ *Conn, p []byte) int { return len(p) }
func (ignore) EOF(c *Conn)                { c.Close() }
func (ignore) Drained(*Conn)              {}
func (ignore) Closed(*Conn, error)        {}

func TestBudget(t *testing.T) {
	for seed := range uint64(5) {
		n := NewNetwork(seed)
		b, at, accepted := budgeted(n, 10)
		var peers []*Peer
		for range 30 {
			peers = append(peers, n.Connect(at))
		}
		n.Run()
		if got := len(*accepted); got < 10 || got > 11 || b.Open() != int64(got) {
			t.Fatalf("seed %d: %d accepted, %d count", seed, got, b.Open())
		}
		// Each one that ends makes room for one that waits.
		for i := range 30 {
			peers[i].CloseWrite()
			n.Advance(2 * time.Second)
			if open := b.Open(); open > 11 {
				t.Fatalf("seed %d: %d are open", seed, open)
			}
		}
		if len(*accepted) != 30 || b.Open() != 0 {
			t.Fatalf("seed %d: %d accepted at last, %d count", seed, len(*accepted), b.Open())
		}
		n.Connect(at)
		n.Run()
		if len(*accepted) != 31 {
			t.Fatalf("seed %d: nothing is accepted any more", seed)
		}
	}
}

func TestBudgetCountsOnlyAccepted(t *testing.T) {
	n := NewNetwork(1)
	b, at, _ := budgeted(n, 2)
	pod := n.Accept(netip.MustParseAddrPort("198.51.100.1:80"), nil)
	n.loops[0].Dial(pod.Addr(), ignore{}, 0)
	n.Connect(at)
	n.Run()
	if b.Open() != 1 {
		t.Errorf("%d count", b.Open())
	}
	n.Close()
	if b.Open() != 0 {
		t.Errorf("%d count after the end", b.Open())
	}
}

func TestBudgetBoundsLaterListeners(t *testing.T) {
	n := NewNetwork(1)
	_, at, accepted := budgeted(n, 1)
	n.Connect(at)
	n.Run()
	later := netip.MustParseAddrPort("192.0.2.1:443")
	for _, l := range n.loops {
		if !l.full {
			continue
		}
		if _, err := l.Listen(later, func(c *Conn) Handler { *accepted = append(*accepted, c); return ignore{} }); err != nil {
			t.Fatal(err)
		}
	}
	n.Connect(later)
	n.Run()
	if len(*accepted) != 1 {
		t.Errorf("%d accepted", len(*accepted))
	}
}
