package reactor

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

const bulk = 16 << 20 // more than a system holds between two sockets

// behaviours is the table of TestConformance.
var behaviours = []struct {
	name string
	cfg  Config
	run  func(t *testing.T, r rig)
}{
	{"echo", Config{}, testEcho},
	{"bulk echo", Config{}, testBulkEcho},
	{"bytes with their FIN", Config{}, testBytesWithFIN},
	{"half-close by the peer", Config{}, testHalfCloseByPeer},
	{"half-close by us", Config{}, testHalfCloseByUs},
	{"close after CloseWrite", Config{}, testCloseAfterCloseWrite},
	{"output back-pressure", Config{}, testOutputPressure},
	{"input back-pressure", Config{}, testInputPressure},
	{"pause inside Data", Config{}, testPauseInside},
	{"partial consumption", Config{}, testPartial},
	{"input full", Config{ReadBuffer: 4 << 10}, testInputFull},
	{"handler swap", Config{}, testSwap},
	{"small iterations", Config{IterationBytes: 1000, ReadBuffer: 1 << 10}, testBulkEcho},
	{"dial", Config{}, testDial},
	{"dial refused", Config{}, testDialRefused},
	{"dial given up", Config{}, testDialGivenUp},
	{"close with unread data", Config{}, testCloseUnread},
	{"reset by the peer", Config{}, testResetByPeer},
	{"reset by us", Config{}, testResetByUs},
	{"reset while writing", Config{}, testResetWhileWriting},
	{"flush timeout", Config{FlushTimeout: 50 * time.Millisecond}, testFlushTimeout},
	{"many connections", Config{}, testMany},
	{"listener pause", Config{}, testListenerPause},
	{"timers", Config{}, testTimers},
	{"end of the loop", Config{}, testLoopEnd},
}

func testEcho(t *testing.T, r rig) {
	h := echoNoted()
	c, m := accept(t, r, h)
	if c.RemoteAddr().Port() == 0 || !c.LocalAddr().Addr().IsLoopback() {
		t.Errorf("addresses %v and %v", c.LocalAddr(), c.RemoteAddr())
	}
	m.write("hello")
	r.until(t, "the echo", func() bool { return m.received() == "hello" })
	m.write(" again")
	r.until(t, "the second echo", func() bool { return m.received() == "hello again" })
	m.closeWrite()
	r.until(t, "the end", func() bool { return m.eof() && h.closed == 1 })
	if h.events() != "eof closed" || h.err != nil || r.loop().Conns() != 0 {
		t.Errorf("events %q, err %v", h.events(), h.err)
	}
	if c.BytesRead() != 11 || c.BytesWritten() != 11 {
		t.Errorf("counted %d in, %d out", c.BytesRead(), c.BytesWritten())
	}
}

func testBulkEcho(t *testing.T, r rig) {
	h := echoNoted()
	_, m := accept(t, r, h)
	data := numbered(1 << 20)
	m.write(data)
	m.closeWrite()
	r.until(t, "the end", func() bool { return m.eof() && h.closed == 1 })
	wantText(t, "echo", m.received(), data)
	// How often the output fell from the high to the low mark is a matter of timing.
	if strings.ReplaceAll(h.events(), "drained ", "") != "eof closed" {
		t.Errorf("events %q, err %v", h.events(), h.err)
	}
}

func testBytesWithFIN(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	m.write("last words")
	m.closeWrite()
	r.until(t, "EOF", func() bool { return h.events() == "eof" })
	wantText(t, "input", string(h.input), "last words")
	r.do(conn.Close)
	r.until(t, "Closed", func() bool { return h.closed == 1 && m.eof() })
}

func testHalfCloseByPeer(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	m.closeWrite()
	r.until(t, "EOF", func() bool { return h.events() == "eof" })
	r.do(func() { conn.Write([]byte("still here")) })
	r.until(t, "the answer", func() bool { return m.received() == "still here" })
	if m.eof() || h.closed != 0 {
		t.Error("the other direction ended with the first")
	}
	r.do(conn.Close)
	r.until(t, "the end", func() bool { return m.eof() && h.closed == 1 })
	if h.err != nil {
		t.Errorf("closed with %v", h.err)
	}
}

