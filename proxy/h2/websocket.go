package h2

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 4.2.2 asks for it; it proves understanding, not identity
	"encoding/base64"
	"time"

	"turnout/internal/bound"
	"turnout/internal/reactor"
	"turnout/internal/wire/framing"
	"turnout/internal/wire/h2frame"
	"turnout/proxy"
	"turnout/proxy/detached"
	"turnout/proxy/tunnel"
)

// upgrade is what a stream remembers of an extended CONNECT (RFC 8441) while the endpoint is asked for it as an upgrade of
// HTTP/1.1. What the client sends meanwhile waits in the stream.
type upgrade struct {
	key  [24]byte // of the handshake with the endpoint
	half bool     // the client ended its side with the head
}

// protocolWebSocket is the one protocol that is translated; RFC 9220 section 3 answers others with 501.
const protocolWebSocket = "websocket"

var (
	methodGet      = []byte("GET")
	upgradeName    = []byte("upgrade")
	upgradeValue   = []byte(protocolWebSocket)
	keyName        = []byte("sec-websocket-key")
	acceptName     = "sec-websocket-accept"
	acceptConstant = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" // RFC 6455 section 1.3
)

// webSocket turns the head of an extended CONNECT into that of an upgrade (RFC 6455 section 4.1). Keys are between the router
// and the endpoint: HTTP/2 has none (RFC 8441 section 5).
func (st *serverStream) webSocket(end bool) {
	st.up = &upgrade{half: end}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	base64.StdEncoding.Encode(st.up.key[:], nonce[:])
	h := &st.head
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		if name := string(f.Name); name != string(keyName) && name != acceptName {
			kept = append(kept, f)
		}
	}
	h.Fields = append(kept, proxy.Field{Name: upgradeName, Value: upgradeValue}, proxy.Field{Name: keyName, Value: st.up.key[:]})
	h.Method, h.Upgrade, h.ContentLength = methodGet, upgradeValue, 0
	st.Pause()
}

// isWebSocket: names of protocols are compared without case (RFC 9110 section 7.8).
func isWebSocket(p []byte) bool {
	if len(p) != len(protocolWebSocket) {
		return false
	}
	for i, c := range p {
		if c|0x20 != protocolWebSocket[i] {
			return false
		}
	}
	return true
}

// Upgrade implements proxy.Downstream.
func (st *serverStream) Upgrade(h *proxy.Head) proxy.Joiner {
	if !st.understood(h) {
		return nil
	}
	return func(s proxy.Section, idle time.Duration, moved func(in, out uint64), done func()) (end func()) {
		return st.join(s.Head(), idle, &streamTunnel{moved: moved, done: done})
	}
}

// understood says that the endpoint understood the key (RFC 6455 section 4.2.2).
func (st *serverStream) understood(h *proxy.Head) bool {
	if st.up == nil {
		return false
	}
	sum := sha1.Sum(append(st.up.key[:], acceptConstant...)) //nolint:gosec // see the import
	want := base64.StdEncoding.EncodeToString(sum[:])
	found := 0
	for _, f := range h.Fields {
		if string(f.Name) == acceptName {
			if string(f.Value) != want {
				return false
			}
			found++
		}
	}
	return found == 1
}

// join sends the head of the answer; from now on the stream is joined with the endpoint's connection.
func (st *serverStream) join(h *proxy.Head, idle time.Duration, t *streamTunnel) (end func()) {
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		if string(f.Name) != acceptName {
			kept = append(kept, f)
		}
	}
	h.Fields = kept
	st.EndHead(appendHead(st.BeginHead(), h), framing.Unknown, false)
	st.ex, st.Halves = nil, true
	limits := st.sc.s.timeouts
	t.st, t.c, t.clientFin, t.serverFin, t.reached = st, detached.From(h.Detach()), limits.ClientFin, limits.ServerFin, st.sc.s.worker.Reached
	t.watch = tunnel.NewWatch(st.sc.c, idle, t.bytes, t.expire)
	t.watch.SetStall(limits.Client, t.owed)
	st.tunnel = t
	t.c.SetHandler(t)
	t.c.Resume()
	if st.up.half {
		t.clientEnd()
	}
	st.Resume()
	switch {
	case t.c.Ended():
		t.EOF(t.c)
	case t.c.Leaving():
		t.Left(t.c)
	}
	if t.st != nil && t.st.EndReceived() {
		t.st.OnEndWaiting()
	}
	return func() { t.expire(false) }
}

