package reactor

import (
	"testing"

	"turnout/internal/reactor/memnet"
)

// TestUnestablishedThatEnds: one that is gone when its turn comes is left alone.
func TestUnestablishedThatEnds(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	var conns []*Conn
	ended := 0
	ln := listen(t, l, memAddr, func(c *Conn) Handler {
		conns = append(conns, c)
		return &hooks{
			data:   func(_ *Conn, p []byte) int { t.Error("heard after its end"); return len(p) },
			closed: func(*Conn, error) { ended++ },
		}
	})
	p := n.Connect(ln.Addr())
	n.Run()
	p.Write([]byte("x"))
	l.Post(func() { conns[0].CloseNow(true) })
	n.Run()
	if ended != 1 || !l.low.empty() || l.Conns() != 0 {
		t.Errorf("ended %d times, empty %v, %d open", ended, l.low.empty(), l.Conns())
	}
}

// TestRunLowPriorityEndedLoop: what nobody would run is refused.
func TestRunLowPriorityEndedLoop(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	n.Close()
	if l.RunLowPriority(func() { t.Error("run") }) {
		t.Error("taken")
	}
}

func TestFifo(t *testing.T) {
	var q fifo[int]
	next := 0
	for i := range 1000 {
		q.push(i)
		if i%3 == 0 {
			continue
		}
		if v := q.pop(); v != next {
			t.Fatalf("got %d, want %d", v, next)
		}
		next++
	}
	for q.len() > 0 {
		if v := q.pop(); v != next {
			t.Fatalf("got %d, want %d", v, next)
		}
		next++
	}
	for range 10_000 {
		q.push(1)
		q.pop()
	}
	if next != 1000 || cap(q.all) > 2048 {
		t.Errorf("%d came out of 1000, and it holds %d", next, cap(q.all))
	}
}
