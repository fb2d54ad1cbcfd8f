package tlsmux

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/internal/reactor"
	"turnout/internal/reactor/memnet"
)

func TestGarbage(t *testing.T) {
	alert := func(a Alert) []byte { return a.record() }
	tests := []struct {
		name string
		in   []byte
		out  []byte
		want error
	}{
		{"http", []byte("GET / HTTP/1.1\r\nHost: shared.test\r\n\r\n"), nil, ErrNotTLS},
		{"proxy", []byte("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n"), nil, ErrNotTLS},
		{"sslv2", []byte{0x80, 0x2e, 1, 0, 2, 0, 0x15}, nil, ErrNotTLS},
		{"one byte", []byte{0}, nil, ErrNotTLS},
		{"malformed", handmade(ext(extServerName, nil)), alert(AlertDecodeError), ErrHelloMalformed},
		{"trailing dot", handmade(sni("pass.test.")), alert(AlertUnrecognizedName), ErrHelloName},
		{"too big", fragmented(handmade(sni("shared.test"), ext(99, make([]byte, 65000))), 500), alert(AlertDecodeError), ErrHelloTooBig},
		{"full buffer of small records", fragmented(handmade(sni("shared.test"), ext(99, make([]byte, 64000))), 1), alert(AlertDecodeError), ErrHelloTooBig},
	}
	for _, tt := range tests {
		for _, split := range []int{0, 1} {
			if split > 0 && len(tt.in) > 1<<10 && testing.Short() {
				split = 11 // bytes: no divisor of a record
			}
			t.Run(fmt.Sprint(tt.name, " split ", split), func(t *testing.T) {
				m := serveMemory(t, Config{})
				m.net.Split(split)
				p := m.net.Connect(m.addr)
				p.Write(tt.in)
				m.net.Run()
				if !bytes.Equal(p.Received(), tt.out) {
					t.Errorf("answered % x, want % x", p.Received(), tt.out)
				}
				if !p.EOF() && !p.ResetSeen() {
					t.Error("not closed")
				}
				if len(m.failed) != 1 {
					t.Fatalf("%d failures", len(m.failed))
				}
				if f := <-m.failed; !errors.Is(f.err, tt.want) {
					t.Errorf("failed with %v, want %v", f.err, tt.want)
				}
				if m.mux.Pending() != 0 || m.mux.Stats().BadHello.Load() != 1 {
					t.Errorf("%d pending, %d counted", m.mux.Pending(), m.mux.Stats().BadHello.Load())
				}
			})
		}
	}
}

func TestByteByByte(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		m := serveMemory(t, Config{})
		m.net.Split(1)
		if err := m.echoTLS(t, &tls.Config{ServerName: "x.own.test", MaxVersion: version}); err != nil {
			t.Fatal(err)
		}
		if i := <-m.infos; !i.Own {
			t.Errorf("info %+v", i)
		}
	})
}

func TestInspectDelay(t *testing.T) {
	hello := clientHello(t, &tls.Config{ServerName: "shared.test"})
	for name, sent := range map[string][]byte{"nothing": nil, "a byte": hello[:1], "all but one": hello[:len(hello)-1]} {
		t.Run(name, func(t *testing.T) {
			m := serveMemory(t, Config{})
			p := m.net.Connect(m.addr)
			m.net.Run()
			for _, b := range sent[:min(2, len(sent))] { // dripping does not prolong it
				m.net.Advance(time.Second)
				p.Write([]byte{b})
			}
			if len(sent) > 2 {
				p.Write(sent[2:])
			}
			m.net.Advance(5*time.Second - time.Duration(min(2, len(sent)))*time.Second - 10*time.Millisecond)
			if p.EOF() || m.mux.Pending() != 1 {
				t.Fatal("closed too early")
			}
			m.net.Advance(20 * time.Millisecond)
			if !p.EOF() || p.Total() > 0 {
				t.Fatalf("closed %v, %d bytes sent", p.EOF(), p.Total())
			}
			if f := <-m.failed; !errors.Is(f.err, ErrInspectTimeout) || m.mux.Pending() != 0 || m.mux.Stats().InspectTimeouts.Load() != 1 {
				t.Errorf("failed with %v", f.err)
			}
		})
	}
}

