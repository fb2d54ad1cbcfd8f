package reactor

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/reactor/memnet"
)

var memAddr = netip.MustParseAddrPort("10.0.0.1:80")

// logHandler writes what happens to a connection into a log; set functions replace the default.
type logHandler struct {
	log    []string
	input  []byte
	closed int
	err    error

	data    func(c *Conn, p []byte) int
	eof     func(c *Conn)
	connect func(c *Conn)
	drained func(c *Conn)
}

func (h *logHandler) Connected(c *Conn) {
	h.log = append(h.log, "connected")
	if h.connect != nil {
		h.connect(c)
	}
}

func (h *logHandler) Data(c *Conn, p []byte) int {
	n := len(p)
	if h.data != nil {
		n = h.data(c, p)
	}
	h.input = append(h.input, p[:n]...)
	return n
}

func (h *logHandler) EOF(c *Conn) {
	h.log = append(h.log, "eof")
	if h.eof != nil {
		h.eof(c)
	}
}

func (h *logHandler) Drained(c *Conn) {
	h.log = append(h.log, "drained")
	if h.drained != nil {
		h.drained(c)
	}
}

func (h *logHandler) Closed(_ *Conn, err error) {
	h.log = append(h.log, "closed")
	h.closed++
	h.err = err
}

func echo() *logHandler {
	return &logHandler{
		data: func(c *Conn, p []byte) int { c.Write(p); return len(p) },
		eof:  func(c *Conn) { c.Close() },
	}
}

