package reactor

import (
	"bytes"
	"fmt"
	"testing"

	"turnout/internal/reactor/memnet"
)

// told notes what a Portion is told.
type told struct {
	moved  uint64
	copied int
	stalls []bool
	done   func()
}

func (p *told) Moved(n uint64) { p.moved += n }
func (p *told) Stalled(b bool) { p.stalls = append(p.stalls, b) }
func (p *told) Copied() {
	p.copied++
	if p.done != nil {
		p.done()
	}
}

// portionRig is a loop in virtual time with a connection that has a portion for another.
type portionRig struct {
	n        *memnet.Network
	l        *Loop
	src, dst *Conn
	from, to *memnet.Peer
	told     told
	data     []byte // what src's handler got
	eof      bool
	err      error // of dst's Closed
	closed   bool
}

func newPortionRig(t *testing.T) *portionRig {
	r := &portionRig{n: memnet.New(0)}
	r.l = NewOn(r.n, Config{})
	src := &hooks{
		data: func(_ *Conn, p []byte) int { r.data = append(r.data, p...); return len(p) },
		eof:  func(*Conn) { r.eof = true },
	}
	dst := &hooks{closed: func(_ *Conn, err error) { r.closed, r.err = true, err }}
	var conns []*Conn
	handlers := []Handler{src, dst}
	ln := listen(t, r.l, memAddr, func(c *Conn) Handler { conns = append(conns, c); return handlers[len(conns)-1] })
	r.from, r.to = r.n.Connect(ln.Addr()), r.n.Connect(ln.Addr())
	r.n.Run()
	r.src, r.dst = conns[0], conns[1]
	r.src.Establish()
	r.dst.Establish()
	return r
}

func (r *portionRig) begin(t *testing.T, n int64) {
	t.Helper()
	if !r.l.SpliceN(r.src, r.dst, n, "ns", &r.told) {
		t.Fatal("not spliced")
	}
}

// TestPortion: so many bytes go from one connection to the other behind what that has queued, however they come, and the ones after them
// to the handler; both connections are as they were.
func TestPortion(t *testing.T) {
	for _, split := range []int{0, 1, 7} {
		t.Run(fmt.Sprintf("pieces of %d", split), func(t *testing.T) {
			r := newPortionRig(t)
			r.n.Split(split)
			body := pattern(100_000)
			r.told.done = func() { r.dst.Write([]byte(" tail")) }
			r.dst.Write([]byte("head "))
			r.begin(t, int64(len(body)))
			if r.l.SpliceN(r.src, r.dst, 1, "ns", &r.told) {
				t.Error("spliced twice")
			}
			r.from.Write(append(bytes.Clone(body), "next"...))
			r.n.Run()
			if want := "head " + string(body) + " tail"; string(r.to.Received()) != want {
				t.Errorf("%d bytes arrived, want %d", len(r.to.Received()), len(want))
			}
			if string(r.data) != "next" || r.told.copied != 1 || r.told.moved != uint64(len(body)) {
				t.Errorf("the handler got %q; copied %d times, %d bytes", r.data, r.told.copied, r.told.moved)
			}
			r.told.done = nil
			r.begin(t, 3) // once more, the other handler unharmed
			r.from.Write([]byte("abcd"))
			r.n.Run()
			if string(r.data) != "nextd" || r.told.copied != 2 {
				t.Errorf("the handler got %q; copied %d times", r.data, r.told.copied)
			}
			if r.l.portionPipes.Used() != 0 || r.l.over.len() != 0 {
				t.Errorf("%d pipes are held, %d splices over", r.l.portionPipes.Used(), r.l.over.len())
			}
		})
	}
}

// TestPortionIsCutShort: an end or a failure before the last byte is the handlers' to notice, and nobody believes that all has gone.
func TestPortionIsCutShort(t *testing.T) {
	for name, c := range map[string]struct {
		end         func(r *portionRig)
		eof, closed bool
	}{
		"src ends":           {func(r *portionRig) { r.from.CloseWrite() }, true, false},
		"dst is reset":       {func(r *portionRig) { r.to.Reset() }, false, true},
		"dst is closed here": {func(r *portionRig) { r.dst.CloseNow(false) }, false, true},
		"src is closed here": {func(r *portionRig) { r.src.CloseNow(false) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPortionRig(t)
			r.begin(t, 1000)
			r.from.Write(make([]byte, 400))
			r.n.Run()
			c.end(r)
			r.n.Run()
			if r.told.copied != 0 || r.told.moved != 400 {
				t.Errorf("copied %d times, %d bytes", r.told.copied, r.told.moved)
			}
			if r.eof != c.eof || r.closed != c.closed {
				t.Errorf("EOF of src: %v, Closed of dst: %v; want %v, %v", r.eof, r.closed, c.eof, c.closed)
			}
			if !c.closed && r.to.EOF() {
				t.Error("dst was shut: its handler did not ask for that")
			}
			if r.l.portionPipes.Used() != 0 {
				t.Errorf("%d pipes are held", r.l.portionPipes.Used())
			}
		})
	}
}

// TestPortionStalls: who waits for dst is told when it takes nothing, and when it goes on.
func TestPortionStalls(t *testing.T) {
	r := newPortionRig(t)
	r.to.StopReading()
	r.begin(t, 4*memnet.Window)
	r.from.Write(make([]byte, 4*memnet.Window))
	r.n.Run()
	if fmt.Sprint(r.told.stalls) != "[true]" {
		t.Errorf("stalled: %v, want once", r.told.stalls)
	}
	if held := int(r.told.moved) - r.to.Total(); held > memnet.Window+memoryPipe {
		t.Errorf("%d bytes are on their way to one who does not read", held)
	}
	r.to.StartReading()
	r.n.Run()
	if n := len(r.told.stalls); n < 2 || r.told.stalls[n-1] || r.told.copied != 1 {
		t.Errorf("stalled: %v, copied %d times", r.told.stalls, r.told.copied)
	}
}

// TestPortionLeavesIterations: a portion takes no more of an iteration than its share.
func TestPortionLeavesIterations(t *testing.T) {
	r := newPortionRig(t)
	if s := (&Splice{portion: portion{whose: &r.told}}); s.share() != portionShare || s.share() >= (&Splice{}).share() {
		t.Errorf("a portion has %d bytes of an iteration", s.share())
	}
}

// TestNoPortion: what cannot be spliced is left to the handlers.
func TestNoPortion(t *testing.T) {
	for name, spoil := range map[string]func(r *portionRig){
		"kept input": func(r *portionRig) {
			r.src.SetHandler(&hooks{data: func(*Conn, []byte) int { return 0 }})
			r.from.Write([]byte("kept"))
			r.n.Run()
		},
		"a layer":          func(r *portionRig) { r.dst.SetLayer(&xorLayer{c: r.dst}) },
		"dst is shut":      func(r *portionRig) { r.dst.CloseWrite() },
		"dst is no more":   func(r *portionRig) { r.dst.CloseNow(true) },
		"src has ended":    func(r *portionRig) { r.from.CloseWrite(); r.n.Run() },
		"dst has a source": func(r *portionRig) { r.l.SpliceN(r.src, r.dst, 1, "ns", &told{}) },
	} {
		r := newPortionRig(t)
		spoil(r)
		if r.l.SpliceN(r.src, r.dst, 100, "ns", &r.told) {
			t.Errorf("%s: spliced", name)
		}
	}
}