func TestHandshakeTimeout(t *testing.T) {
	eachPlace(t, func(t *testing.T, place func(*service)) {
		m := serveMemory(t, Config{})
		place(m.service)
		p := m.halfOpen(t)
		m.net.Advance(9900 * time.Millisecond)
		if p.EOF() {
			t.Fatal("closed too early")
		}
		m.net.Advance(200 * time.Millisecond)
		if !p.EOF() {
			t.Fatal("not closed")
		}
		if f := <-m.failed; !errors.Is(f.err, ErrHandshakeTimeout) || f.info.ServerName != "shared.test" {
			t.Errorf("failed with %+v", f)
		}
		if m.mux.Stats().HandshakeTimeouts.Load() != 1 {
			t.Error("not counted")
		}
		eventually(t, "end of the goroutine", func() bool { return m.mux.cfg.Workers.Running() == 0 })
	})
}

// TestClientGoesAway ends connections before and in the middle of the handshake.
func TestClientGoesAway(t *testing.T) {
	hello := clientHello(t, &tls.Config{ServerName: "shared.test"})
	ends := map[string]func(p *memnet.Peer){
		"reset": func(p *memnet.Peer) { p.Reset() },
		"close": func(p *memnet.Peer) { p.Close() },
		"fin":   func(p *memnet.Peer) { p.CloseWrite() },
		"error": func(p *memnet.Peer) { p.FailRead(0, syscall.ETIMEDOUT) },
		"alert": func(p *memnet.Peer) { p.Write(Alert(80).record()) },
		"noise": func(p *memnet.Peer) { p.Write([]byte("no record at all, rather some text")) },
	}
	for name, end := range ends {
		for _, stage := range []string{"connected", "half a hello", "half open", "half open on a thread"} {
			t.Run(name+" when "+stage, func(t *testing.T) {
				m := serveMemory(t, Config{})
				if stage == "half open on a thread" {
					m.onThreads(t)
				}
				var p *memnet.Peer
				if strings.HasPrefix(stage, "half open") {
					p = m.halfOpen(t)
				} else {
					p = m.net.Connect(m.addr)
					if stage == "half a hello" {
						p.Write(hello[:len(hello)/2])
					}
					m.net.Run()
				}
				end(p)
				m.net.Run()
				if stage == "half a hello" && (name == "alert" || name == "noise") {
					m.net.Advance(5100 * time.Millisecond) // it is part of the hello
				}
				m.await(t, "failure", func() bool { return len(m.failed) == 1 })
				eventually(t, "end of the goroutine", func() bool { return m.mux.cfg.Workers.Running() == 0 })
				m.net.Advance(2 * time.Second) // lingering
				if m.mux.Pending() != 0 || m.loop.Conns() != 0 {
					t.Errorf("%d pending, %d open", m.mux.Pending(), m.loop.Conns())
				}
				if err := (<-m.failed).err; err == nil {
					t.Error("no reason")
				}
			})
		}
	}
}

