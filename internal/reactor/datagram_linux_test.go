package reactor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// receiver hands on what comes.
type receiver struct {
	got    func(all []Datagram)
	failed func(err error)
}

func (r *receiver) Received(_ *DatagramSocket, all []Datagram) { r.got(all) }
func (r *receiver) Failed(_ *DatagramSocket, err error) {
	if r.failed != nil {
		r.failed(err)
	}
}

// startEcho starts a group that answers datagrams, with the address they were sent to in front.
func startEcho(t *testing.T, loops int, addr string) (*Group, netip.AddrPort) {
	t.Helper()
	g, err := NewGroup(loops, Config{})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := g.ListenDatagrams(addr, echoing(g))
	if err != nil {
		t.Fatal(err)
	}
	startGroup(t, g)
	return g, bound
}

// echoing makes handlers that answer by the socket of their loop.
func echoing(*Group) func(l *Loop) DatagramHandler {
	return func(l *Loop) DatagramHandler {
		r := &receiver{}
		r.got = func(all []Datagram) {
			for i := range all {
				all[i].Data = []byte(fmt.Sprint(all[i].Local, " ", string(all[i].Data)))
			}
			for _, s := range l.datagrams {
				if s.handler == r {
					if n, err := s.Send(all); n != len(all) {
						panic(err)
					}
				}
			}
		}
		return r
	}
}

func dialUDP(t *testing.T, addr netip.AddrPort) net.Conn {
	t.Helper()
	c, err := net.Dial("udp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

func says(t *testing.T, c net.Conn, text, want string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 70000)
	n, err := c.Read(buf)
	if err != nil || string(buf[:n]) != want {
		t.Errorf("%q was answered with %.80q, %v, want %.80q", text, buf[:n], err, want)
	}
}

// TestDatagrams: on all addresses each is answered from the one that it was sent to.
func TestDatagrams(t *testing.T) {
	g, addr := startEcho(t, 2, ":0")
	for _, host := range []string{"127.0.0.1", "127.0.0.7", "::1"} {
		if host == "::1" && !addr.Addr().Is6() {
			continue
		}
		says(t, dialUDP(t, netip.AddrPortFrom(netip.MustParseAddr(host), addr.Port())), "hello", host+" hello")
	}
	long := strings.Repeat("a", 60000)
	says(t, dialUDP(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), addr.Port())), long, "127.0.0.1 "+long)
	if _, err := g.ListenDatagrams(addr.String(), echoing(g)); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("the same port again: %v", err)
	}
	one, err := g.ListenDatagrams("127.0.0.1:0", echoing(g))
	if err != nil {
		t.Fatal(err)
	}
	c := dialUDP(t, one)
	says(t, c, "hello", "invalid IP hello") // there is but one
	g.CloseDatagrams(one)
	if again, err := g.ListenDatagrams(one.String(), echoing(g)); err != nil || again != one {
		t.Errorf("after the end: %v, %v", again, err)
	}
}

// TestDatagramsFromManyClients: each goes to the same loop whenever it sends, and several loops have some.
func TestDatagramsFromManyClients(t *testing.T) {
	_, addr := startEcho(t, 3, "127.0.0.1:0")
	for range 64 {
		c := dialUDP(t, addr)
		says(t, c, "x", "invalid IP x")
		says(t, c, "y", "invalid IP y")
	}
}

