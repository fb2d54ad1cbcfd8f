package tlsmux

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"turnout/internal/reactor"
)

// maxUnaskedOutput is how many bytes may be queued before an answer to a KeyUpdate (RFC 8446 section 4.6.3) closes the
// connection: the peer asks for output and does not take it.
const maxUnaskedOutput = 256 << 10

var errKeyUpdates = errors.New("cannot answer KeyUpdate: the peer takes no bytes")

// noDataError is what crypto/tls gets when the loop has no more bytes of the wire. It reports errors that are temporary without
// remembering them, so that reading can go on later.
type noDataError struct{}

func (*noDataError) Error() string   { return "no data for now" }
func (*noDataError) Timeout() bool   { return true }
func (*noDataError) Temporary() bool { return true }

var errNoData net.Error = &noDataError{}

// Layer is a TLS session hosted by a loop: a reactor.Layer around a tls.Conn whose handshake is complete. It is made by a
// Mux or a Client. It belongs to the loop of its connection.
type Layer struct {
	tls     *tls.Conn
	buffers *buffers // lends to tls; nil = nothing is lent
	wire    wire
	err     error // fatal, found outside of crypto/tls
	// dry: crypto/tls has no plaintext left and no complete record, more bytes of the wire are needed.
	dry     bool
	reading bool
	broken  bool // crypto/tls reported a fatal error and sent its alert
}

// sink takes ciphertext: *reactor.Conn, or a fake.
type sink interface {
	WireWrite(p []byte)
	Pending() int
}

// wire is the net.Conn below the tls.Conn.
type wire struct {
	layer *Layer
	sink  sink
	hs    *handshake // while it runs; afterwards the loop feeds and takes
	rec   recordCursor
	held  []byte // own copy of ciphertext, comes before feed
	feed  []byte // rest of what the loop fed last

	local, remote netip.AddrPort

	// What the server decided from the ClientHello, see Policy.
	serverName  string
	certificate *tls.Certificate
}

var (
	_ reactor.Layer = (*Layer)(nil)
	_ net.Conn      = (*wire)(nil)
)

func newLayer(c *reactor.Conn, w *Workers) *Layer {
	l := &Layer{buffers: w.buffers}
	l.wire = wire{layer: l, sink: c, local: c.LocalAddr(), remote: c.RemoteAddr()}
	return l
}

// ConnectionState returns what the handshake agreed on.
func (l *Layer) ConnectionState() tls.ConnectionState { return l.tls.ConnectionState() }

// Feed implements reactor.Layer.
func (l *Layer) Feed(p []byte) { l.wire.feed = p }

// Stash implements reactor.Layer.
func (l *Layer) Stash() {
	w := &l.wire
	if len(w.feed) > 0 {
		w.held = append(w.held, w.feed...)
		w.feed = nil
	}
}

// Held implements reactor.Layer.
func (l *Layer) Held() int { return cap(l.wire.held) + l.buffers.kept(l.tls) }

// Read implements reactor.Layer.
func (l *Layer) Read(p []byte) (int, error) {
	if l.dry && len(l.wire.feed) == 0 && len(l.wire.held) == 0 {
		return 0, reactor.ErrAgain
	}
	l.reading = true
	lent := l.buffers.lend(l.tls)
	n, err := l.tls.Read(p)
	l.buffers.takeBack(l.tls, lent)
	l.reading = false
	if l.err != nil {
		return 0, l.err
	}
	switch {
	case err == nil:
		l.dry = n < len(p) // given record by record, crypto/tls keeps at most a part of one
	case errors.Is(err, errNoData):
		l.dry, err = true, reactor.ErrAgain
	default:
		l.dry = false // crypto/tls remembers the error
		l.broken = !errors.Is(err, io.EOF)
	}
	return n, err
}

// Partial implements reactor.Partial: crypto/tls may have the beginning of a record.
func (l *Layer) Partial() bool {
	w := &l.wire
	return w.rec.left > 0 || w.rec.have > 0 || len(w.held) > 0 || len(w.feed) > 0
}

// Write implements reactor.Layer.
func (l *Layer) Write(p []byte) error {
	_, err := l.tls.Write(p)
	return err
}

// CloseWrite implements reactor.Layer: it sends close_notify (RFC 8446 section 6.1), unless a fatal alert has said more.
func (l *Layer) CloseWrite() error {
	if l.broken {
		return nil
	}
	return l.tls.CloseWrite()
}

// Read hands out ciphertext, at most to the end of a record.
func (w *wire) Read(p []byte) (int, error) {
	if w.hs != nil {
		return w.hs.read(p)
	}
	src := &w.held
	if len(*src) == 0 {
		src = &w.feed
	}
	if len(*src) == 0 {
		return 0, errNoData
	}
	n := w.rec.takeBytes(*src, len(p))
	copy(p, (*src)[:n])
	if *src = (*src)[n:]; len(*src) == 0 {
		*src = nil
	}
	return n, nil
}

// Write takes records. It never fails: the handler of the connection is notified of its end.
func (w *wire) Write(p []byte) (int, error) {
	if w.hs != nil {
		w.hs.write(p)
		return len(p), nil
	}
	w.sink.WireWrite(p)
	if w.layer.reading && w.sink.Pending() > maxUnaskedOutput {
		w.layer.err = errKeyUpdates
	}
	return len(p), nil
}

// Close does nothing: the connection belongs to the loop.
func (w *wire) Close() error { return nil }

func (w *wire) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(w.local) }
func (w *wire) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(w.remote) }

// Deadlines are timers of the loop.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }
