package peer

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"iter"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"
)

// floorTLS is a client of floorProxy that speaks TLS, and its net.Conn for crypto/tls.
type floorTLS struct {
	f       *floorProxy
	fd      int
	conn    *tls.Conn
	step    func() (struct{}, bool) // goes on with the handshake; nil = it is done
	stop    func()
	pause   func(struct{}) bool
	drained bool   // nothing is left to read until the next event
	out     []byte // records that are not sent yet
	queued  bool   // in written of the proxy

	// Of HTTP/2, in which requests are not decoded: a GET of the same path is sent for each.
	streams []byte // what has come and is no whole frame; nil = the client speaks HTTP/1.1
	preface int    // bytes of the client's preface that are still to come
	plain   []byte // frames that are not encrypted yet
}

// A client's records are sent at the end of an iteration, or when there are as many bytes as this.
const floorOutput = 64 << 10

var floorRequest = []byte("GET /items/0 HTTP/1.1\r\nHost: bench.test\r\n\r\n")

// drainedError is what crypto/tls may read again after.
type drainedError struct{}

func (drainedError) Error() string   { return "nothing to read yet" }
func (drainedError) Timeout() bool   { return true }
func (drainedError) Temporary() bool { return true }

func newFloorTLS(f *floorProxy, fd int) *floorTLS {
	s := &floorTLS{f: f, fd: fd}
	s.conn = tls.Server(s, f.tls)
	s.step, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.pause = yield
		_ = s.conn.Handshake() // reading says the same again
	})
	return s
}

// read goes on after an event.
func (s *floorTLS) read() {
	s.drained = false
	if s.step != nil {
		_, more := s.step()
		s.send()
		if more {
			s.register()
			return
		}
		s.step = nil
		if s.conn.ConnectionState().NegotiatedProtocol == "h2" {
			s.streams, s.preface = make([]byte, 0, floorOutput), len(http2.ClientPreface)
			s.plain = append(s.plain, 0, 0, 0, byte(http2.FrameSettings), 0, 0, 0, 0, 0)
			s.queue()
		}
	}
	for s.f.conns[s.fd].secure == s {
		n, err := s.conn.Read(s.f.buffer)
		switch {
		case errors.Is(err, drainedError{}):
			s.register()
			return
		case err != nil || n == 0:
			s.f.drop(s.fd)
		case s.streams != nil:
			s.ask(s.f.buffer[:n])
		default:
			s.f.pass(s.fd, s.f.buffer[:n])
		}
	}
}

func (s *floorTLS) register() {
	if c := &s.f.conns[s.fd]; c.secure == s && !c.registered {
		s.f.register(s.fd)
	}
}

// ask sends a request for each whole frame of one.
func (s *floorTLS) ask(data []byte) {
	skipped := min(s.preface, len(data))
	s.preface -= skipped
	s.streams = append(s.streams, data[skipped:]...)
	const head = 9
	rest := s.streams
	for len(rest) >= head {
		length := int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2])
		if len(rest) < head+length {
			break
		}
		kind, flags, stream := http2.FrameType(rest[3]), http2.Flags(rest[4]), binary.BigEndian.Uint32(rest[5:])
		payload := rest[head : head+length]
		rest = rest[head+length:]
		switch {
		case kind == http2.FrameHeaders:
			fd, ok := s.f.dial()
			if !ok || !send(fd, floorRequest) {
				s.f.close(s.fd)
				return
			}
			s.f.conns[fd].peer, s.f.conns[fd].stream = s.fd, stream
		case kind == http2.FrameSettings && flags&http2.FlagSettingsAck == 0:
			s.frame(http2.FrameSettings, http2.FlagSettingsAck, 0, nil)
		case kind == http2.FramePing && flags&http2.FlagPingAck == 0:
			s.frame(http2.FramePing, http2.FlagPingAck, 0, payload)
		}
	}
	s.streams = s.streams[:copy(s.streams, rest)]
}

// answer passes on what has come from the upstream; head bytes of it are the head of the answer, and done is whether it has ended.
func (s *floorTLS) answer(stream uint32, data []byte, head int, done bool) {
	if s.streams == nil {
		_, _ = s.conn.Write(data) // to out
		s.queue()
		return
	}
	if head > 0 {
		flags := http2.FlagHeadersEndHeaders
		if done && len(data) == head {
			flags |= http2.FlagHeadersEndStream
		}
		s.frame(http2.FrameHeaders, flags, stream, []byte{0x88}) // :status 200, RFC 7541 appendix A
	}
	const most = 16 << 10 // RFC 9113 section 6.5.2
	for data = data[head:]; len(data) > 0; {
		n := min(len(data), most)
		flags := http2.Flags(0)
		if done && n == len(data) {
			flags = http2.FlagDataEndStream
		}
		s.frame(http2.FrameData, flags, stream, data[:n])
		data = data[n:]
	}
}

func (s *floorTLS) frame(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) {
	n := len(payload)
	s.plain = append(s.plain, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	s.plain = append(binary.BigEndian.AppendUint32(s.plain, stream), payload...)
	s.queue()
}

// queue has the records sent at the end of the iteration.
func (s *floorTLS) queue() {
	if !s.queued {
		s.queued = true
		s.f.written = append(s.f.written, s.fd)
	}
	if len(s.out)+len(s.plain) >= floorOutput {
		s.send()
	}
}

// send sends what was written.
func (s *floorTLS) send() {
	if len(s.plain) > 0 {
		_, _ = s.conn.Write(s.plain) // to out
		s.plain = s.plain[:0]
	}
	if len(s.out) > 0 {
		_ = send(s.fd, s.out) // who is gone is found out by reading
		s.out = s.out[:0]
	}
}

// flush sends the records of an iteration.
func (f *floorProxy) flush() {
	for _, fd := range f.written {
		if s := f.conns[fd].secure; s != nil && s.queued {
			s.queued = false
			s.send()
		}
	}
	f.written = f.written[:0]
}

// end ends a handshake that is not done.
func (s *floorTLS) end() {
	if s.step != nil {
		s.step = nil
		s.stop()
	}
}

// Read is crypto/tls's. It asks the system again only if the last answer was all there was room for.
func (s *floorTLS) Read(b []byte) (int, error) {
	for {
		if !s.drained {
			n, err := unix.Read(s.fd, b)
			switch {
			case errors.Is(err, unix.EAGAIN):
			case err != nil:
				return 0, err
			case n == 0:
				return 0, net.ErrClosed
			default:
				s.drained = n < len(b)
				return n, nil
			}
		}
		if s.step == nil {
			return 0, drainedError{}
		}
		if !s.pause(struct{}{}) {
			return 0, net.ErrClosed
		}
	}
}

func (s *floorTLS) Write(b []byte) (int, error) {
	s.out = append(s.out, b...)
	return len(b), nil
}

func (s *floorTLS) Close() error                     { return nil }
func (s *floorTLS) LocalAddr() net.Addr              { return nil }
func (s *floorTLS) RemoteAddr() net.Addr             { return nil }
func (s *floorTLS) SetDeadline(time.Time) error      { return nil }
func (s *floorTLS) SetReadDeadline(time.Time) error  { return nil }
func (s *floorTLS) SetWriteDeadline(time.Time) error { return nil }
