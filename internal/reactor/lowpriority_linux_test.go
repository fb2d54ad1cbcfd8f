package reactor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

// slowly lets as much time pass on the loop as an iteration has for work of low priority.
func slowly(l *Loop) {
	for began := l.eng.Now(); l.eng.Now()-began < lowPriorityShare; {
		continue
	}
}

// TestUnestablishedWait: however many new connections have something to say, one that is established is heard before them in
// each iteration, and each of them in its time, in the order of their events.
func TestUnestablishedWait(t *testing.T) {
	const clients = 5
	l := steppedLoop(t, Config{})
	var conns []*Conn
	heard := make(chan string, 100)
	ln := listen(t, l, anyPort, func(c *Conn) Handler {
		name := fmt.Sprint("new", len(conns))
		conns = append(conns, c)
		return &hooks{data: func(_ *Conn, p []byte) int {
			if heard <- name; c.flags&flagNew != 0 {
				slowly(l)
			}
			return len(p)
		}}
	})
	var fds []int
	for range clients + 1 {
		fds = append(fds, rawClient(t, ln.Addr()))
		step(t, l, "accept", func() bool { return len(conns) == len(fds) })
	}
	step(t, l, "the first \"writable\" of each", func() bool { return l.low.empty() })
	conns[clients].Establish()
	say := func(i int) {
		t.Helper()
		if _, err := unix.Write(fds[i], []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for i := range fds { // that of the established one comes last
		say(i)
	}
	for turn := range clients {
		if err := l.iterate(0); err != nil {
			t.Fatal(err)
		}
		if len(heard) != 2 {
			t.Fatalf("iteration %d: %d were heard, want the established one and one that is not", turn, len(heard))
		}
		if first, second := <-heard, <-heard; first != fmt.Sprint("new", clients) || second != fmt.Sprint("new", turn) {
			t.Errorf("iteration %d: heard %s and %s", turn, first, second)
		}
		if rest := clients - 1 - turn; l.idle() != (rest == 0) || l.low.unestablished.len() != rest {
			t.Errorf("%d wait, idle %v", l.low.unestablished.len(), l.idle())
		}
		say(clients)
	}
}

// TestRunLowPriority: what is established is first; then, in alternate iterations, come unestablished ones and work of low priority.
func TestRunLowPriority(t *testing.T) {
	l := steppedLoop(t, Config{})
	var conns []*Conn
	var order []string
	ln := listen(t, l, anyPort, func(c *Conn) Handler {
		name := fmt.Sprint("new", len(conns))
		conns = append(conns, c)
		return &hooks{data: func(_ *Conn, p []byte) int {
			if order = append(order, name); c.flags&flagNew != 0 {
				slowly(l)
			}
			return len(p)
		}}
	})
	var fds []int
	for range 3 {
		fds = append(fds, rawClient(t, ln.Addr()))
		step(t, l, "accept", func() bool { return len(conns) == len(fds) })
	}
	step(t, l, "the first \"writable\" of each", func() bool { return l.low.empty() })
	conns[2].Establish()
	for i := range 3 {
		if !l.RunLowPriority(func() { order = append(order, fmt.Sprint("fn", i)); slowly(l) }) {
			t.Fatal("refused")
		}
	}
	if l.idle() {
		t.Error("idle although work is left")
	}
	for _, fd := range fds {
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	l.low.theirs = false
	for turn, want := range [][]string{{"new2", "new0"}, {"fn0"}, {"new1"}, {"fn1"}, {"fn2"}} {
		if err := l.iterate(0); err != nil || !slices.Equal(order, want) {
			t.Fatalf("iteration %d: the order was %q, want %q, %v", turn, order, want, err)
		}
		order = nil
	}
}

// TestLowPriorityShare: an iteration does not go on with work of low priority when its share is over, and one that follows does.
func TestLowPriorityShare(t *testing.T) {
	l := steppedLoop(t, Config{})
	done := 0
	for range 3 {
		l.RunLowPriority(func() { done++; slowly(l) })
	}
	for turn := range 3 {
		if err := l.iterate(-1); err != nil || done != turn+1 {
			t.Fatalf("%d were done in %d iterations, %v", done, turn+1, err)
		}
	}
	quick := 0
	for range 10 {
		l.RunLowPriority(func() { quick++ })
	}
	if err := l.iterate(-1); err != nil || quick != 10 {
		t.Errorf("%d of 10 were done in an iteration, %v", quick, err)
	}
}

// TestAcceptsAFewAtATime: a flood of connections is accepted after what is established is served, a few in each iteration.
func TestAcceptsAFewAtATime(t *testing.T) {
	l := steppedLoop(t, Config{})
	accepted := 0
	var order []string
	var old *Conn
	ln := listen(t, l, anyPort, func(c *Conn) Handler {
		accepted++
		order = append(order, "accept")
		old = c
		c.Establish()
		return &hooks{data: func(_ *Conn, p []byte) int { order = append(order, "data"); return len(p) }}
	})
	first := rawClient(t, ln.Addr())
	step(t, l, "accept", func() bool { return accepted == 1 })
	if err := l.iterate(time.Second); err != nil || old == nil { // its first "writable"
		t.Fatal(err)
	}
	for range 2*engine.AcceptShare + 1 {
		rawClient(t, ln.Addr())
	}
	if _, err := unix.Write(first, []byte("x")); err != nil {
		t.Fatal(err)
	}
	order = nil
	for _, want := range []int{1 + engine.AcceptShare, 1 + 2*engine.AcceptShare, 2 + 2*engine.AcceptShare} {
		if err := l.iterate(0); err != nil || accepted != want {
			t.Fatalf("%d accepted, want %d, %v", accepted, want, err)
		}
	}
	if order[0] != "data" {
		t.Errorf("the order was %q", order)
	}
}
