package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"
)

// podH2 is a connection of a proxy to an upstream that speaks HTTP/2 with prior knowledge. It takes requests without bodies; the answers
// to all that came at once leave in one write.
type podH2 struct {
	backend  *backend
	fd       int
	upstream int
	rest     []byte        // a frame that has not arrived completely
	from     *bytes.Reader // what in reads
	in, to   *http2.Framer // to writes to out
	dec      *hpack.Decoder
	fields   bytes.Buffer // of the request that is decoded, as HTTP/1.1 writes it
	out      bytes.Buffer // to be sent, some of it perhaps for the second time
	blocked  bool         // the socket took not all of out
	block    []byte       // the head of every answer
	window   int          // of the connection
	waiting  []uint32     // streams whose answers wait for it
}

// newPodH2 takes c over. p is what follows the preface.
func newPodH2(c *backendConn, p []byte) {
	s := &podH2{backend: c.backend, fd: c.fd, upstream: c.upstream, from: bytes.NewReader(nil), window: 65535}
	s.in, s.to = http2.NewFramer(nil, s.from), http2.NewFramer(&s.out, nil)
	s.in.SetReuseFrames()
	s.dec = hpack.NewDecoder(4096, s.field)
	length := strconv.Itoa(len(s.body()))
	s.block = append([]byte{0x88, 0x0f, 0x10, 10}, "text/plain"...) // :status 200, content-type, content-length (RFC 7541 section 6)
	s.block = append(append(s.block, 0x0f, 0x0d, byte(len(length))), length...)
	s.backend.loop.handlers[s.fd] = s
	_ = s.to.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 250}) // a buffer takes everything
	s.work(p)
}

func (s *podH2) body() []byte { return s.backend.bodies[s.upstream] }

func (s *podH2) field(f hpack.HeaderField) {
	if s.backend.capture {
		name := f.Name
		if name == ":authority" {
			name = "host"
		}
		fmt.Fprintf(&s.fields, "\r\n%s: %s", name, f.Value)
	}
}

func (s *podH2) ready() {
	b := s.backend
	if s.blocked {
		if s.flush(); s.blocked {
			return
		}
	}
	kept := copy(b.buffer, s.rest)
	n, err := uninterrupted(unix.Read, s.fd, b.buffer[kept:])
	switch {
	case errors.Is(err, unix.EAGAIN):
	case err != nil || n == 0:
		b.loop.remove(s.fd)
	default:
		s.work(b.buffer[:kept+n])
	}
}

// work takes all whole frames of p, keeps the rest, and sends what follows from them.
func (s *podH2) work(p []byte) {
	const head = 9 // RFC 9113 section 4.1
	for len(p) >= head {
		size := head + int(binary.BigEndian.Uint32(p)>>8)
		if len(p) < size {
			break
		}
		s.from.Reset(p[:size])
		f, err := s.in.ReadFrame()
		if err == nil {
			err = s.frame(f)
		}
		if err != nil { // a proxy that this pod is not made for: what is missing shows in the answers
			s.backend.loop.remove(s.fd)
			return
		}
		p = p[size:]
	}
	s.rest = append(s.rest[:0], p...)
	s.flush()
}

var errForeign = errors.New("a frame that no request without a body needs")

func (s *podH2) frame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.HeadersFrame:
		if !f.HeadersEnded() || !f.StreamEnded() {
			return errForeign
		}
		s.fields.Reset()
		if _, err := s.dec.Write(f.HeaderBlockFragment()); err != nil {
			return err
		}
		b := s.backend
		b.served++
		if b.capture {
			b.head = append(append(b.head[:0], "request of HTTP/2"...), s.fields.Bytes()...)
		}
		s.answer(f.StreamID)
		return s.dec.Close()
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			s.window += int(f.Increment)
			waiting := s.waiting
			s.waiting = nil
			for _, id := range waiting {
				s.answer(id)
			}
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return s.to.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return s.to.WritePing(true, f.Data)
		}
	case *http2.DataFrame, *http2.ContinuationFrame:
		return errForeign
	}
	return nil
}

// answer queues an answer, which is one frame of data: it fits into a stream's first window.
func (s *podH2) answer(id uint32) {
	body := s.body()
	if s.window < len(body) {
		s.waiting = append(s.waiting, id)
		return
	}
	s.window -= len(body)
	_ = s.to.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: s.block, EndHeaders: true})
	_ = s.to.WriteData(id, true, body)
}

// flush sends what is queued.
func (s *podH2) flush() {
	if s.out.Len() == 0 {
		return
	}
	n, err := uninterrupted(unix.Write, s.fd, s.out.Bytes())
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		s.backend.loop.remove(s.fd)
		return
	}
	s.out.Next(n)
	if blocked := s.out.Len() > 0; blocked != s.blocked {
		s.blocked = blocked
		s.backend.loop.wants(s.fd, blocked)
	}
}
