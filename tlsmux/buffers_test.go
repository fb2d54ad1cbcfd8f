package tlsmux

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"turnout/internal/reactor"
)

// holds returns how many bytes a session has for what it reads.
func holds(l *Layer) int {
	b := l.buffers
	return field[bytes.Buffer](l.tls, b.raw).Cap() + field[bytes.Buffer](l.tls, b.hand).Cap() + int(field[bytes.Reader](l.tls, b.input).Size())
}

func TestBuffersAreKnown(t *testing.T) {
	if !newBuffers().known {
		t.Fatal("a tls.Conn of this Go has other fields: idle connections hold their buffers")
	}
}

// TestNothingIsHeldWhenIdle: whatever came, a session that has nothing to read has no buffer.
func TestNothingIsHeldWhenIdle(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		e := newEnds(t, version)
		for _, size := range []int{1, 100, 16 << 10, 100 << 10, 1} {
			sent := bytes.Repeat([]byte("x"), size)
			must(t, e.client.Write(sent))
			wire := e.fromClient.take()
			half := len(wire) / 2
			e.server.Feed(wire[:half])
			p := make([]byte, 32<<10)
			got, err := readAll(t, e.server, p)
			must(t, err)
			e.server.Stash()
			if half > recordHeader && size <= 16<<10 && holds(e.server) == 0 {
				t.Errorf("half a record of %d bytes is nowhere", size)
			}
			e.server.Feed(wire[half:])
			more, err := readAll(t, e.server, p)
			must(t, err)
			if !bytes.Equal(append(got, more...), sent) {
				t.Errorf("%d bytes came as others", size)
			}
			if n := holds(e.server); n != 0 {
				t.Errorf("%d bytes held after %d were read", n, size)
			}
		}
		// Plaintext that is not taken stays.
		must(t, e.client.Write([]byte("abc")))
		e.server.Feed(e.fromClient.take())
		one := make([]byte, 1)
		for _, want := range "abc" {
			n, err := e.server.Read(one)
			if n != 1 || err != nil || one[0] != byte(want) {
				t.Fatalf("read %q, %v; want %q", one[:n], err, want)
			}
		}
		if _, err := e.server.Read(one); !errors.Is(err, reactor.ErrAgain) || holds(e.server) != 0 {
			t.Errorf("at the end %v, and %d bytes held", err, holds(e.server))
		}
	})
}

// TestLentBuffersAreNotMixed has many sessions read by turns, in pieces, with the same lender.
func TestLentBuffersAreNotMixed(t *testing.T) {
	eachVersion(t, func(t *testing.T, version uint16) {
		random := rand.New(rand.NewPCG(1, uint64(version)))
		type one struct {
			*ends
			sent, got, wire []byte
		}
		all := make([]*one, 8)
		lender := newBuffers()
		for i := range all {
			o := &one{ends: newEnds(t, version)}
			o.server.buffers = lender
			for k := range 20 {
				p := bytes.Repeat([]byte{byte(i), byte(k)}, 1+random.IntN(9000))
				must(t, o.client.Write(p))
				o.sent = append(o.sent, p...)
			}
			o.wire = o.fromClient.take()
			all[i] = o
		}
		for left := len(all); left > 0; {
			o := all[random.IntN(len(all))]
			if len(o.wire) == 0 {
				continue
			}
			n := 1 + random.IntN(min(len(o.wire), 20_000))
			o.server.Feed(o.wire[:n])
			if o.wire = o.wire[n:]; len(o.wire) == 0 {
				left--
			}
			got, err := readAll(t, o.server, make([]byte, 1+random.IntN(20_000)))
			must(t, err)
			o.server.Stash()
			o.got = append(o.got, got...)
		}
		for i, o := range all {
			if !bytes.Equal(o.got, o.sent) {
				t.Errorf("session %d got other bytes than were sent", i)
			}
			if n := holds(o.server); n != 0 {
				t.Errorf("session %d holds %d bytes", i, n)
			}
		}
	})
}
