package reactor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

// TestConformance runs one table of behaviours on all engines: what holds for one holds for all.
func TestConformance(t *testing.T) {
	engines := []struct {
		name string
		make func(t *testing.T, cfg Config) rig
	}{
		{"platform", func(t *testing.T, cfg Config) rig { return newRealRig(t, cfg, New) }},
		{"portable", func(t *testing.T, cfg Config) rig { return newRealRig(t, cfg, NewPortable) }},
		{"memory", func(_ *testing.T, cfg Config) rig { return newMemRig(cfg, 0) }},
		{"memory shuffled", func(_ *testing.T, cfg Config) rig {
			r := newMemRig(cfg, 7)
			r.n.SplitRandom(100 << 10)
			r.n.WriteLimitRandom(100 << 10)
			return r
		}},
	}
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			for _, b := range behaviours {
				t.Run(b.name, func(t *testing.T) { b.run(t, e.make(t, b.cfg)) })
			}
		})
	}
}

// rig is one loop and the means to talk to it from outside.
type rig interface {
	loop() *Loop
	do(fn func())                                    // on the loop
	until(t *testing.T, what string, ok func() bool) // waits; ok is called on the loop
	connect(t *testing.T, addr netip.AddrPort) remote
	serve(t *testing.T) (addr netip.AddrPort, accepted func() []remote)
	deadAddr(t *testing.T) netip.AddrPort // nobody listens there
	note()                                // something changed that until may wait for
	stop()                                // ends the loop
}

// remote is the other end of a connection. It reads all the time unless the test stops it.
type remote interface {
	write(p string) // never blocks
	closeWrite()    // after what was written
	reset()
	hold(on bool) // stop and start reading
	received() string
	eof() bool
	resetSeen() bool
}

// memRig is a rig in memory.
type memRig struct {
	n *memnet.Network
	l *Loop
}

func newMemRig(cfg Config, seed uint64) *memRig {
	n := memnet.New(seed)
	return &memRig{n: n, l: NewOn(n, cfg)}
}

func (r *memRig) loop() *Loop { return r.l }
func (r *memRig) note()       {}
func (r *memRig) stop()       { r.n.Close() }
func (r *memRig) do(fn func()) {
	r.l.Post(fn)
	r.n.Run()
}

func (r *memRig) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := r.n.Now() + int64(time.Minute); r.n.Now() < end; {
		if r.n.Run(); ok() {
			return
		}
		r.n.Advance(time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

func (r *memRig) connect(_ *testing.T, addr netip.AddrPort) remote {
	return memRemote{r.n.Connect(addr)}
}

func (r *memRig) serve(*testing.T) (netip.AddrPort, func() []remote) {
	a := r.n.Accept(anyPort, nil)
	return a.Addr(), func() (all []remote) {
		for _, p := range a.Peers() {
			all = append(all, memRemote{p})
		}
		return all
	}
}

func (r *memRig) deadAddr(*testing.T) netip.AddrPort { return netip.MustParseAddrPort("10.0.0.9:9") }

type memRemote struct{ p *memnet.Peer }

func (m memRemote) write(p string)   { m.p.Write([]byte(p)) }
func (m memRemote) closeWrite()      { m.p.CloseWrite() }
func (m memRemote) reset()           { m.p.Reset() }
func (m memRemote) received() string { return string(m.p.Received()) }
func (m memRemote) eof() bool        { return m.p.EOF() }
func (m memRemote) resetSeen() bool  { return m.p.ResetSeen() }
func (m memRemote) hold(on bool) {
	if on {
		m.p.StopReading()
	} else {
		m.p.StartReading()
	}
}

// realRig is a rig with a loop that runs and real sockets.
type realRig struct {
	l       *Loop
	cancel  func()
	ended   chan struct{}
	changed chan struct{}
	wg      sync.WaitGroup // remotes, and who accepts them

	mu      sync.Mutex
	over    bool
	remotes []*tcpRemote
}

func newRealRig(t *testing.T, cfg Config, make_ func(Config) (*Loop, error)) rig {
	l, err := make_(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &realRig{l: l, cancel: cancel, ended: make(chan struct{}), changed: make(chan struct{}, 1)}
	go func() {
		defer close(r.ended)
		if err := l.Run(ctx); err != nil {
			t.Errorf("loop: %v", err)
		}
	}()
	t.Cleanup(func() {
		r.stop()
		r.release()
		r.wg.Wait() // listeners were closed before: their cleanup came later
		if e, ok := l.eng.(*portableEngine); ok {
			e.running.Wait() // hangs if a goroutine leaks
		}
	})
	return r
}

// release ends all remotes, and those that are still to come.
func (r *realRig) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	for _, m := range r.remotes {
		m.release()
	}
}

func (r *realRig) loop() *Loop { return r.l }
func (r *realRig) stop()       { r.cancel(); <-r.ended }
func (r *realRig) note() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *realRig) do(fn func()) {
	done := make(chan struct{})
	if r.l.Post(func() { defer close(done); fn() }) {
		<-done
	}
}

func (r *realRig) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		var yes bool
		if !r.l.Post(func() {}) {
			yes = ok()
		} else {
			r.do(func() { yes = ok() })
		}
		if yes {
			return
		}
		select {
		case <-r.changed:
		case <-deadline.C:
			t.Fatalf("%s did not happen", what)
		}
	}
}

