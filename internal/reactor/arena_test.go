package reactor

import (
	"bytes"
	"net/netip"
	"testing"

	"turnout/internal/reactor/memnet"
)

func TestArenaClasses(t *testing.T) {
	var a arena
	for _, c := range []struct{ want, size int }{
		{0, 1 << 10}, {1, 1 << 10}, {1 << 10, 1 << 10}, {1<<10 + 1, 2 << 10}, {4 << 10, 4 << 10}, {4<<10 + 1, 8 << 10},
		{64 << 10, 64 << 10}, {64<<10 + 1, 128 << 10}, {1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + 1},
	} {
		b := a.lendBuffer(HeldOutput, c.want)
		if len(b) != 0 || cap(b) != c.size {
			t.Errorf("get(%d): %d, %d; want 0, %d", c.want, len(b), cap(b), c.size)
		}
		a.returnBuffer(HeldOutput, append(b, "x"...))
		if again := a.lendBuffer(HeldOutput, c.want); len(again) != 0 || (c.size <= 1<<20 && &again[:1][0] != &b[:1][0]) {
			t.Errorf("get(%d): not the last one put", c.want)
		}
	}
	a.returnBuffer(HeldOutput, make([]byte, 0, 5<<10)) // foreign: fits a class below
	if b := a.lendBuffer(HeldOutput, 4<<10); cap(b) < 4<<10 {
		t.Errorf("cap %d", cap(b))
	}
}

func TestArenaKeepsBoundedMemory(t *testing.T) {
	var a arena
	for range 100 {
		a.returnBuffer(HeldOutput, make([]byte, 0, 1<<20))
	}
	if n := len(a.free[classCount-1]); n != 2 {
		t.Errorf("%d MiB kept", n)
	}
}

func TestQueue(t *testing.T) {
	var a arena
	var q queue
	want := pattern(40 << 10)
	in, out := 0, 0
	for out < len(want) {
		if n := min(3000, len(want)-in); n > 0 {
			q.append(&a, want[in:in+n])
			in += n
		}
		n := min(1000, q.len())
		if !bytes.Equal(q.bytes()[:n], want[out:out+n]) {
			t.Fatalf("wrong bytes at %d", out)
		}
		q.advance(&a, n)
		out += n
		if out == 20000 {
			q.shrink(&a)
		}
	}
	if q.b != nil || a.lent != 0 {
		t.Errorf("an empty queue holds a buffer; %d lent", a.lent)
	}
	q.append(&a, want)
	q.advance(&a, len(want)-10)
	q.shrink(&a)
	if cap(q.b) != 1<<10 || !bytes.Equal(q.bytes(), want[len(want)-10:]) {
		t.Errorf("a rest of 10 bytes holds %d", cap(q.b))
	}
}

// TestBufferFor: what is known to be long gets its space at once, before and after what is queued already.
func TestBufferFor(t *testing.T) {
	n := memnet.New(1)
	loop := NewOn(n, Config{})
	addr := netip.MustParseAddrPort("192.0.2.1:80")
	var conn *Conn
	if _, err := loop.Listen(addr, func(c *Conn) Handler { conn = c; return &hooks{} }); err != nil {
		t.Fatal(err)
	}
	peer := n.Connect(addr)
	n.Run()
	loop.Post(func() {
		b := conn.BufferFor(10)
		conn.SetBuffer(append(b, "head"...))
		b = conn.BufferFor(100 << 10)
		if cap(b)-len(b) < 100<<10 || string(b) != "head" {
			t.Errorf("%d bytes of space after %q", cap(b)-len(b), b)
		}
		at := &b[0]
		b = append(b, make([]byte, 100<<10)...)
		if at != &b[0] {
			t.Error("it was moved")
		}
		conn.SetBuffer(b)
	})
	n.Run()
	if got := peer.TakeReceived(); len(got) != 4+100<<10 || string(got[:4]) != "head" {
		t.Errorf("%d bytes came", len(got))
	}
	conn.CloseNow(false)
	n.Run()
	if loop.arena.lent != 0 {
		t.Errorf("%d buffers are out", loop.arena.lent)
	}
}