func testHalfCloseByUs(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	r.do(func() {
		conn.Write([]byte("that is all"))
		conn.CloseWrite()
		conn.Write([]byte("dropped"))
	})
	r.until(t, "the end", func() bool { return m.eof() })
	wantText(t, "output", m.received(), "that is all")
	m.write("but not for me")
	r.until(t, "input", func() bool { return string(h.input) == "but not for me" })
	m.closeWrite()
	r.until(t, "EOF", func() bool { return h.events() == "eof" })
	r.do(conn.Close)
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != nil {
		t.Errorf("closed with %v", h.err)
	}
}

func testCloseAfterCloseWrite(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	r.do(conn.CloseWrite)
	r.until(t, "the peer's EOF", m.eof)
	r.do(conn.Close)
	m.closeWrite()
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != nil {
		t.Errorf("closed with %v", h.err)
	}
}

func testOutputPressure(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	m.hold(true)
	data := numbered(bulk)
	r.do(func() { conn.Write([]byte(data)) })
	r.do(func() {
		if !conn.Congested() || conn.Pending() == 0 {
			t.Errorf("congested %v with %d of %d bytes pending", conn.Congested(), conn.Pending(), bulk)
		}
	})
	m.hold(false)
	r.until(t, "Drained", func() bool { return h.events() == "drained" })
	r.do(func() {
		if conn.Congested() || conn.Pending() > 64<<10 {
			t.Errorf("congested %v with %d pending after Drained", conn.Congested(), conn.Pending())
		}
		conn.Close()
	})
	r.until(t, "the end", m.eof)
	wantText(t, "output", m.received(), data)
}

func testInputPressure(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	r.do(conn.Pause)
	data := numbered(bulk)
	m.write(data)
	m.closeWrite()
	r.do(func() {
		if conn.BytesRead() > 0 || len(h.input) > 0 {
			t.Errorf("paused, but read %d bytes", conn.BytesRead())
		}
		conn.Resume()
		if len(h.input) > 0 {
			t.Error("Resume presented input by itself")
		}
	})
	r.until(t, "EOF", func() bool { return h.events() == "eof" })
	wantText(t, "input", string(h.input), data)
	r.do(conn.Close)
}

func testPauseInside(t *testing.T, r rig) {
	h := &noted{}
	calls := 0
	h.data = func(c *Conn, p []byte) int {
		calls++
		c.Pause()
		r.loop().Post(c.Resume)
		return min(len(p), 3)
	}
	_, m := accept(t, r, h)
	m.write("0123456789")
	m.closeWrite()
	r.until(t, "EOF", func() bool { return h.events() == "eof" })
	wantText(t, "input", string(h.input), "0123456789")
	if calls < 4 {
		t.Errorf("%d calls for 10 bytes in threes", calls)
	}
}

func testPartial(t *testing.T, r rig) {
	h := &noted{}
	var lines []string
	h.data = func(_ *Conn, p []byte) int { // one line per call at most
		i := bytes.IndexByte(p, '\n')
		if i >= 0 {
			lines = append(lines, string(p[:i]))
		}
		return i + 1
	}
	conn, m := accept(t, r, h)
	m.write("ab")
	r.until(t, "the first piece", func() bool { return conn.BytesRead() == 2 })
	m.write("c\nd")
	r.until(t, "the first line", func() bool { return len(lines) == 1 })
	m.write("ef\n")
	r.until(t, "the second line", func() bool { return len(lines) == 2 })
	if fmt.Sprint(lines) != "[abc def]" {
		t.Errorf("lines %v", lines)
	}
}

func testInputFull(t *testing.T, r rig) {
	h := &noted{}
	h.data = func(*Conn, []byte) int { return 0 }
	_, m := accept(t, r, h)
	m.write(numbered(10 << 10))
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != ErrInputFull {
		t.Errorf("closed with %v", h.err)
	}
}