func (r *realRig) connect(t *testing.T, addr netip.AddrPort) remote {
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return r.remote(nc)
}

func (r *realRig) serve(t *testing.T) (netip.AddrPort, func() []remote) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	var mu sync.Mutex
	var all []remote
	r.wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			all = append(all, r.remote(nc))
			mu.Unlock()
			r.note()
		}
	})
	return tcpAddr(ln.Addr()), func() []remote {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func (r *realRig) deadAddr(t *testing.T) netip.AddrPort {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return tcpAddr(ln.Addr())
}

// tcpRemote has a goroutine that reads and one that writes.
type tcpRemote struct {
	nc   *net.TCPConn
	rig  *realRig
	mu   sync.Mutex
	cond *sync.Cond
	in   []byte
	out  []byte
	fin  bool
	held bool
	gone bool
	end  error
}

func (r *realRig) remote(nc net.Conn) remote {
	m := &tcpRemote{nc: nc.(*net.TCPConn), rig: r}
	m.cond = sync.NewCond(&m.mu)
	_ = m.nc.SetReadBuffer(64 << 10)
	r.wg.Go(m.readLoop)
	r.wg.Go(m.writeLoop)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remotes = append(r.remotes, m)
	if r.over {
		m.release()
	}
	return m
}

// release ends both goroutines.
func (m *tcpRemote) release() {
	m.change(func() { m.gone = true })
	_ = m.nc.Close()
}

func (m *tcpRemote) readLoop() {
	buf := make([]byte, 64<<10)
	for {
		m.mu.Lock()
		for m.held && !m.gone {
			m.cond.Wait()
		}
		m.mu.Unlock()
		n, err := m.nc.Read(buf)
		m.mu.Lock()
		m.in = append(m.in, buf[:n]...)
		m.end = err
		m.mu.Unlock()
		m.rig.note()
		if err != nil {
			return
		}
	}
}

func (m *tcpRemote) writeLoop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		for len(m.out) == 0 && !m.fin && !m.gone {
			m.cond.Wait()
		}
		out := m.out
		m.out = nil
		switch {
		case m.gone:
			return
		case len(out) == 0:
			_ = m.nc.CloseWrite()
			return
		}
		m.mu.Unlock()
		_, err := m.nc.Write(out)
		m.mu.Lock()
		if err != nil {
			return
		}
	}
}

func (m *tcpRemote) change(fn func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
	m.cond.Broadcast()
}

func (m *tcpRemote) write(p string) { m.change(func() { m.out = append(m.out, p...) }) }
func (m *tcpRemote) closeWrite()    { m.change(func() { m.fin = true }) }
func (m *tcpRemote) hold(on bool)   { m.change(func() { m.held = on }) }
func (m *tcpRemote) reset()         { abort(m.nc) }
func (m *tcpRemote) received() (s string) {
	m.change(func() { s = string(m.in) })
	return s
}
func (m *tcpRemote) eof() (is bool) {
	m.change(func() { is = m.end == io.EOF })
	return is
}
func (m *tcpRemote) resetSeen() (is bool) {
	m.change(func() { is = errors.Is(m.end, syscall.ECONNRESET) })
	return is
}

// noted is a logHandler that tells the rig about each event.
type noted struct {
	logHandler
	r rig
}

func (h *noted) Connected(c *Conn)          { h.logHandler.Connected(c); h.r.note() }
func (h *noted) Data(c *Conn, p []byte) int { defer h.r.note(); return h.logHandler.Data(c, p) }
func (h *noted) EOF(c *Conn)                { h.logHandler.EOF(c); h.r.note() }
func (h *noted) Drained(c *Conn)            { h.logHandler.Drained(c); h.r.note() }
func (h *noted) Closed(c *Conn, err error)  { h.logHandler.Closed(c, err); h.r.note() }

func (h *noted) events() string { return strings.Join(h.log, " ") }

// accept makes a listener whose first connection has h, and connects to it.
func accept(t *testing.T, r rig, h *noted) (conn *Conn, m remote) {
	t.Helper()
	h.r = r
	var addr netip.AddrPort
	r.do(func() {
		ln, err := r.loop().Listen(anyPort, func(c *Conn) Handler { conn = c; r.note(); return h })
		if err != nil {
			t.Error(err)
			return
		}
		addr = ln.Addr()
	})
	m = r.connect(t, addr)
	r.until(t, "accept", func() bool { return conn != nil })
	return conn, m
}

// numbered is n bytes in which every position can be distinguished from others near it.
func numbered(n int) string {
	b := make([]byte, 0, n+20)
	for i := int64(0); len(b) < n; i++ {
		b = append(strconv.AppendInt(b, i, 10), ',')
	}
	return string(b[:n])
}

func echoNoted() *noted { return &noted{logHandler: *echo()} }

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if len(got)+len(want) < 200 {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: %d bytes, want %d; they differ at %d", what, len(got), len(want), i)
		}
	}
	t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
}
