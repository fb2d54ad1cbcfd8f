package reactor

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"turnout/internal/reactor/engine"
)

// rawClient is a blocking socket without Go's poller, for counting what the loop alone does.
func rawClient(t *testing.T, addr netip.AddrPort) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	return fd
}

// rawEcho returns a function that sends one message and turns the loop once for the answer.
func rawEcho(t *testing.T, l *Loop, h Handler) func() {
	t.Helper()
	accepted := false
	ln, err := l.Listen(anyPort, func(c *Conn) Handler { accepted = true; c.Establish(); return h })
	if err != nil {
		t.Fatal(err)
	}
	fd := rawClient(t, ln.Addr())
	step(t, l, "accept", func() bool { return accepted })
	if err := l.iterate(time.Second); err != nil { // the first "writable"
		t.Fatal(err)
	}
	msg, got := pattern(128), make([]byte, 256)
	return func() {
		if _, err := unix.Write(fd, msg); err != nil {
			t.Fatal(err)
		}
		if err := l.iterate(time.Second); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(fd, got); err != nil || n != len(msg) {
			t.Fatalf("read %d bytes, %v", n, err)
		}
	}
}

// What a keep-alive message costs: one receive, one send, one wait that does not block, nothing allocated.
func TestEchoCost(t *testing.T) {
	l := steppedLoop(t, Config{})
	idle := l.NewTimer(func() {})
	echo := rawEcho(t, l, &hooks{data: func(c *Conn, p []byte) int {
		idle.Reset(time.Minute)
		b := c.Buffer()
		c.SetBuffer(append(b, p[:28]...))
		c.Write(p[28:])
		return len(p)
	}})
	echo()
	before, waits := l.Stats(), l.eng.(*epollEngine).waits
	for range 100 {
		echo()
	}
	after := l.Stats()
	if r, w := after.Reads-before.Reads, after.Writes-before.Writes; r != 100 || w != 100 {
		t.Errorf("100 messages took %d receives and %d sends", r, w)
	}
	if n := l.eng.(*epollEngine).waits - waits; n != 100 {
		t.Errorf("100 messages took %d waits", n)
	}
	if n := testing.AllocsPerRun(200, echo); n != 0 {
		t.Errorf("%v allocations per message", n)
	}
}