func testSwap(t *testing.T, r rig) {
	first, second := &noted{}, &noted{r: r}
	first.data = func(c *Conn, p []byte) int {
		i := bytes.IndexByte(p, '\n')
		if i >= 0 {
			c.SetHandler(second)
		}
		return i + 1
	}
	_, m := accept(t, r, first)
	m.write("head\nbody")
	m.closeWrite()
	r.until(t, "EOF", func() bool { return second.events() == "eof" })
	wantText(t, "first", string(first.input), "head\n")
	wantText(t, "second", string(second.input), "body")
	if first.events() != "" {
		t.Errorf("the first handler got %q", first.events())
	}
}

func testDial(t *testing.T, r rig) {
	addr, accepted := r.serve(t)
	h := &noted{r: r}
	var conn *Conn
	r.do(func() {
		conn = r.loop().Dial(addr, h, 10*time.Second)
		conn.Write([]byte("early "))
		if len(h.log) > 0 {
			t.Errorf("inside Dial: %v", h.log)
		}
	})
	r.until(t, "Connected", func() bool { return h.events() == "connected" && len(accepted()) == 1 })
	m := accepted()[0]
	r.do(func() { conn.Write([]byte("and late")) })
	r.until(t, "output", func() bool { return m.received() == "early and late" })
	m.write("answer")
	m.closeWrite()
	r.until(t, "EOF", func() bool { return h.events() == "connected eof" })
	wantText(t, "input", string(h.input), "answer")
	r.do(func() {
		if conn.RemoteAddr() != addr || conn.LocalAddr().Port() == 0 {
			t.Errorf("addresses %v and %v", conn.LocalAddr(), conn.RemoteAddr())
		}
		conn.Close()
	})
	r.until(t, "Closed", func() bool { return h.closed == 1 && m.eof() })
	if h.err != nil {
		t.Errorf("closed with %v", h.err)
	}
}

func testDialRefused(t *testing.T, r rig) {
	h := &noted{r: r}
	addr := r.deadAddr(t)
	r.do(func() { r.loop().Dial(addr, h, 10*time.Second).Write([]byte("x")) })
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != syscall.ECONNREFUSED || h.events() != "closed" {
		t.Errorf("closed with %v, events %q", h.err, h.events())
	}
}

func testDialGivenUp(t *testing.T, r rig) {
	addr, _ := r.serve(t)
	h := &noted{r: r}
	r.do(func() { r.loop().Dial(addr, h, 10*time.Second).CloseNow(true) })
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != nil || h.events() != "closed" || r.loop().Conns() != 0 {
		t.Errorf("closed with %v, events %q", h.err, h.events())
	}
}

// testCloseUnread: an answer to a request that was not read to its end arrives whole.
func testCloseUnread(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	r.do(conn.Pause)
	m.write(numbered(100 << 10))
	answer := numbered(300 << 10)
	r.do(func() {
		conn.Write([]byte(answer))
		conn.Close()
	})
	r.until(t, "the end", m.eof)
	wantText(t, "answer", m.received(), answer)
	m.closeWrite()
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != nil {
		t.Errorf("closed with %v", h.err)
	}
}

func testResetByPeer(t *testing.T, r rig) {
	h := &noted{}
	_, m := accept(t, r, h)
	m.write("x")
	r.until(t, "input", func() bool { return len(h.input) == 1 })
	m.reset()
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != syscall.ECONNRESET || h.events() != "closed" {
		t.Errorf("closed with %v, events %q", h.err, h.events())
	}
}

func testResetByUs(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	r.do(func() { conn.CloseNow(true) })
	r.until(t, "the reset", func() bool { return m.resetSeen() && h.closed == 1 })
	if h.err != nil || m.eof() {
		t.Errorf("closed with %v, peer's EOF %v", h.err, m.eof())
	}
}

func testResetWhileWriting(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	m.hold(true)
	r.do(func() { conn.Write(make([]byte, bulk)) })
	m.reset()
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != syscall.ECONNRESET && h.err != syscall.EPIPE {
		t.Errorf("closed with %v", h.err)
	}
	if r.loop().Conns() != 0 {
		t.Errorf("%d connections left", r.loop().Conns())
	}
}