// streamTunnel copies between a stream and the connection of an endpoint that has answered 101. END_STREAM is the end of
// a direction, RST_STREAM with CANCEL that of a connection which broke (RFC 8441 section 5). It implements reactor.Handler
// for the connection.
type streamTunnel struct {
	st        *serverStream // nil once the stream is closed
	c         *reactor.Conn
	watch     *tunnel.Watch
	moved     func(in, out uint64)
	done      func()
	in, out   uint64 // bytes from and to the client
	queued    uint64 // bytes that the stream had sent when bytes looked last
	flushedAt uint64 // how many bytes the client's connection will have written when all of these have gone
	podEnded  bool   // the endpoint sends nothing more

	clientEnded bool // the client does not either, and the endpoint was notified
	closed      bool // its connection is

	reached func(bound.Name)

	clientFin, serverFin time.Duration
}

// bytes grows with what either side takes: it may be slow. Of what the client's connection takes, that of other streams after
// the bytes of this one does not count.
func (t *streamTunnel) bytes() uint64 {
	n := t.in + t.out + t.c.BytesTaken()
	if t.st == nil {
		return n
	}
	c, sent := t.st.sc.c, t.st.Sent()
	if sent != t.queued {
		t.queued, t.flushedAt = sent, c.BytesWritten()+uint64(c.Pending())
	}
	return n + sent + min(c.BytesTaken(), t.flushedAt)
}

// owed says that a side has bytes to take that the other one sent before it ended.
func (t *streamTunnel) owed() bool {
	if t.c.Pending() > 0 || t.c.BytesWritten() > t.c.BytesTaken()+1 || t.c.Leaving() && !t.podEnded {
		return true
	}
	st := t.st
	return st != nil && (st.Waiting() > 0 || st.EndReceived() && !t.clientEnded || st.sc.c.BytesTaken() < t.flushedAt)
}

// expire ends a tunnel that has been silent, or half closed, for too long.
func (t *streamTunnel) expire(halfClosed bool) {
	if halfClosed {
		t.reached(bound.TunnelFin)
	}
	if t.st != nil {
		code := h2frame.Cancel
		if t.podEnded && t.st.Waiting() == 0 {
			code = h2frame.NoError // what the endpoint had to say is complete
		}
		t.st.Reset(code)
	}
	t.c.CloseNow(false)
}

// clientData relays what the client sent.
func (t *streamTunnel) clientData(p []byte) {
	t.in += uint64(len(p))
	t.moved(uint64(len(p)), 0)
	t.c.Write(p)
	if t.c.Congested() {
		t.st.Pause()
	}
}

// OnEndWaiting implements session.EndWaiter: a client that sent more than the endpoint takes and ended its side does not keep the
// tunnel.
func (st *serverStream) OnEndWaiting() {
	if t := st.tunnel; t != nil {
		t.watch.HalfClosed(t.clientFin)
	}
}

// clientEnd tells the endpoint that the client sends nothing more.
func (t *streamTunnel) clientEnd() {
	t.clientEnded = true
	t.c.CloseWrite()
	t.watch.HalfClosed(t.clientFin)
}

// gone is called when the stream is closed: what the client sent still goes out.
func (t *streamTunnel) gone() {
	t.st = nil
	if !t.closed {
		if t.c.Pending() > 0 {
			t.watch.HalfClosed(t.clientFin)
		}
		t.c.Close()
	}
}

// Connected implements reactor.Handler; the connection stands.
func (t *streamTunnel) Connected(*reactor.Conn) {}

// Data implements reactor.Handler.
func (t *streamTunnel) Data(c *reactor.Conn, p []byte) int {
	if t.st == nil {
		return len(p)
	}
	t.out += uint64(len(p))
	t.moved(0, uint64(len(p)))
	if t.st.SendData(p) {
		c.Pause()
	}
	return len(p)
}

// EOF implements reactor.Handler.
func (t *streamTunnel) EOF(*reactor.Conn) {
	t.podEnded = true
	if t.st == nil {
		return
	}
	if t.watch.HalfClosed(t.serverFin); t.st != nil {
		t.st.SendEnd(nil)
	}
}

// Left implements reactor.Leaver: the endpoint left, and what it sent before waits for the client.
func (t *streamTunnel) Left(*reactor.Conn) { t.watch.HalfClosed(t.serverFin) }

// Drained implements reactor.Handler: the endpoint takes bytes again.
func (t *streamTunnel) Drained(*reactor.Conn) {
	if t.st != nil {
		t.st.Resume()
	}
}

// Closed implements reactor.Handler.
func (t *streamTunnel) Closed(*reactor.Conn, error) {
	t.closed = true
	t.watch.Stop()
	st := t.st
	t.st = nil
	if st != nil {
		st.tunnel = nil
		switch {
		case !t.podEnded:
			st.Reset(h2frame.Cancel)
		case st.Waiting() > 0: // the client is given the time it has for the end of an answer
			st.Halves = false
			st.sc.awaitTaken(st)
		default:
			st.Reset(h2frame.NoError)
		}
	}
	t.done()
}
