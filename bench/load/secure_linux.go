package load

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"turnout/bench/site"
)

// Secure starts the first upstream of the rig behind TLS, spoken to in the protocol that ALPN selects. cfg has the certificate and, in
// NextProtos, the one protocol of the upstream: "h2" or "http/1.1". Like all upstreams it answers only while the rig runs, and the rig
// counts what it answers. A proxy that leaves is no failure: what is missing shows in the answers.
func (r *Rig) Secure(cfg *tls.Config) *site.Backend {
	upstream := r.Upstreams()[0].String()
	return site.ServeConns(netip.AddrPortFrom(upstreamHost(0), 0), func(raw net.Conn) {
		c := tls.Server(raw, cfg)
		if c.Handshake() != nil {
			return
		}
		plain, err := net.Dial("tcp4", upstream)
		if err != nil {
			return
		}
		requests := func() { _, _ = io.Copy(plain, c) }
		answers := func() { _, _ = io.Copy(c, plain) }
		if c.ConnectionState().NegotiatedProtocol == "h2" {
			t := newTranslation(c, plain)
			requests, answers = func() { _ = t.requests() }, func() { _ = t.answers() }
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			answers()
			_ = raw.Close()
		}()
		requests()
		_ = plain.Close()
		<-back
	})
}

// translation makes the requests of one HTTP/2 connection requests of HTTP/1.1, one behind the other.
type translation struct {
	c, plain net.Conn
	buffered *bufio.Reader // of c
	frames   *http2.Framer // reads buffered and writes to c
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
	t := &translation{c: c, plain: plain, buffered: bufio.NewReaderSize(c, 64<<10), window: 65535}
	t.frames = http2.NewFramer(c, t.buffered)
	t.frames.SetReuseFrames()
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
		for _, part := range [...]string{f.Name, ": ", f.Value, "\r\n"} {
			t.rest.WriteString(part)
		}
	}
}

// requests reads frames until the connection ends.
func (t *translation) requests() error {
	defer func() {
		t.mu.Lock()
		t.over = true
		t.mu.Unlock()
		t.room.Broadcast()
	}()
	if _, err := t.buffered.Discard(len(http2.ClientPreface)); err != nil {
		return err
	}
	if err := t.frames.WriteSettings(); err != nil {
		return err
	}
	for {
		f, err := t.frames.ReadFrame()
		if err == nil {
			err = t.frame(f)
		}
		if err == nil && t.buffered.Buffered() == 0 && t.head.Len() > 0 {
			_, err = t.plain.Write(t.head.Bytes())
			t.head.Reset()
		}
		if err != nil {
			return err
		}
	}
}

var errForeign = errors.New("a frame that no request without a body needs")

// frame takes one frame.
func (t *translation) frame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.HeadersFrame:
		if !f.HeadersEnded() || !f.StreamEnded() {
			return errForeign
		}
		if _, err := t.dec.Write(f.HeaderBlockFragment()); err != nil {
			return err
		}
		fmt.Fprintf(&t.head, "%s %s HTTP/1.1\r\nhost: %s\r\n%s\r\n", t.first[0], t.first[1], t.first[2], t.rest.Bytes())
		t.rest.Reset()
		t.mu.Lock()
		t.streams = append(t.streams, f.StreamID)
		t.mu.Unlock()
		return t.dec.Close()
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			t.mu.Lock()
			t.window += int64(f.Increment)
			t.mu.Unlock()
			t.room.Broadcast()
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return t.frames.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return t.frames.WritePing(true, f.Data)
		}
	case *http2.DataFrame, *http2.RSTStreamFrame, *http2.ContinuationFrame:
		return errForeign
	}
	return nil
}

// answers relays what the upstream says, each answer to the stream that waits longest.
func (t *translation) answers() error {
	length := strconv.Itoa(BodySize)
	block := append([]byte{0x88, 0x0f, 0x10, 10}, "text/plain"...) // :status 200, content-type, content-length (RFC 7541 section 6)
	block = append(append(block, 0x0f, 0x0d, byte(len(length))), length...)
	buf := make([]byte, 64<<10)
	var out bytes.Buffer
	frames := http2.NewFramer(&out, nil)
	for n := 0; ; {
		k, err := t.plain.Read(buf[n:])
		if err != nil {
			return err
		}
		n += k
		at := 0
		for {
			end := bytes.Index(buf[at:n], headEnd)
			if end < 0 || n-at < end+len(headEnd)+BodySize {
				break
			}
			at += end + len(headEnd)
			id, ok := t.next(false)
			if !ok { // what is there makes room
				if _, err := out.WriteTo(t.c); err != nil {
					return err
				}
				if id, ok = t.next(true); !ok {
					return io.EOF
				}
			}
			_ = frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
			_ = frames.WriteData(id, true, buf[at:at+BodySize])
			at += BodySize
		}
		n = copy(buf, buf[at:n])
		if _, err := out.WriteTo(t.c); err != nil {
			return err
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
