package reactor

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLate: the event that is made to measure waits for those of the sockets that were ready before it.
func TestLate(t *testing.T) {
	l := steppedLoop(t, Config{})
	const clients = batchSize + 50
	accepted, heard := 0, 0
	ln, err := l.Listen(anyPort, func(c *Conn) Handler {
		c.Establish()
		accepted++
		return &hooks{data: func(_ *Conn, p []byte) int { heard++; return len(p) }}
	})
	if err != nil {
		t.Fatal(err)
	}
	var fds []int
	for range clients {
		fds = append(fds, rawClient(t, ln.Addr()))
		step(t, l, "accept", func() bool { return accepted == len(fds) })
	}
	for range 4 { // the first "writable" of each
		if err := l.iterate(0); err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range fds {
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if late := l.Late(); late != 0 {
		t.Errorf("late by %v before anything was measured", late)
	}
	first, second := l.Late(), l.Late()
	if first <= 0 || second < first {
		t.Errorf("an event that waits is late by %v, then %v", first, second)
	}
	if err := l.iterate(0); err != nil || heard != batchSize {
		t.Fatalf("%d clients were heard in an iteration, %v", heard, err)
	}
	if l.lateness.asked.Load() == 0 {
		t.Fatal("the event overtook those before it")
	}
	if err := l.iterate(0); err != nil || heard != clients {
		t.Fatalf("%d clients were heard, %v", heard, err)
	}
	if took := l.lateness.took.Load(); l.lateness.asked.Load() != 0 || time.Duration(took) < second {
		t.Errorf("the event took %d ns, less than it had waited before", took)
	}
}

// TestWaiting counts what the system has accepted and the loop has not.
func TestWaiting(t *testing.T) {
	b := NewBudget(BudgetConfig{Connections: 1})
	g, err := NewGroup(1, Config{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	accepted, closed := make(chan *Conn, 10), make(chan struct{})
	at, err := g.Listen("127.0.0.1:0", func(c *Conn) Handler {
		accepted <- c
		return &hooks{eof: func(c *Conn) { c.CloseNow(false) }}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(closed); _ = g.Run(ctx) }()
	defer func() { cancel(); <-closed }()
	fds := []int{rawClient(t, at)}
	<-accepted
	for i := range 3 {
		fds = append(fds, rawClient(t, at))
		if n := g.Waiting(at.Port()); n != i+1 {
			t.Errorf("%d wait, want %d", n, i+1)
		}
	}
	if n := g.Waiting(netip.MustParseAddrPort("127.0.0.1:1").Port()); n != 0 {
		t.Errorf("%d wait on another port", n)
	}
	if !b.Full() {
		t.Error("the budget is not used up")
	}
	for i, fd := range fds[:3] {
		if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		<-accepted
		if n := g.Waiting(at.Port()); n != 2-i {
			t.Errorf("%d wait, want %d", n, 2-i)
		}
	}
}