func testFlushTimeout(t *testing.T, r rig) {
	h := &noted{}
	conn, m := accept(t, r, h)
	m.hold(true)
	r.do(func() { conn.Write(make([]byte, bulk)); conn.Close() })
	r.until(t, "Closed", func() bool { return h.closed == 1 })
	if h.err != ErrWriteTimeout {
		t.Errorf("closed with %v", h.err)
	}
	m.hold(false)
	r.until(t, "the reset", m.resetSeen)
}

func testMany(t *testing.T, r rig) {
	const count = 100
	handlers := make([]*noted, 0, count)
	var addr netip.AddrPort
	r.do(func() {
		ln, err := r.loop().Listen(anyPort, func(*Conn) Handler {
			h := echoNoted()
			h.r = r
			handlers = append(handlers, h)
			return h
		})
		if err != nil {
			t.Error(err)
			return
		}
		addr = ln.Addr()
	})
	var remotes []remote
	for i := range count {
		m := r.connect(t, addr)
		m.write(fmt.Sprintf("connection %d", i))
		m.closeWrite()
		remotes = append(remotes, m)
	}
	for i, m := range remotes {
		r.until(t, "an echo", m.eof)
		wantText(t, "echo", m.received(), fmt.Sprintf("connection %d", i))
	}
	r.until(t, "all closed", func() bool { return r.loop().Conns() == 0 })
	for _, h := range handlers {
		if h.closed != 1 || h.err != nil {
			t.Errorf("closed %d times with %v", h.closed, h.err)
		}
	}
}

func testListenerPause(t *testing.T, r rig) {
	var ln *Listener
	h := echoNoted()
	h.r = r
	r.do(func() {
		var err error
		if ln, err = r.loop().Listen(anyPort, func(*Conn) Handler { return h }); err != nil {
			t.Error(err)
			return
		}
		ln.Pause()
	})
	m := r.connect(t, ln.Addr())
	m.write("waiting")
	r.do(func() {
		if r.loop().Conns() != 0 {
			t.Error("accepted while paused")
		}
		ln.Resume()
	})
	r.until(t, "the echo", func() bool { return m.received() == "waiting" })
	r.do(ln.Close)
	m.closeWrite()
	r.until(t, "the end", func() bool { return m.eof() && h.closed == 1 })
}

func testTimers(t *testing.T, r rig) {
	var fired []string
	r.do(func() {
		l := r.loop()
		start := l.Now()
		for _, ms := range []int{60, 20, 40} {
			d := time.Duration(ms) * time.Millisecond
			l.NewTimer(func() {
				fired = append(fired, d.String())
				if l.Now()-start < int64(d) {
					t.Errorf("the timer of %v fired after %v", d, time.Duration(l.Now()-start))
				}
				r.note()
			}).Reset(d)
		}
		stopped := l.NewTimer(func() { t.Error("a stopped timer fired") })
		stopped.Reset(10 * time.Millisecond)
		stopped.Stop()
	})
	r.until(t, "the last timer", func() bool { return len(fired) == 3 })
	if fmt.Sprint(fired) != "[20ms 40ms 60ms]" {
		t.Errorf("order %v", fired)
	}
}

func testLoopEnd(t *testing.T, r rig) {
	h := &noted{}
	_, m := accept(t, r, h)
	addr, _ := r.serve(t)
	d := &noted{r: r}
	r.do(func() { r.loop().Dial(addr, d, time.Second) })
	r.until(t, "Connected", func() bool { return len(d.log) == 1 })
	r.stop()
	if h.err != ErrClosed || h.closed != 1 || d.err != ErrClosed || d.closed != 1 {
		t.Errorf("accepted closed %d with %v, dialled %d with %v", h.closed, h.err, d.closed, d.err)
	}
	if r.loop().Post(func() {}) {
		t.Error("mail was taken after the end")
	}
	r.until(t, "the peer's EOF", m.eof)
}
