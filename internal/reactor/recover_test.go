package reactor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// bad is what handlers of these tests panic with.
const bad = "a mistake"

// panicLog collects what a loop reports of panics.
type panicLog struct{ values, stacks []string }

func (p *panicLog) config() Config {
	return Config{Panicked: func(_ *Loop, v any, stack []byte) {
		p.values, p.stacks = append(p.values, v.(string)), append(p.stacks, string(stack))
	}}
}

// mistaken is a layer that cannot read.
type mistaken struct{ Layer }

func (mistaken) Read([]byte) (int, error) { panic(bad) }

func TestPanicEndsItsConn(t *testing.T) {
	cases := map[string]struct {
		accept func(c *Conn, h *hooks)
		closed bool // the handler is not notified of the end: that is what panics, or it was never there
	}{
		"accept":       {accept: func(*Conn, *hooks) { panic(bad) }, closed: true},
		"data":         {accept: func(_ *Conn, h *hooks) { h.data = func(*Conn, []byte) int { panic(bad) } }},
		"end of input": {accept: func(_ *Conn, h *hooks) { h.eof = func(*Conn) { panic(bad) } }},
		"drained": {accept: func(_ *Conn, h *hooks) {
			h.data = func(c *Conn, p []byte) int { c.Write(make([]byte, 1<<20)); return len(p) }
			h.drained = func(*Conn) { panic(bad) }
		}},
		"timer": {accept: func(c *Conn, _ *hooks) { c.NewTimer(func() { panic(bad) }).Reset(time.Second) }},
		"mail": {accept: func(_ *Conn, h *hooks) {
			h.data = func(c *Conn, p []byte) int { c.Post(func() { panic(bad) }); return len(p) }
		}},
		"end of an iteration": {accept: func(c *Conn, h *hooks) {
			h.data = func(c *Conn, p []byte) int { c.AtIterationEnd(func() { panic(bad) }); return len(p) }
		}},
		"layer": {accept: func(c *Conn, _ *hooks) { c.SetLayer(mistaken{}) }},
		"closed": {accept: func(_ *Conn, h *hooks) {
			h.data = func(c *Conn, _ []byte) int { c.Close(); return 0 }
			h.closed = func(*Conn, error) { panic(bad) }
		}, closed: true},
	}
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			var panics panicLog
			n := memnet.New(0)
			l := NewOn(n, panics.config())
			first := true
			var ends []error
			ln := listen(t, l, memAddr, func(c *Conn) Handler {
				if first {
					first = false
					return echo()
				}
				h := &hooks{closed: func(_ *Conn, err error) { ends = append(ends, err) }}
				x.accept(c, h)
				return h
			})
			other := n.Connect(ln.Addr())
			n.Run()
			p := n.Connect(ln.Addr())
			p.Write([]byte("x"))
			n.Run()
			p.TakeReceived()
			p.CloseWrite()
			n.Run()
			n.Advance(5 * time.Second)
			p.Close()
			n.Run()
			if len(panics.values) != 1 || panics.values[0] != bad || !strings.Contains(panics.stacks[0], "recover_test.go") {
				t.Fatalf("reported %q", panics)
			}
			if !x.closed && (len(ends) != 1 || !errors.Is(ends[0], ErrPanicked)) {
				t.Errorf("ended by %v", ends)
			}
			other.Write([]byte("still there"))
			n.Run()
			if got := string(other.TakeReceived()); got != "still there" {
				t.Errorf("the other connection got %q", got)
			}
			if l.Conns() != 1 {
				t.Errorf("%d connections are open", l.Conns())
			}
		})
	}
}

// TestPanicEndsWhatItMayHaveChanged: a message that was being written when something panicked is never completed.
func TestPanicEndsWhatItMayHaveChanged(t *testing.T) {
	var panics panicLog
	n := memnet.New(0)
	l := NewOn(n, panics.config())
	var conns []*Conn
	var ends []error
	ln := listen(t, l, memAddr, func(c *Conn) Handler {
		i := len(conns)
		conns = append(conns, c)
		ends = append(ends, nil)
		h := echoHooks()
		h.closed = func(_ *Conn, err error) { ends[i] = err }
		if i == 3 {
			h.data = func(*Conn, []byte) int {
				conns[0].Write([]byte("half of "))
				conns[1].AtIterationEnd(func() { conns[1].Write([]byte("more")) })
				panic(bad)
			}
		}
		return h
	})
	var peers []*memnet.Peer
	for range 4 {
		peers = append(peers, n.Connect(ln.Addr()))
		n.Run()
	}
	peers[3].Write([]byte("x"))
	n.Run()
	for i, want := range []error{ErrPanicked, ErrPanicked, nil, ErrPanicked} {
		if !errors.Is(ends[i], want) || want == nil && ends[i] != nil {
			t.Errorf("connection %d: ended by %v, want %v", i, ends[i], want)
		}
		if got := string(peers[i].TakeReceived()); got != "" {
			t.Errorf("connection %d: got %q", i, got)
		}
	}
	peers[2].Write([]byte("x"))
	n.Run()
	if got := string(peers[2].TakeReceived()); got != "x" || len(panics.values) != 1 {
		t.Errorf("the one that was not touched got %q; reported %q", got, panics)
	}
}

