package tlsmux

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"turnout/internal/reactor"
)

// collector is a sink that keeps the ciphertext.
type collector struct {
	out     []byte
	pending int // what Pending answers
}

func (s *collector) WireWrite(p []byte) { s.out = append(s.out, p...) }
func (s *collector) Pending() int       { return s.pending }
func (s *collector) take() []byte       { b := s.out; s.out = nil; return b }

// ends is a session between two layers.
type ends struct {
	client, server         *Layer
	fromClient, fromServer *collector
}

func serverTestConfig(t testing.TB, version uint16) *tls.Config {
	t.Helper()
	cert, err := SelfSigned("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{*cert}, MaxVersion: version, DynamicRecordSizingDisabled: true}
}

// newEnds completes a handshake over a pipe and then hosts both sides in layers.
func newEnds(t testing.TB, version uint16) *ends {
	t.Helper()
	e := &ends{fromClient: &collector{}, fromServer: &collector{}}
	lender := newBuffers()
	e.client, e.server = &Layer{buffers: lender}, &Layer{buffers: lender}
	a, b := net.Pipe()
	cw, sw := &switched{Conn: a}, &switched{Conn: b}
	e.client.tls = tls.Client(cw, &tls.Config{InsecureSkipVerify: true, DynamicRecordSizingDisabled: true})
	cfg := serverTestConfig(t, version)
	cfg.SessionTicketsDisabled = true // nobody reads the pipe after the handshake
	e.server.tls = tls.Server(sw, cfg)
	done := make(chan error, 1)
	go func() { done <- e.server.tls.Handshake() }()
	if err := e.client.tls.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	e.client.wire = wire{layer: e.client, sink: e.fromClient}
	e.server.wire = wire{layer: e.server, sink: e.fromServer}
	cw.Conn, sw.Conn = &e.client.wire, &e.server.wire
	return e
}

// switched lets a tls.Conn change its transport.
type switched struct{ net.Conn }

// readAll reads until there is no more.
func readAll(t testing.TB, l *Layer, p []byte) (out []byte, err error) {
	t.Helper()
	for {
		n, err := l.Read(p)
		out = append(out, p[:n]...)
		if errors.Is(err, reactor.ErrAgain) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

func eachVersion(t *testing.T, f func(t *testing.T, version uint16)) {
	t.Helper()
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(v), func(t *testing.T) { f(t, v) })
	}
}

func TestLayerInPieces(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		e := newEnds(t, version)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, size := range []int{1, 100, 16384, 16385, 100_000} {
			want := make([]byte, size)
			for i := range want {
				want[i] = byte(rng.Uint32())
			}
			if err := e.client.Write(want); err != nil {
				t.Fatal(err)
			}
			var got []byte
			room := make([]byte, 1+rng.IntN(5000))
			for cipher := e.fromClient.take(); len(cipher) > 0; {
				n := min(1+rng.IntN(3000), len(cipher))
				if rng.IntN(3) == 0 {
					n = 1
				}
				e.server.Feed(cipher[:n])
				part, err := readAll(t, e.server, room)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, part...)
				cipher = cipher[n:]
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("%d bytes came out differently", size)
			}
		}
	})
}

func TestLayerStash(t *testing.T) {
	e := newEnds(t, tls.VersionTLS13)
	want := bytes.Repeat([]byte("0123456789"), 5000)
	if err := e.client.Write(want); err != nil {
		t.Fatal(err)
	}
	cipher := e.fromClient.take()
	half := len(cipher) / 2
	lent := bytes.Clone(cipher[:half])
	e.server.Feed(lent)
	got := make([]byte, 10)
	if n, err := e.server.Read(got); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	e.server.Stash()
	clear(lent) // not the layer's any more
	e.server.Feed(cipher[half:])
	e.server.Stash()
	rest, err := readAll(t, e.server, make([]byte, 700))
	if err != nil || !bytes.Equal(append(got, rest...), want) {
		t.Fatalf("%d bytes, %v", len(rest), err)
	}
}