func listen(t *testing.T, l *Loop, addr netip.AddrPort, accept func(c *Conn) Handler) *Listener {
	t.Helper()
	ln, err := l.Listen(addr, accept)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// TestNetworkEcho shows how a test of a pipeline looks.
func TestNetworkEcho(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	closed := 0
	ln := listen(t, l, memAddr, func(c *Conn) Handler {
		h := &idleEcho{closed: &closed}
		h.timer = l.NewTimer(func() { c.Write([]byte("too slow")); c.Close() })
		h.timer.Reset(30 * time.Second)
		return h
	})

	p := n.Connect(ln.Addr())
	p.Write([]byte("hello"))
	n.Run()
	if got := string(p.TakeReceived()); got != "hello" {
		t.Fatalf("received %q", got)
	}
	n.Advance(29 * time.Second)
	if len(p.Received()) > 0 || closed != 0 {
		t.Fatalf("the timeout came early: %q, closed %d", p.Received(), closed)
	}
	n.Advance(2 * time.Second)
	if got := string(p.Received()); got != "too slow" || !p.EOF() {
		t.Fatalf("received %q, EOF %v", got, p.EOF())
	}
	p.Close()
	n.Run()
	if closed != 1 || l.Conns() != 0 {
		t.Fatalf("closed %d times, %d connections left", closed, l.Conns())
	}
}

type idleEcho struct {
	logHandler
	timer  *Timer
	closed *int
}

func (h *idleEcho) Data(c *Conn, p []byte) int { c.Write(p); return len(p) }
func (h *idleEcho) Closed(*Conn, error)        { h.timer.Stop(); *h.closed++ }

func TestNetworkSameSeedSameCourse(t *testing.T) {
	course := func(seed uint64) string {
		n := memnet.New(seed)
		n.SplitRandom(8)
		n.WriteLimitRandom(8)
		l := NewOn(n, Config{})
		var b strings.Builder
		listen(t, l, memAddr, func(c *Conn) Handler {
			h := echo()
			h.data = func(c *Conn, p []byte) int {
				fmt.Fprintf(&b, "%d:%q ", c.RemoteAddr().Port(), p)
				c.Write(p)
				return len(p)
			}
			return h
		})
		for i := range 4 {
			n.Connect(memAddr).Write(bytes.Repeat([]byte{byte('a' + i)}, 20))
		}
		n.Run()
		return b.String()
	}
	if a, b := course(5), course(5); a != b {
		t.Errorf("seed 5 gave two courses:\n%s\n%s", a, b)
	}
	if a, b := course(5), course(6); a == b {
		t.Errorf("seeds 5 and 6 gave the same course: %s", a)
	}
}

func TestNetworkSplit(t *testing.T) {
	for _, k := range []int{1, 3} {
		n := memnet.New(0)
		n.Split(k)
		l := NewOn(n, Config{})
		longest, calls := 0, 0
		listen(t, l, memAddr, func(*Conn) Handler {
			h := echo()
			h.data = func(c *Conn, p []byte) int {
				longest, calls = max(longest, len(p)), calls+1
				c.Write(p)
				return len(p)
			}
			return h
		})
		p := n.Connect(memAddr)
		p.Write([]byte("0123456789"))
		p.CloseWrite()
		n.Run()
		if want := (10 + k - 1) / k; longest != k || calls != want {
			t.Errorf("split %d: %d pieces up to %d bytes, want %d", k, calls, longest, want)
		}
		if got := string(p.Received()); got != "0123456789" || !p.EOF() {
			t.Errorf("split %d: received %q, EOF %v", k, got, p.EOF())
		}
	}
}

func TestNetworkWriteLimit(t *testing.T) {
	n := memnet.New(0)
	n.WriteLimit(3)
	l := NewOn(n, Config{})
	listen(t, l, memAddr, func(c *Conn) Handler { c.Write([]byte("0123456789")); return echo() })
	p := n.Connect(memAddr)
	n.Run()
	if got := string(p.Received()); got != "0123456789" {
		t.Fatalf("received %q", got)
	}
	if w := l.Stats().Writes; w != 4 {
		t.Errorf("%d writes, want 4", w)
	}
}

// TestNetworkWindow: a peer that does not read stops the loop's writes at its window, and the one
// edge that follows moves them on.
func TestNetworkWindow(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	var conn *Conn
	h := echo()
	listen(t, l, memAddr, func(c *Conn) Handler { conn = c; return h })
	p := n.Connect(memAddr)
	p.StopReading()
	p.ReadWindow(1000)
	n.Run()
	conn.Write(make([]byte, 1<<20))
	n.Run()
	if got := conn.BytesWritten(); got != 1000 {
		t.Fatalf("%d bytes went out, the window is 1000", got)
	}
	if !conn.Congested() || conn.Pending() != 1<<20-1000 {
		t.Fatalf("congested %v, pending %d", conn.Congested(), conn.Pending())
	}
	p.StartReading()
	n.Run()
	if p.Total() != 1<<20 || conn.Congested() {
		t.Fatalf("received %d, congested %v", p.Total(), conn.Congested())
	}
	if strings.Join(h.log, " ") != "drained" {
		t.Errorf("events: %v", h.log)
	}
}

func TestNetworkPeerWindow(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	var conn *Conn
	h := echo()
	h.data = nil
	listen(t, l, memAddr, func(c *Conn) Handler { conn = c; c.Pause(); return h })
	p := n.Connect(memAddr)
	p.Write(make([]byte, 200<<10))
	p.CloseWrite()
	n.Run()
	if want := 200<<10 - memnet.Window; p.Unsent() != want {
		t.Fatalf("%d bytes unsent to a paused connection, want %d", p.Unsent(), want)
	}
	conn.Resume()
	n.Run()
	if len(h.input) != 200<<10 || p.Unsent() != 0 || !p.EOF() {
		t.Fatalf("read %d, unsent %d, EOF %v", len(h.input), p.Unsent(), p.EOF())
	}
}

func TestNetworkRefusedPeer(t *testing.T) {
	n := memnet.New(0)
	p := n.Connect(memAddr)
	n.Run()
	if p.Refused() != syscall.ECONNREFUSED || p.Connected() {
		t.Errorf("refused: %v, connected %v", p.Refused(), p.Connected())
	}
}

func TestNetworkSharedAddress(t *testing.T) {
	n := memnet.New(0)
	var accepted [2]int
	for i := range 2 {
		listen(t, NewOn(n, Config{}), memAddr, func(*Conn) Handler { accepted[i]++; return echo() })
	}
	for range 10 {
		n.Connect(memAddr)
	}
	n.Run()
	if accepted != [2]int{5, 5} {
		t.Errorf("loops accepted %v of 10", accepted)
	}
}

func TestNetworkListenerClose(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	ln := listen(t, l, netip.AddrPortFrom(netip.IPv4Unspecified(), 0), func(*Conn) Handler { return echo() })
	addr := netip.AddrPortFrom(memAddr.Addr(), ln.Addr().Port())
	ln.Pause()
	p := n.Connect(addr)
	n.Run()
	if !p.Connected() || l.Conns() != 0 {
		t.Fatalf("paused: connected %v, %d accepted", p.Connected(), l.Conns())
	}
	ln.Close()
	q := n.Connect(addr)
	n.Run()
	if !p.ResetSeen() || q.Refused() != syscall.ECONNREFUSED {
		t.Errorf("closed: backlog reset %v, new %v", p.ResetSeen(), q.Refused())
	}
}

func TestNetworkLoopToLoop(t *testing.T) {
	n := memnet.New(3)
	a, b := NewOn(n, Config{}), NewOn(n, Config{})
	listen(t, a, memAddr, func(*Conn) Handler { return echo() })
	h := &logHandler{connect: func(c *Conn) { c.Write([]byte("over")); c.CloseWrite() }, eof: func(c *Conn) { c.Close() }}
	b.Dial(memAddr, h, time.Second)
	n.Run()
	if string(h.input) != "over" || h.closed != 1 || h.err != nil || a.Conns()+b.Conns() != 0 {
		t.Errorf("read %q, closed %d with %v, %d left", h.input, h.closed, h.err, a.Conns()+b.Conns())
	}
}

func TestNetworkAwait(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	done := false
	go func() {
		for !l.mail.asleep.Load() { // until the network waits
			runtime.Gosched()
		}
		l.Post(func() { done = true })
	}()
	if !n.Await(func() bool { return done }) {
		t.Error("what was posted did not run")
	}
}

func TestNetworkClose(t *testing.T) {
	n := memnet.New(0)
	l := NewOn(n, Config{})
	h := echo()
	listen(t, l, memAddr, func(*Conn) Handler { return h })
	p := n.Connect(memAddr)
	n.Run()
	n.Close()
	if !errors.Is(h.err, ErrClosed) || h.closed != 1 || !p.EOF() {
		t.Errorf("closed with %v, %d times; peer's EOF %v", h.err, h.closed, p.EOF())
	}
}

func TestNetworkLivelock(t *testing.T) {
	n := memnet.New(0)
	if testing.Short() {
		n.MaxSteps(1 << 16)
	}
	l := NewOn(n, Config{})
	var again func()
	again = func() { l.Post(again) }
	l.Post(again)
	defer func() {
		if recover() == nil {
			t.Error("Run came back from a loop without end")
		}
	}()
	n.Run()
}
