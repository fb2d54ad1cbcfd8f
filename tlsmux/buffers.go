package tlsmux

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"sync"
	"unsafe"
)

// maxSpare is the largest buffer that is kept for the next connection.
const maxSpare = 64 << 10

// buffers lends the buffers that crypto/tls reads records into. A tls.Conn never gives its own back: after a handshake
// and one request of 16 KiB it would hold 25 KiB for as long as it lives. Here a connection has such a buffer while it
// reads, and keeps it only while part of a record or plaintext that nobody has taken is in it.
//
// This is worth 2.0 KiB resident for an idle connection that has sent one small request (TLS 1.3, 3,000 of them), and 20 KiB and more for one
// that has sent a record of full length. Should it become less than 1 KiB for the former, with another crypto/tls, it has to go.
//
// It reaches into a tls.Conn, and this file is the only one that does. It changes fields in two ways: an empty buffer becomes
// another empty one, and the certificates of the peer are forgotten when nobody reads them any more. Where a tls.Conn does not
// have the fields known here, by name and type, nothing is lent and connections keep what they have; a test fails then. See
// docs/decisions/0008-lent-buffers.md.
type buffers struct {
	raw, input, hand uintptr // places of the fields in a tls.Conn
	peers, chains    uintptr
	known            bool
	spare            sync.Pool // of *bytes.Buffer, empty
}

func newBuffers() *buffers {
	b := &buffers{known: true}
	conn := reflect.TypeFor[tls.Conn]()
	place := func(name string, kind reflect.Type) uintptr {
		f, ok := conn.FieldByName(name)
		if !ok || f.Type != kind {
			b.known = false
		}
		return f.Offset
	}
	b.raw = place("rawInput", reflect.TypeFor[bytes.Buffer]())                   // records as they come
	b.input = place("input", reflect.TypeFor[bytes.Reader]())                    // plaintext of one of them, decrypted in its place
	b.hand = place("hand", reflect.TypeFor[bytes.Buffer]())                      // handshake messages
	b.peers = place("peerCertificates", reflect.TypeFor[[]*x509.Certificate]())  // what the peer sent
	b.chains = place("verifiedChains", reflect.TypeFor[[][]*x509.Certificate]()) // made of it
	return b
}

// kept is how many bytes the buffers of c have room for. c must not be in use.
func (b *buffers) kept(c *tls.Conn) int {
	if b == nil || !b.known {
		return 0
	}
	return field[bytes.Buffer](c, b.raw).Cap() + field[bytes.Buffer](c, b.hand).Cap()
}

// dropMessages takes a large buffer of messages that c has read from it, within a handshake that waits for more: of records it is
// just reading one.
func (b *buffers) dropMessages(c *tls.Conn) {
	if b == nil || !b.known {
		return
	}
	if hand := field[bytes.Buffer](c, b.hand); hand.Len() == 0 && hand.Cap() > smallFlight {
		*hand = bytes.Buffer{}
	}
}

// forgetPeer drops the certificates of the peer of c, whose handshake is complete and whose ConnectionState nobody asks for
// again: they are several times as large in memory as they were on the wire, for as long as the connection lasts.
func (b *buffers) forgetPeer(c *tls.Conn) {
	if b == nil || !b.known {
		return
	}
	*field[[]*x509.Certificate](c, b.peers) = nil
	*field[[][]*x509.Certificate](c, b.chains) = nil
}

func field[T any](c *tls.Conn, place uintptr) *T { return (*T)(unsafe.Add(unsafe.Pointer(c), place)) }

// lend gives c a buffer to read with, unless it has one. What it returns is for takeBack.
func (b *buffers) lend(c *tls.Conn) *bytes.Buffer {
	if b == nil || !b.known {
		return nil
	}
	raw := field[bytes.Buffer](c, b.raw)
	if raw.Cap() > 0 {
		return nil
	}
	lent, ok := b.spare.Get().(*bytes.Buffer)
	if !ok {
		return new(bytes.Buffer)
	}
	*raw, *lent = *lent, bytes.Buffer{}
	return lent
}

// takeBack takes the buffers of c that are empty. lent is what lend returned for it, or nil.
func (b *buffers) takeBack(c *tls.Conn, lent *bytes.Buffer) {
	if b == nil || !b.known {
		return
	}
	if hand := field[bytes.Buffer](c, b.hand); hand.Len() == 0 && hand.Cap() > 0 {
		*hand = bytes.Buffer{}
	}
	raw, input := field[bytes.Buffer](c, b.raw), field[bytes.Reader](c, b.input)
	if raw.Len() > 0 || input.Len() > 0 || raw.Cap() == 0 {
		return
	}
	*input = bytes.Reader{} // it points into raw
	if lent == nil {
		lent = new(bytes.Buffer)
	}
	raw.Reset()
	*raw, *lent = bytes.Buffer{}, *raw
	if lent.Cap() <= maxSpare {
		b.spare.Put(lent)
	}
}
