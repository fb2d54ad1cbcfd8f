package memnet

import (
	"io"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"turnout/internal/reactor/engine"
)

var at = netip.MustParseAddrPort("10.0.0.1:80")

// TestEdges: no event without a change, and the levels of the moment in each.
func TestEdges(t *testing.T) {
	n := New(0)
	eng := &networkEngine{net: n}
	var got []engine.Events
	var sock engine.Socket
	ln, err := eng.Listen(at, func(s engine.Socket, _ error) {
		sock = s
		if err := eng.Register(s, new(int)); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	wait := func() []engine.Events {
		got = nil
		n.Run()
		for eng.hasWork() {
			_ = eng.Wait(0, func(_ any, ev engine.Events) { got = append(got, ev) })
			eng.Accept()
			n.Run()
		}
		return got
	}
	p := n.Connect(ln.Addr())
	p.StopReading()
	p.ReadWindow(9)
	expect := func(what string, want ...engine.Events) {
		t.Helper()
		if !slices.Equal(wait(), want) {
			t.Errorf("%s: events %b, want %b", what, got, want)
		}
	}
	expect("accepted", engine.Out)
	p.Write([]byte("abc"))
	expect("bytes", engine.In|engine.Out)
	p.Write([]byte("def"))
	expect("more bytes while readable")
	buf := make([]byte, 10)
	if k, err := sock.Read(buf); k != 6 || err != nil {
		t.Fatalf("read %d, %v", k, err)
	}
	if _, err := sock.Read(buf); err != engine.ErrAgain {
		t.Fatalf("read of nothing: %v", err)
	}
	p.Write([]byte("g"))
	expect("readable again", engine.In|engine.Out)
	if k, err := sock.Writev(make([]byte, 6), make([]byte, 6)); k != 9 || err != nil {
		t.Fatalf("wrote %d, %v", k, err)
	}
	expect("full")
	p.StartReading()
	expect("writable again", engine.In|engine.Out)
	if k, err := sock.Read(buf); k != 1 || err != nil {
		t.Fatalf("read %d, %v", k, err)
	}
	p.CloseWrite()
	expect("half-close", engine.In|engine.Out|engine.Hup)
	if _, err := sock.Read(buf); err != io.EOF {
		t.Fatalf("read at the end: %v", err)
	}
	p.Reset()
	expect("reset", engine.In|engine.Out|engine.Hup|engine.Err)
	sock.Close(false)
	if _, err := sock.Read(buf); err != syscall.EBADF {
		t.Errorf("read after close: %v", err)
	}
	expect("closed")
}

// TestClosedInBatch: no event for a socket that was closed earlier in the same batch.
func TestClosedInBatch(t *testing.T) {
	n := New(0)
	eng := &networkEngine{net: n}
	var socks []engine.Socket
	ln, err := eng.Listen(at, func(s engine.Socket, _ error) {
		socks = append(socks, s)
		if err := eng.Register(s, new(int)); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n.Connect(ln.Addr())
	}
	n.Run()
	eng.Accept()
	delivered := 0
	_ = eng.Wait(0, func(any, engine.Events) {
		delivered++
		for _, s := range socks {
			s.Close(false)
		}
	})
	if delivered != 1 {
		t.Errorf("%d events, want 1", delivered)
	}
}