// TestPanicsEndTheProcess: what belongs to no Conn, and everything where nobody is notified.
func TestPanicsEndTheProcess(t *testing.T) {
	var panics panicLog
	cases := map[string]struct {
		config Config
		start  func(l *Loop)
	}{
		"mailbox":            {panics.config(), func(l *Loop) { l.Post(func() { panic(bad) }) }},
		"loop's timer":       {panics.config(), func(l *Loop) { l.NewTimer(func() { panic(bad) }).Reset(0) }},
		"nobody's, notified": {Config{}, func(l *Loop) { l.Dial(memAddr, &hooks{closed: func(*Conn, error) { panic(bad) }}, 0) }},
	}
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			n := memnet.New(0)
			l := NewOn(n, x.config)
			defer func() {
				if v := recover(); v != bad || len(panics.values) > 0 {
					t.Errorf("panic %v, reported %q", v, panics)
				}
			}()
			x.start(l)
			n.Advance(time.Second)
			t.Error("it went on")
		})
	}
}

// TestRecoveredPanics: what is done for no Conn and recovered from ends the Conns that it may have written to, on every engine, and
// mail and timers go on as often as it happens.
func TestRecoveredPanics(t *testing.T) {
	for name, newRig := range map[string]func(t *testing.T, cfg Config) rig{
		"platform": func(t *testing.T, cfg Config) rig { return newRealRig(t, cfg, New) },
		"portable": func(t *testing.T, cfg Config) rig { return newRealRig(t, cfg, NewPortable) },
		"memory":   func(_ *testing.T, cfg Config) rig { return newMemRig(cfg, 0) },
	} {
		for kind, start := range map[string]func(l *Loop, fn func()){
			"mail":  func(l *Loop, fn func()) { l.PostRecovering(fn) },
			"timer": func(l *Loop, fn func()) { l.NewRecoveringTimer(fn).Reset(time.Millisecond) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				var panics panicLog
				r := newRig(t, panics.config())
				defer r.stop()
				var conns []*Conn
				var ln *Listener
				r.do(func() {
					var err error
					if ln, err = r.loop().Listen(anyPort, func(c *Conn) Handler { conns = append(conns, c); r.note(); return echoHooks() }); err != nil {
						t.Error(err)
					}
				})
				r.until(t, "listener", func() bool { return ln != nil })
				var clients []remote
				for i := range 3 {
					clients = append(clients, r.connect(t, ln.Addr()))
					r.until(t, "accept", func() bool { return len(conns) == i+1 })
				}
				const times = 20
				for i := range times {
					r.do(func() {
						start(r.loop(), func() {
							defer r.note()
							if i == times-1 {
								conns[0].Write([]byte("half of "))
								conns[1].AtIterationEnd(func() {})
							}
							panic(bad)
						})
					})
					r.until(t, "panic", func() bool { return len(panics.values) == i+1 })
				}
				r.until(t, "ends", func() bool { return clients[0].resetSeen() && clients[1].resetSeen() })
				clients[2].write("still there")
				r.until(t, "echo", func() bool { return clients[2].received() == "still there" })
				if got := clients[0].received(); got != "" {
					t.Errorf("the first client got %q", got)
				}
				r.do(func() {
					if n := r.loop().Conns(); n != 1 {
						t.Errorf("%d connections are open", n)
					}
				})
			})
		}
	}
}

// TestRecoverOneOfMany: what is done for many Conns in one call goes on after the one over which it panicked.
func TestRecoverOneOfMany(t *testing.T) {
	var panics panicLog
	n := memnet.New(0)
	l := NewOn(n, panics.config())
	var conns []*Conn
	ln := listen(t, l, memAddr, func(c *Conn) Handler { conns = append(conns, c); return echo() })
	var peers []*memnet.Peer
	for range 3 {
		peers = append(peers, n.Connect(ln.Addr()))
		n.Run()
	}
	l.Post(func() {
		for i, c := range conns {
			func() {
				defer c.Recover()
				if i == 1 {
					panic(bad)
				}
				c.Write([]byte("for you"))
			}()
		}
	})
	n.Run()
	for i, want := range []string{"", "", "for you"} { // the first had output when it happened
		if got := string(peers[i].TakeReceived()); got != want || peers[i].ResetSeen() != (want == "") {
			t.Errorf("connection %d: got %q, reset %v", i, got, peers[i].ResetSeen())
		}
	}
	if len(panics.values) != 1 {
		t.Errorf("reported %q", panics)
	}
}
