package reactor

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// budgeted is two loops that share an address and a Budget on a memory network.
func budgeted(n *memnet.Network, most int) (*Budget, netip.AddrPort, *[]*Conn, []*Loop) {
	b, at := NewBudget(BudgetConfig{Connections: most}), netip.MustParseAddrPort("192.0.2.1:80")
	accepted := &[]*Conn{}
	loops := []*Loop{NewOn(n, Config{Budget: b}), NewOn(n, Config{Budget: b})}
	for _, l := range loops {
		if _, err := l.Listen(at, func(c *Conn) Handler { *accepted = append(*accepted, c); return ignore{} }); err != nil {
			panic(err)
		}
	}
	return b, at, accepted, loops
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
		n := memnet.New(seed)
		b, at, accepted, _ := budgeted(n, 10)
		var peers []*memnet.Peer
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
	n := memnet.New(1)
	b, at, _, loops := budgeted(n, 2)
	pod := n.Accept(netip.MustParseAddrPort("198.51.100.1:80"), nil)
	loops[0].Dial(pod.Addr(), ignore{}, 0)
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
	n := memnet.New(1)
	_, at, accepted, loops := budgeted(n, 1)
	n.Connect(at)
	n.Run()
	later := netip.MustParseAddrPort("192.0.2.1:443")
	for _, l := range loops {
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

func TestBudgetHold(t *testing.T) {
	n := memnet.New(1)
	b, at, accepted, _ := budgeted(n, 0)
	n.Connect(at)
	n.Run()
	b.Hold(true)
	for range 20 {
		n.Connect(at)
	}
	n.Run()
	if got := len(*accepted); got < 2 || got > 3 {
		t.Errorf("%d accepted, want one and one for each loop at most", got)
	}
	b.Hold(true)
	b.Hold(false)
	n.Run()
	if len(*accepted) != 21 {
		t.Errorf("%d accepted when it was over", len(*accepted))
	}
}

// TestBudgetOfDescriptors: what was accepted can still be served when no more is accepted, and the rest of the process keeps its own.
func TestBudgetOfDescriptors(t *testing.T) {
	n := memnet.New(1)
	b, at := NewBudget(BudgetConfig{Descriptors: 16}), netip.MustParseAddrPort("192.0.2.1:80")
	l := NewOn(n, Config{Budget: b})
	if _, err := l.Listen(at, func(*Conn) Handler { return ignore{} }); err != nil {
		t.Fatal(err)
	}
	var peers []*memnet.Peer
	for range 20 {
		peers = append(peers, n.Connect(at))
	}
	n.Run()
	if b.Open() != 14 || !b.Short() || b.Full() {
		t.Fatalf("%d are open, short is %v, full %v", b.Open(), b.Short(), b.Full())
	}
	pod := n.Accept(netip.MustParseAddrPort("198.51.100.1:80"), nil)
	failed := 0
	h := &hooks{closed: func(_ *Conn, err error) {
		if failed++; err != ErrExhausted || !Exhausted(err) {
			t.Errorf("closed with %v", err)
		}
	}}
	dialled := []*Conn{l.Dial(pod.Addr(), h, 0), l.Dial(pod.Addr(), h, 0), l.Dial(pod.Addr(), h, 0)}
	n.Run()
	if failed != 1 {
		t.Errorf("%d of 3 could not be dialled", failed)
	}
	h.closed = nil
	for _, c := range dialled[:2] {
		c.CloseNow(false)
	}
	n.Run()
	if b.Open() != 14 {
		t.Errorf("%d are open: the last eighth is not for accepted ones", b.Open())
	}
	peers[0].CloseWrite()
	n.Advance(2 * time.Second)
	if b.Open() != 14 {
		t.Errorf("%d are open after one left", b.Open())
	}
	for _, p := range peers {
		p.CloseWrite()
	}
	n.Advance(5 * time.Second)
	if b.Open() != 0 || b.Short() || b.dialled.Load() != 0 {
		t.Errorf("%d are open at last, %d dialled", b.Open(), b.dialled.Load())
	}
}

// TestBudgetOfSettled: clients that need no more connections to pods keep none for them, so nearly all descriptors are used; who
// may need some still has them.
func TestBudgetOfSettled(t *testing.T) {
	const most = 1600
	n := memnet.New(1)
	b, at := NewBudget(BudgetConfig{Descriptors: most}), netip.MustParseAddrPort("192.0.2.1:80")
	pod := n.Accept(netip.MustParseAddrPort("198.51.100.1:80"), nil)
	var accepted []*Conn
	l := NewOn(n, Config{Budget: b})
	if _, err := l.Listen(at, func(c *Conn) Handler { accepted = append(accepted, c); return ignore{} }); err != nil {
		t.Fatal(err)
	}
	failed := &hooks{closed: func(_ *Conn, err error) { t.Errorf("closed with %v", err) }}
	for {
		before := len(accepted)
		n.Connect(at)
		n.Run()
		if len(accepted) == before {
			break
		}
		l.Dial(pod.Addr(), failed, 0)
		n.Run()
		accepted[before].Settle()
		accepted[before].Settle() // once is enough
	}
	if got := len(accepted); got < (most-perClient)/2 || got > (most-perClient)/2+1 {
		t.Fatalf("%d pairs are open with %d descriptors", got, most)
	}
	if b.spendSpare(1) {
		t.Error("what is kept for pods was spent on something else")
	}
	last := len(accepted)
	accepted[0].CloseNow(false)
	n.Run() // the one that waited
	if len(accepted) != last+1 {
		t.Fatalf("%d were accepted when there was room, want 1", len(accepted)-last)
	}
	n.Connect(at)
	n.Run()
	if len(accepted) != last+1 {
		t.Error("accepted although the last client may need more than is left")
	}
	for range perClient {
		l.Dial(pod.Addr(), failed, 0)
	}
	n.Run()
	failed.closed = nil
	n.Close()
	if open, settled := b.Open(), b.settled.Load(); open != 0 || settled != 0 {
		t.Errorf("%d are open and %d settled at last", open, settled)
	}
}

func TestExhausted(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOMEM: true, syscall.ENOBUFS: true, syscall.EADDRNOTAVAIL: true,
		syscall.ECONNREFUSED: false, syscall.EHOSTUNREACH: false, ErrDialTimeout: false, ErrClosed: false,
		fmt.Errorf("cannot connect: %w", syscall.EMFILE): true,
	} {
		if Exhausted(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