func TestLargeWriteAllocatesNothing(t *testing.T) {
	l := steppedLoop(t, Config{})
	big := pattern(40 << 10)
	var conn *Conn
	ln, err := l.Listen(anyPort, func(c *Conn) Handler { conn = c; return &hooks{} })
	if err != nil {
		t.Fatal(err)
	}
	fd := rawClient(t, ln.Addr())
	step(t, l, "accept", func() bool { return conn != nil })
	got := make([]byte, 64<<10)
	round := func() {
		conn.Write(big[:100])
		conn.Write(big)
		if err := l.iterate(0); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 100+len(big); {
			m, err := unix.Read(fd, got)
			if err != nil || m == 0 {
				t.Fatal(m, err)
			}
			n += m
			if err := l.iterate(0); err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	before := l.Stats().Writes
	round()
	if n := l.Stats().Writes - before; n != 1 {
		t.Errorf("%d sends, want what was queued and the large rest in one", n)
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A descriptor closed and used again in the middle of a batch: the events of the old socket that are
// still in the batch are not the new one's.
func TestDescriptorReuseInBatch(t *testing.T) {
	l := steppedLoop(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var a, b, fresh *Conn
	h := &hooks{}
	h.data = func(c *Conn, p []byte) int {
		if fresh != nil {
			t.Error("the second conn of the batch got its event although it was closed")
			return len(p)
		}
		other := b
		if c == b {
			other = a
		}
		fd := other.sock.(*epollSocket).fd
		other.CloseNow(false)
		for range 100 {
			fresh = l.Dial(ln.Addr().(*net.TCPAddr).AddrPort(), &hooks{}, 0)
			if fresh.sock.(*epollSocket).fd == fd {
				return len(p)
			}
		}
		t.Error("descriptor was not used again")
		return len(p)
	}
	pa, ca := steppedPair(t, l, h)
	pb, cb := steppedPair(t, l, h)
	a, b = ca, cb
	if err := l.iterate(0); err != nil {
		t.Fatal(err)
	}
	send(t, pa, "x")
	send(t, pb, "x")
	batches, stale := 0, 0
	l.deliver = func(owner any, ev engine.Events) {
		batches++
		if owner == any(fresh) {
			stale++
		}
		l.event(owner, ev)
	}
	if err := l.iterate(time.Second); err != nil {
		t.Fatal(err)
	}
	if fresh == nil || batches != 1 || stale != 0 {
		t.Fatalf("%d events delivered, %d to the new Conn; want only the first", batches, stale)
	}
	step(t, l, "connect", func() bool { return fresh.state == stateOpen })
}

// Without descriptors the listener rests instead of spinning, and goes on by itself.
func TestAcceptWithoutDescriptors(t *testing.T) {
	l := startLoop(t, Config{})
	accepted := make(chan *Conn, 4)
	starved := make(chan error, 1000)
	var ln *Listener
	on(t, l, func() {
		var err error
		ln, err = l.Listen(anyPort, func(c *Conn) Handler { accepted <- c; return echoHooks() })
		if err != nil {
			t.Error(err)
			return
		}
		el := ln.el.(*epollListener)
		next := el.accepted
		el.accepted = func(s engine.Socket, err error) {
			next(s, err)
			if err != nil {
				starved <- err
			}
		}
	})
	first := dialPeer(t, ln.Addr())
	get(t, "accept", accepted)

	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(client)
	release := useUpDescriptors(t)
	addr := ln.Addr()
	if err := unix.Connect(client, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}); err != nil {
		release()
		t.Fatal(err)
	}
	wantErr(t, get(t, "EMFILE", starved), unix.EMFILE)
	var resting bool
	on(t, l, func() { resting = ln.resting && ln.timer.Active() })
	send(t, first, "others are served")
	expect(t, first, "others are served")
	wantErr(t, get(t, "second try", starved), unix.EMFILE)
	release()
	get(t, "accept", accepted)
	if !resting || len(starved) > 20 {
		t.Errorf("resting %v, %d more tries", resting, len(starved))
	}
}

// useUpDescriptors lowers the limit and opens files until it is reached.
func useUpDescriptors(t *testing.T) (release func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 256
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var fds []int
	release = func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
		fds = nil
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EMFILE) {
			return release
		}
		if err != nil {
			release()
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
}

// A loop that waits is woken by a post, and a busy one is not woken for each.
func TestWakesAreSaved(t *testing.T) {
	l := steppedLoop(t, Config{})
	count := 0
	l.Post(func() {
		for range 50 {
			l.Post(func() { count++ })
		}
	})
	step(t, l, "posts", func() bool { return count == 50 })
	if _, err := unix.Read(l.eng.(*epollEngine).wakeFD, make([]byte, 8)); err != unix.EAGAIN {
		t.Errorf("the wake descriptor was written to: %v", err)
	}
}

// deaf is the address of a listener that answers no SYN once its backlog, of one connection, is full.
func deaf(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	return boundAddr(fd)
}

func TestDialTimeout(t *testing.T) {
	addr := deaf(t)
	l := steppedLoop(t, Config{})
	var reason error
	const dials = 8
	open, failed, begin := 0, 0, l.Now()
	for range dials {
		l.Dial(addr, &hooks{
			connected: func(c *Conn) { open++ },
			closed: func(c *Conn, err error) {
				if took := l.Now() - begin; took < int64(30*time.Millisecond) {
					t.Errorf("timed out after %v", time.Duration(took))
				}
				failed, reason = failed+1, err
			},
		}, 30*time.Millisecond)
	}
	step(t, l, "timeout", func() bool { return open+failed == dials && reason != nil })
	wantErr(t, reason, ErrDialTimeout)
	if l.Conns() != open {
		t.Errorf("%d conns left, %d are open", l.Conns(), open)
	}
}

func BenchmarkEcho(b *testing.B) {
	l, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.shutdown()
	ln, err := l.Listen(anyPort, func(c *Conn) Handler { return echoHooks() })
	if err != nil {
		b.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(ln.Addr().Port()), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		b.Fatal(err)
	}
	msg, got := pattern(128), make([]byte, 256)
	_ = l.iterate(time.Second)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := unix.Write(fd, msg); err != nil {
			b.Fatal(err)
		}
		if err := l.iterate(time.Second); err != nil {
			b.Fatal(err)
		}
		if _, err := unix.Read(fd, got); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPollTimes: what a loop looks and blocks together is its timeout, and one that was not busy looks only at what is there.
func TestPollTimes(t *testing.T) {
	for _, c := range []struct {
		busy        bool
		timeout     time.Duration
		look, block int
	}{
		{false, -1, 0, -1},
		{false, 0, 0, 0},
		{false, time.Second, 0, 1000},
		{false, time.Second + 1, 0, 1001}, // a timer must not be found not due
		{true, -1, 8, -1},
		{true, 0, 0, 0},
		{true, time.Microsecond, 1, 0},
		{true, 8 * time.Millisecond, 8, 0},
		{true, 20 * time.Millisecond, 8, 12},
		{true, 1000 * time.Hour, 8, 1<<31 - 1 - 8},
	} {
		if look, block := pollTimes(c.busy, c.timeout); look != c.look || block != c.block {
			t.Errorf("busy %v, timeout %v: looks for %d ms and blocks for %d, want %d and %d", c.busy, c.timeout, look, block, c.look, c.block)
		}
	}
}