// TestResetInTheMiddle resets a conversation after each of many numbers of bytes of the client, and of the server: it either
// got through its handshake or failed, once, and leaves nothing open.
func TestResetInTheMiddle(t *testing.T) {
	for _, plan := range []func(p *memnet.Peer, k int){(*memnet.Peer).ResetAfterSent, (*memnet.Peer).ResetAfterReceived} {
		for k := 1; k < 3000; k += 131 {
			m := serveMemory(t, Config{})
			if k%2 == 0 {
				m.onThreads(t)
			}
			p, b := m.net.Connect(m.addr), newBridge()
			m.net.Run()
			plan(p, k)
			done := make(chan struct{})
			go func() {
				defer close(done)
				c := tls.Client(b, m.trusting(&tls.Config{}))
				if _, err := c.Write([]byte("over memory")); err == nil {
					_, _ = io.ReadFull(c, make([]byte, 11))
				}
			}()
			m.await(t, "end of the client", func() bool {
				b.move(p)
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
			p.Reset()
			m.await(t, "end of the connection", func() bool { return len(m.failed)+len(m.infos) > 0 && m.loop.Conns() == 0 })
			if len(m.failed)+len(m.infos) != 1 || m.mux.Pending() != 0 {
				t.Fatalf("after %d bytes: %d failed, %d terminated, %d pending", k, len(m.failed), len(m.infos), m.mux.Pending())
			}
		}
	}
}

// TestHalfOpenHandshakesStarveNobody has many clients stop in the middle of the handshake, with one slot for all.
func TestHalfOpenHandshakesStarveNobody(t *testing.T) {
	w, err := NewWorkers(WorkersConfig{Handshakes: 1})
	must(t, err)
	m := serveMemory(t, Config{Workers: w})
	m.onThreads(t)
	for range 20 {
		m.halfOpen(t)
	}
	if w.Running() != 20 {
		t.Fatalf("%d running", w.Running())
	}
	if err := m.echoTLS(t, &tls.Config{}); err != nil {
		t.Fatal(err)
	}
}

func TestOldestIsShed(t *testing.T) {
	m := serveMemory(t, Config{MaxPending: 3})
	first := m.halfOpen(t)
	second := m.net.Connect(m.addr)
	m.net.Run()
	third := m.halfOpen(t)
	closed := func(p *memnet.Peer) bool { return p.EOF() || p.ResetSeen() }
	if closed(first) || m.mux.Pending() != 3 {
		t.Fatalf("%d pending", m.mux.Pending())
	}
	m.net.Connect(m.addr)
	m.net.Run()
	if !closed(first) || closed(second) || closed(third) {
		t.Fatal("the oldest was not the one closed")
	}
	if f := <-m.failed; !errors.Is(f.err, ErrShed) {
		t.Errorf("failed with %v", f.err)
	}
	if err := m.echoTLS(t, &tls.Config{}); err != nil { // at the cost of second
		t.Fatal(err)
	}
	if !closed(second) || closed(third) || m.mux.Pending() != 2 || m.mux.Stats().Shed.Load() != 2 {
		t.Errorf("%d pending, %d shed", m.mux.Pending(), m.mux.Stats().Shed.Load())
	}
}

// TestRefusedWhenOthersAreFull refuses a connection when the bound is reached by another loop.
func TestRefusedWhenOthersAreFull(t *testing.T) {
	m := serveMemory(t, Config{MaxPending: 1})
	other := reactor.NewOn(m.net, reactor.Config{})
	ln, err := other.Listen(anyPort, m.mux.Accept)
	must(t, err)
	first := m.net.Connect(m.addr)
	m.net.Run()
	second := m.net.Connect(ln.Addr())
	m.net.Run()
	if first.EOF() || first.ResetSeen() || !second.EOF() && !second.ResetSeen() {
		t.Error("the second one was not refused")
	}
	if m.mux.Pending() != 1 || m.mux.Stats().Shed.Load() != 1 || len(m.failed) != 1 {
		t.Errorf("%d pending, %d shed", m.mux.Pending(), m.mux.Stats().Shed.Load())
	}
}

// TestLoopEndsWithOpenHandshakes leaves no goroutine running; the check is serve's cleanup, and here.
func TestLoopEndsWithOpenHandshakes(t *testing.T) {
	eachPlace(t, func(t *testing.T, place func(*service)) {
		s := newService(t, Config{})
		place(s)
		l, err := reactor.New(reactor.Config{})
		must(t, err)
		ln, err := l.Listen(anyPort, s.mux.Accept)
		must(t, err)
		s.addr = ln.Addr()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		hello := clientHello(t, &tls.Config{ServerName: "shared.test"})
		for range 10 {
			c := s.dial(t)
			if _, err := c.Write(hello); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		must(t, get(t, "end of the loop", done))
		eventually(t, "end of the goroutines", func() bool { return s.mux.cfg.Workers.Running() == 0 })
		if s.mux.Pending() != 0 {
			t.Errorf("%d pending", s.mux.Pending())
		}
	})
}

// TestInputIsBoundedDuringHandshake sends without end where the client's Finished belongs.
func TestInputIsBoundedDuringHandshake(t *testing.T) {
	w := newWorkers(t, WorkersConfig{Handshakes: 1})
	letGo := occupy(t, w) // nothing is computed
	m := serveMemory(t, Config{Workers: w})
	m.onThreads(t)
	p := m.net.Connect(m.addr)
	p.Write(clientHello(t, &tls.Config{ServerName: "shared.test"}))
	p.Write(make([]byte, 10<<20))
	m.net.Run()
	if up, _ := m.net.Traffic(0); up > 1<<20 {
		t.Errorf("%d bytes were taken", up)
	}
	p.Reset()
	m.net.Run()
	letGo()
}

func TestManyAtOnce(t *testing.T) {
	s := serve(t, Config{})
	const clients = 100
	results := make(chan error, clients)
	for range clients {
		c := s.client(t, &tls.Config{ServerName: "x.own.test"})
		go func() {
			_, err := c.Write([]byte("x"))
			if err == nil {
				_, err = io.ReadFull(c, make([]byte, 1))
			}
			results <- err
		}()
	}
	for range clients {
		if err := get(t, "echo", results); err != nil {
			t.Error(err)
		}
	}
}

// TestSlowSegments is TestByteByByte on real sockets.
func TestSlowSegments(t *testing.T) {
	s := serve(t, Config{})
	c := tls.Client(slowly{s.dial(t)}, s.trusting(&tls.Config{ServerName: "x.own.test"}))
	ask(t, c, strings.Repeat("slow", 100))
}