// TestDialDatagrams: what comes back and what does not, and who pays for the descriptor.
func TestDialDatagrams(t *testing.T) {
	_, addr := startEcho(t, 1, "127.0.0.1:0")
	budget := NewBudget(BudgetConfig{Descriptors: 16})
	l := startLoop(t, Config{Budget: budget})
	got, failed := make(chan string, 100), make(chan error, 1)
	h := &receiver{func(all []Datagram) {
		for _, d := range all {
			got <- string(d.Data)
		}
	}, func(err error) { failed <- err }}
	var s *DatagramSocket
	on(t, l, func() {
		var err error
		if s, err = l.DialDatagrams(addr, 0, h); err != nil {
			t.Error(err)
			return
		}
		var all []Datagram
		for i := range 2*DatagramBatch + 1 {
			all = append(all, Datagram{Data: []byte{byte('a' + i%26)}})
		}
		if n, err := s.Send(all); n != len(all) || err != nil {
			t.Errorf("%d were sent, %v", n, err)
		}
	})
	for i := range 2*DatagramBatch + 1 {
		if g := get(t, "an echo", got); g != "invalid IP "+string(rune('a'+i%26)) {
			t.Errorf("echo %d is %q", i, g)
		}
	}
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	on(t, l, func() {
		lost, err := l.DialDatagrams(netip.MustParseAddrPort(nobody.LocalAddr().String()), 0, h)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = lost.Send([]Datagram{{Data: []byte("x")}})
	})
	if err := get(t, "the refusal", failed); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	on(t, l, func() {
		if spent := budget.dialled.Load(); spent != 2 {
			t.Errorf("%d descriptors are counted", spent)
		}
		s.Close()
		s.Close()
		if _, err := s.Send([]Datagram{{Data: []byte("x")}}); !errors.Is(err, ErrClosed) || budget.dialled.Load() != 1 {
			t.Errorf("after the end: %v, %d", err, budget.dialled.Load())
		}
		for range 16 {
			if _, err = l.DialDatagrams(addr, 0, h); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrExhausted) {
			t.Errorf("without descriptors: %v", err)
		}
	})
}

// TestDatagramsAreHandedOver: while one process has stopped receiving and another has the sockets nothing is lost, and the first may still answer.
func TestDatagramsAreHandedOver(t *testing.T) {
	old, addr := startEcho(t, 2, "127.0.0.1:0")
	c := dialUDP(t, addr)
	says(t, c, "old", "invalid IP old")
	fds, err := old.DatagramDescriptors(addr)
	if err != nil || len(fds) != 2 {
		t.Fatal(fds, err)
	}
	var sockets []*DatagramSocket
	for _, l := range old.Loops() {
		on(t, l, func() { sockets = append(sockets, l.datagrams...) })
	}
	old.StopReceiving()
	if _, err := c.Write([]byte("between")); err != nil {
		t.Fatal(err)
	}
	next, err := NewGroup(2, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := next.InheritDatagrams(fds, echoing(next)); err != nil || got != addr {
		t.Fatal(got, err)
	}
	startGroup(t, next)
	buf := make([]byte, 100)
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "invalid IP between" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	on(t, sockets[0].loop, func() {
		_, _ = sockets[0].Send([]Datagram{{Data: []byte("late"), Peer: netip.MustParseAddrPort(c.LocalAddr().String())}})
	})
	if n, err := c.Read(buf); err != nil || string(buf[:n]) != "late" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// TestDatagramsThatPanic end nothing but what their handler ends.
func TestDatagramsThatPanic(t *testing.T) {
	var panics panicLog
	l := startLoop(t, panics.config())
	failed := make(chan error, 1)
	var s *DatagramSocket
	on(t, l, func() {
		var err error
		if s, err = l.ListenDatagrams(netip.MustParseAddrPort("127.0.0.1:0"), &receiver{func(all []Datagram) { panic(bad) }, func(err error) { failed <- err }}); err != nil {
			t.Error(err)
		}
	})
	c := dialUDP(t, s.Addr())
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := get(t, "the failure", failed); !errors.Is(err, ErrPanicked) {
		t.Error(err)
	}
}

// BenchmarkDatagrams is a round trip of 32 datagrams, from one socket to the echo of another loop's.
func BenchmarkDatagrams(b *testing.B) {
	l, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	answered := 0
	echo := &receiver{}
	var server, client *DatagramSocket
	echo.got = func(all []Datagram) { _, _ = server.Send(all) }
	if server, err = l.ListenDatagrams(netip.MustParseAddrPort("127.0.0.1:0"), echo); err != nil {
		b.Fatal(err)
	}
	if client, err = l.DialDatagrams(server.Addr(), 0, &receiver{got: func(all []Datagram) { answered += len(all) }}); err != nil {
		b.Fatal(err)
	}
	all := make([]Datagram, DatagramBatch)
	for i := range all {
		all[i].Data = make([]byte, 100)
	}
	b.ReportAllocs()
	for b.Loop() {
		answered = 0
		if _, err := client.Send(all); err != nil {
			b.Fatal(err)
		}
		for answered < len(all) {
			if err := l.iterate(-1); err != nil {
				b.Fatal(err)
			}
		}
	}
	l.shutdown()
}