func TestLayerEnds(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		e := newEnds(t, version)
		// Data and close_notify in one feed: the data comes first, then the end, again and again.
		if err := errors.Join(e.client.Write([]byte("last words")), e.client.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		e.server.Feed(e.fromClient.take())
		p := make([]byte, 100)
		if n, err := e.server.Read(p); string(p[:n]) != "last words" || err != nil {
			t.Fatalf("%q, %v", p[:n], err)
		}
		for range 2 {
			if n, err := e.server.Read(p); n != 0 || err != io.EOF {
				t.Fatal(n, err)
			}
		}
		// The other direction goes on.
		if err := errors.Join(e.server.Write([]byte("answer")), e.server.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		e.client.Feed(e.fromServer.take())
		if got, err := readAll(t, e.client, p); string(got) != "answer" || err != io.EOF {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestLayerBadRecord(t *testing.T) {
	e := newEnds(t, tls.VersionTLS13)
	if err := e.client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	cipher := e.fromClient.take()
	cipher[len(cipher)-1] ^= 1
	e.server.Feed(cipher)
	if _, err := readAll(t, e.server, make([]byte, 100)); err == nil || err == io.EOF {
		t.Fatalf("error %v", err)
	}
	if len(e.fromServer.out) == 0 {
		t.Error("no alert was sent")
	}
	alert := len(e.fromServer.out)
	if err := e.server.CloseWrite(); err != nil || len(e.fromServer.out) != alert {
		t.Errorf("close_notify after a fatal alert (%v)", err)
	}
}

// TestLayerAllocations holds the steady state to one small allocation per message in and none per message out.
func TestLayerAllocations(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		e := newEnds(t, version)
		msg, p := make([]byte, 128), make([]byte, 1000)
		e.fromClient.out = make([]byte, 0, 4096)
		if n := testing.AllocsPerRun(200, func() {
			e.fromClient.out = e.fromClient.out[:0]
			if err := e.client.Write(msg); err != nil {
				t.Fatal(err)
			}
			e.server.Feed(e.fromClient.out)
			if n, err := e.server.Read(p); n != len(msg) || err != nil {
				t.Fatal(n, err)
			}
			if _, err := e.server.Read(p); !errors.Is(err, reactor.ErrAgain) { // known without crypto/tls
				t.Fatal(err)
			}
		}); n > 1 && !raceDetector {
			t.Errorf("%v allocations, want at most 1", n)
		}
	})
}

func TestUnaskedOutputIsBounded(t *testing.T) {
	e := newEnds(t, tls.VersionTLS13)
	e.fromServer.pending = maxUnaskedOutput + 1
	// crypto/tls writes while it reads: the alert about a record it cannot decrypt stands in for an answer to KeyUpdate.
	e.server.Feed([]byte{23, 3, 3, 0, 1, 0})
	if _, err := e.server.Read(make([]byte, 10)); !errors.Is(err, errKeyUpdates) {
		t.Fatalf("error %v, want %v", err, errKeyUpdates)
	}
}

// BenchmarkLayerEcho128 is a 128 byte message from client to server and back, without sockets: two layers, so four
// operations of crypto/tls.
func BenchmarkLayerEcho128(b *testing.B) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		b.Run(tls.VersionName(v), func(b *testing.B) {
			e := newEnds(b, v)
			msg, p := make([]byte, 128), make([]byte, 4096)
			move := func(from *Layer, s *collector, to *Layer) {
				s.out = s.out[:0]
				if err := from.Write(msg); err != nil {
					b.Fatal(err)
				}
				to.Feed(s.out)
				if n, err := to.Read(p); n != len(msg) || err != nil {
					b.Fatal(n, err)
				}
				if _, err := to.Read(p); !errors.Is(err, reactor.ErrAgain) {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				move(e.client, e.fromClient, e.server)
				move(e.server, e.fromServer, e.client)
			}
		})
	}
}

// TestLayerPartial: a layer that was fed the beginning of a record says so until it has all of it, data and ends alike.
func TestLayerPartial(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		e := newEnds(t, version)
		if err := e.client.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		data := e.fromClient.take()
		if err := e.client.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for _, record := range [][]byte{data, e.fromClient.take()} {
			for i := range record {
				if partial := e.server.Partial(); partial != (i > 0) {
					t.Fatalf("partial %v after %d of %d bytes", partial, i, len(record))
				}
				e.server.Feed(record[i : i+1])
				if _, err := readAll(t, e.server, make([]byte, 100)); err != nil && (i < len(record)-1 || err != io.EOF) {
					t.Fatal(err)
				}
			}
		}
	})
}
