package load

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// SecureUpstream is the first upstream of a Rig behind TLS, spoken to in the protocol that ALPN selects. Like all upstreams it
// answers only while the Rig runs, and the Rig counts what it answers.
type SecureUpstream struct {
	ln    net.Listener
	cfg   *tls.Config
	plain string // the upstream itself
	group sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Secure listens on loopback. cfg has the certificate and, in NextProtos, the one protocol of the upstream: "h2" or "http/1.1".
func (r *Rig) Secure(cfg *tls.Config) (*SecureUpstream, error) {
	ln, err := net.Listen("tcp4", netip.AddrPortFrom(upstreamHost(0), 0).String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	u := &SecureUpstream{ln: ln, cfg: cfg, plain: r.Upstreams()[0].String(), conns: map[net.Conn]struct{}{}}
	u.group.Go(u.accept)
	return u, nil
}

// Addr is where the upstream listens.
func (u *SecureUpstream) Addr() netip.AddrPort { return u.ln.Addr().(*net.TCPAddr).AddrPort() }

// Close ends the upstream and its connections.
func (u *SecureUpstream) Close() {
	_ = u.ln.Close()
	u.mu.Lock()
	for c := range u.conns {
		_ = c.Close()
	}
	u.conns = nil
	u.mu.Unlock()
	u.group.Wait()
}

func (u *SecureUpstream) accept() {
	for {
		c, err := u.ln.Accept()
		if err != nil {
			return
		}
		u.group.Go(func() { u.serve(c) })
	}
}

// keep has c closed with the upstream; false when that is over.
func (u *SecureUpstream) keep(c net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.conns == nil {
		_ = c.Close()
		return false
	}
	u.conns[c] = struct{}{}
	return true
}

func (u *SecureUpstream) drop(c net.Conn) {
	_ = c.Close()
	u.mu.Lock()
	delete(u.conns, c)
	u.mu.Unlock()
}

// serve joins one connection with one of its own to the upstream. A proxy that leaves is no failure: what is missing shows
// in the answers.
func (u *SecureUpstream) serve(raw net.Conn) {
	if !u.keep(raw) {
		return
	}
	defer u.drop(raw)
	c := tls.Server(raw, u.cfg)
	if c.Handshake() != nil {
		return
	}
	plain, err := net.Dial("tcp4", u.plain)
	if err != nil || !u.keep(plain) {
		return
	}
	defer u.drop(plain)
	back := make(chan struct{})
	if c.ConnectionState().NegotiatedProtocol == "h2" {
		t := newTranslation(c, plain)
		go func() { defer close(back); t.answers(); _ = raw.Close() }()
		t.requests()
	} else {
		go func() { defer close(back); _, _ = io.Copy(c, plain); _ = raw.Close() }()
		_, _ = io.Copy(plain, c)
	}
	_ = plain.Close()
	<-back
}

// translation makes the requests of one HTTP/2 connection requests of HTTP/1.1, one behind the other.
type translation struct {
	c, plain net.Conn
	dec      *hpack.Decoder
	first    [3]string    // method, path and authority of the request that is decoded
	rest     bytes.Buffer // its other fields, as HTTP/1.1 has them
	head     bytes.Buffer // requests to be sent

	mu      sync.Mutex
	room    *sync.Cond // the window has grown, or the connection ended
	streams []uint32   // that wait for their answers, in order
	window  int64      // of the connection
	over    bool
}

func newTranslation(c, plain net.Conn) *translation {
	t := &translation{c: c, plain: plain, window: 65535}
	t.room = sync.NewCond(&t.mu)
	t.dec = hpack.NewDecoder(4096, t.field)
	return t
}

// field takes a decoded field.
func (t *translation) field(f hpack.HeaderField) {
	switch f.Name {
	case ":method":
		t.first[0] = f.Value
	case ":path":
		t.first[1] = f.Value
	case ":authority", "host": // one of them will do (RFC 9113 section 8.3.1)
		t.first[2] = f.Value
	case ":scheme":
	default:
		t.rest.WriteString(f.Name)
		t.rest.WriteString(": ")
		t.rest.WriteString(f.Value)
		t.rest.WriteString("\r\n")
	}
}

// requests reads frames until the connection ends.
func (t *translation) requests() {
	defer func() {
		t.mu.Lock()
		t.over = true
		t.mu.Unlock()
		t.room.Broadcast()
	}()
	buf := make([]byte, 64<<10)
	if _, err := io.ReadFull(t.c, buf[:len(http2.ClientPreface)]); err != nil {
		return
	}
	if _, err := t.c.Write([]byte{0, 0, 0, byte(http2.FrameSettings), 0, 0, 0, 0, 0}); err != nil {
		return
	}
	for n := 0; ; {
		k, err := t.c.Read(buf[n:])
		if err != nil {
			return
		}
		n += k
		at := 0
		for n-at >= 9 {
			end := at + 9 + int(buf[at])<<16 + int(buf[at+1])<<8 + int(buf[at+2])
			if n < end {
				break
			}
			if t.frame(buf[at:end]) != nil {
				return
			}
			at = end
		}
		n = copy(buf, buf[at:n])
		if t.head.Len() > 0 {
			if _, err := t.plain.Write(t.head.Bytes()); err != nil {
				return
			}
			t.head.Reset()
		}
	}
}

var errForeign = errors.New("a frame that no request without a body needs")

// frame takes one frame.
func (t *translation) frame(f []byte) error {
	flags, id, p := http2.Flags(f[4]), binary.BigEndian.Uint32(f[5:])&(1<<31-1), f[9:]
	switch http2.FrameType(f[3]) {
	case http2.FrameHeaders:
		if !flags.Has(http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream) || flags.Has(http2.FlagHeadersPadded) {
			return errForeign
		}
		if flags.Has(http2.FlagHeadersPriority) {
			p = p[5:]
		}
		if _, err := t.dec.Write(p); err != nil {
			return err
		}
		fmt.Fprintf(&t.head, "%s %s HTTP/1.1\r\nhost: %s\r\n%s\r\n", t.first[0], t.first[1], t.first[2], t.rest.Bytes())
		t.rest.Reset()
		t.mu.Lock()
		t.streams = append(t.streams, id)
		t.mu.Unlock()
		return t.dec.Close()
	case http2.FrameWindowUpdate:
		if id == 0 {
			t.mu.Lock()
			t.window += int64(binary.BigEndian.Uint32(p))
			t.mu.Unlock()
			t.room.Broadcast()
		}
	case http2.FrameSettings, http2.FramePing:
		if !flags.Has(http2.FlagSettingsAck) {
			answer := bytes.Clone(f)
			if answer[4] = byte(http2.FlagSettingsAck); answer[3] == byte(http2.FrameSettings) {
				answer = answer[:9]
				answer[0], answer[1], answer[2] = 0, 0, 0
			}
			_, err := t.c.Write(answer)
			return err
		}
	case http2.FrameData, http2.FrameRSTStream, http2.FrameContinuation:
		return errForeign
	}
	return nil
}

// answers relays what the upstream says, each answer to the stream whose turn it is.
func (t *translation) answers() {
	length := strconv.Itoa(BodySize)
	head := append([]byte{0, 0, 0, byte(http2.FrameHeaders), byte(http2.FlagHeadersEndHeaders), 0, 0, 0, 0, 0x88}, 0x0f, 0x10, 10)
	head = append(append(head, "text/plain"...), 0x0f, 0x0d, byte(len(length)))
	head = append(head, length...)
	head[2] = byte(len(head) - 9)
	buf, out := make([]byte, 64<<10), []byte(nil)
	for n := 0; ; {
		k, err := t.plain.Read(buf[n:])
		if err != nil {
			return
		}
		n += k
		at := 0
		out = out[:0]
		for {
			end := bytes.Index(buf[at:n], headEnd)
			if end < 0 || n-at < end+len(headEnd)+BodySize {
				break
			}
			at += end + len(headEnd)
			id, ok := t.next(false)
			if !ok { // what is there makes room
				if _, err := t.c.Write(out); err != nil {
					return
				}
				out = out[:0]
				if id, ok = t.next(true); !ok {
					return
				}
			}
			out = append(out, head...)
			binary.BigEndian.PutUint32(out[len(out)-len(head)+5:], id)
			out = append(out, 0, byte(BodySize>>8), byte(BodySize&0xff), byte(http2.FrameData), byte(http2.FlagDataEndStream))
			out = append(binary.BigEndian.AppendUint32(out, id), buf[at:at+BodySize]...)
			at += BodySize
		}
		n = copy(buf, buf[at:n])
		if _, err := t.c.Write(out); err != nil {
			return
		}
	}
}

// next is the stream that is answered next; false when the window has no room for it, or with wait when the connection
// ends before it has.
func (t *translation) next(wait bool) (uint32, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for wait && t.window < BodySize && !t.over {
		t.room.Wait()
	}
	if t.window < BodySize || t.over || len(t.streams) == 0 {
		return 0, false
	}
	id := t.streams[0]
	t.streams = t.streams[1:]
	t.window -= BodySize
	return id, true
}
