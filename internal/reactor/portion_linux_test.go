package reactor

import (
	"bytes"
	"io"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPortionsShareTheirPipes checks that portions of one owner use at most its share of the loop's
// pipes. A portion without a pipe is copied by the process, to the same byte. Another owner still
// gets a pipe.
func TestPortionsShareTheirPipes(t *testing.T) {
	l := startLoop(t, Config{})
	next := make(chan byte, 1)
	left, a := pair(t, l, &hooks{data: func(_ *Conn, p []byte) int { next <- p[0]; return len(p) }})
	right, b := pair(t, l, &hooks{})
	body := pattern(3<<20 + 1)
	on(t, l, func() {
		for l.portionPipes.Take("ns", 1) { // all that an owner may have
		}
		if !l.SpliceN(a, b, int64(len(body)), "ns", &told{}) {
			t.Error("not spliced")
		}
	})
	go func() { _, _ = left.Write(append(bytes.Clone(body), '.')) }()
	got := make([]byte, len(body))
	if _, err := io.ReadFull(right, got); err != nil || !bytes.Equal(got, body) {
		t.Errorf("other bytes arrived, %v", err)
	}
	if c := get(t, "what follows", next); c != '.' {
		t.Errorf("%q follows", c)
	}
	on(t, l, func() {
		if l.portionPipes.Used() != portionPipes/2 || l.stats.Spliced != 0 {
			t.Errorf("%d pipes, %d bytes went through one", l.portionPipes.Used(), l.stats.Spliced)
		}
		if !l.portionPipes.Take("other", 1) {
			t.Error("another owner gets no pipe")
		}
	})
}

// TestPortionBoundsTheKernel: a peer that does not take its portion holds a piece of it in a pipe, and of the kernel's memory what any
// client may.
func TestPortionBoundsTheKernel(t *testing.T) {
	l := startLoop(t, Config{})
	left, a := pair(t, l, &hooks{})
	right, b := pair(t, l, &hooks{})
	p := &told{}
	const total = 64 << 20
	on(t, l, func() {
		if !l.SpliceN(a, b, total, "ns", p) {
			t.Error("not spliced")
		}
	})
	wrote := make(chan error, 1)
	go func() {
		_, err := left.Write(make([]byte, total))
		wrote <- err
	}()
	stalled := make(chan struct{})
	var look func()
	look = func() {
		if len(p.stalls) > 0 {
			close(stalled)
			return
		}
		l.Post(look)
	}
	l.Post(look)
	get(t, "a stalled portion", stalled)
	on(t, l, func() {
		if s := b.seldom.to; s.held > portionPipe || l.portionPipes.Used() != 1 {
			t.Errorf("%d bytes in %d pipes", s.held, l.portionPipes.Used())
		}
		if low, err := unix.GetsockoptInt(int(b.sock.(*epollSocket).fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); err != nil || low != notSentLow {
			t.Errorf("TCP_NOTSENT_LOWAT is %d, %v", low, err)
		}
	})
	if n, err := io.CopyN(io.Discard, right, total); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := get(t, "sender", wrote); err != nil {
		t.Error(err)
	}
	on(t, l, func() {
		if p.copied != 1 || l.portionPipes.Used() != 0 {
			t.Errorf("copied %d times, %d pipes are held", p.copied, l.portionPipes.Used())
		}
	})
}

// TestNoAllocationPerPortion: splices are used again.
func TestNoAllocationPerPortion(t *testing.T) {
	l := steppedLoop(t, Config{})
	var conns []*Conn
	ln, err := l.Listen(anyPort, func(c *Conn) Handler { conns = append(conns, c); return &hooks{} })
	if err != nil {
		t.Fatal(err)
	}
	left, right := rawClient(t, ln.Addr()), rawClient(t, ln.Addr())
	step(t, l, "accept", func() bool { return len(conns) == 2 })
	conns[0].Establish()
	conns[1].Establish()
	body, p := make([]byte, 32<<10), &told{}
	once := func() {
		if !l.SpliceN(conns[0], conns[1], int64(len(body)), "ns", p) {
			t.Fatal("not spliced")
		}
		if n, err := unix.Write(left, body); err != nil || n != len(body) {
			t.Fatal(n, err)
		}
		for want := p.copied + 1; p.copied < want; {
			if err := l.iterate(patience); err != nil {
				t.Fatal(err)
			}
		}
		for n := 0; n < len(body); {
			m, err := unix.Read(right, body)
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
	}
	once()
	if n := testing.AllocsPerRun(50, once); n > 0 {
		t.Errorf("%v allocations per portion", n)
	}
}
