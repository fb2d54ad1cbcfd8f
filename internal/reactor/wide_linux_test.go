package reactor

import (
	"bytes"
	"testing"
)

// flood has a peer send without end what h gets.
func flood(t *testing.T, l *Loop, h Handler) *Conn {
	t.Helper()
	peer, c := steppedPair(t, l, h)
	go func() {
		for _, err := peer.Write(make([]byte, 1<<20)); err == nil; _, err = peer.Write(make([]byte, 1<<20)) {
		}
	}()
	return c
}

// TestWideReadsAreShared: an iteration takes no more than wideBytes by wide reads, however many Conns have so much, and the others of it go on.
func TestWideReadsAreShared(t *testing.T) {
	l := steppedLoop(t, Config{})
	wide, usual := map[uint32]int{}, 0
	h := &hooks{data: func(_ *Conn, p []byte) int {
		if len(p) > usualRead {
			wide[l.iterations] += len(p)
		} else if len(p) == usualRead && wide[l.iterations] >= wideBytes {
			usual++
		}
		return len(p)
	}}
	for range 6 {
		flood(t, l, h)
	}
	step(t, l, "a usual read beside wide ones", func() bool { return usual > 100 })
	for _, n := range wide {
		if n > wideBytes {
			t.Fatalf("an iteration read %d KiB by wide reads, want at most %d", n>>10, wideBytes>>10)
		}
	}
}

// TestNoWideReadsWhileMuchIsHeld: what is read is held if the other side does not take it.
func TestNoWideReadsWhileMuchIsHeld(t *testing.T) {
	l := steppedLoop(t, Config{})
	largest, total := 0, 0
	flood(t, l, &hooks{data: func(_ *Conn, p []byte) int {
		largest, total = max(largest, len(p)), total+len(p)
		return len(p)
	}})
	step(t, l, "a wide read", func() bool { return largest > usualRead })
	held := l.arena.lendBuffer(HeldOutput, wideHeld)
	if err := l.iterate(0); err != nil { // by its end it is known
		t.Fatal(err)
	}
	largest, total = 0, 0
	step(t, l, "more input", func() bool { return total > 8<<20 })
	if largest != usualRead {
		t.Errorf("%d KiB were read at once while %d MiB are held", largest>>10, wideHeld>>20)
	}
	l.arena.returnBuffer(HeldOutput, held)
	step(t, l, "a wide read again", func() bool { return largest > usualRead })
}

// TestWideInputIsKept: of a wide read, too, a handler that pauses is given again what it left, and one that does not may leave less than a ReadBuffer.
func TestWideInputIsKept(t *testing.T) {
	l := steppedLoop(t, Config{})
	sent := pattern(8 << 20)
	var got []byte
	left, overfull := 0, false
	var failed error
	peer, c := steppedPair(t, l, &hooks{
		data: func(c *Conn, p []byte) int {
			switch {
			case overfull:
				return 0
			case len(p) > usualRead && left == 0: // all but a little of it for later
				left = len(p) - 1000
				got = append(got, p[:1000]...)
				c.Pause()
				return 1000
			}
			got = append(got, p...)
			return len(p)
		},
		closed: func(_ *Conn, err error) { failed = err },
	})
	go func() { _, _ = peer.Write(sent) }()
	step(t, l, "a wide read", func() bool { return c.Paused() })
	if len(c.kept()) != left || left < usualRead {
		t.Fatalf("%d bytes are kept, %d were left", len(c.kept()), left)
	}
	c.Resume()
	step(t, l, "all", func() bool { return len(got) >= len(sent) })
	if !bytes.Equal(got, sent) {
		t.Error("it is not what was sent")
	}
	overfull = true
	go func() { _, _ = peer.Write(sent) }()
	step(t, l, "the end", func() bool { return failed != nil })
	if failed != ErrInputFull {
		t.Errorf("ended with %v", failed)
	}
}
