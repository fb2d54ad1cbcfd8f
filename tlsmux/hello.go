package tlsmux

import (
	"encoding/binary"
	"iter"
)

// MaxHelloBytes bounds what is read of a connection, record headers included, before its ClientHello has to be complete.
const MaxHelloBytes = 64 << 10

// Numbers of the TLS registry that the parser knows.
const (
	recordAlert     = 21
	recordHandshake = 22
	typeClientHello = 1
	recordHeader    = 5
	messageHeader   = 4
	maxRecord       = 1 << 14 // RFC 8446 section 5.1: length of a TLSPlaintext fragment
	maxServerName   = 255     // longer than any DNS name can be

	extServerName        = 0
	extALPN              = 16
	extSessionTicket     = 35
	extPreSharedKey      = 41
	extSupportedVersions = 43
)

// Alert is a TLS alert description (RFC 8446 section 6). Zero means that no alert is to be sent.
type Alert uint8

// Alerts that are sent without a TLS stack, in the clear, before a handshake begins.
const (
	AlertUnexpectedMessage Alert = 10
	AlertRecordOverflow    Alert = 22
	AlertDecodeError       Alert = 50
	AlertUnrecognizedName  Alert = 112
)

// record is the alert as a fatal plain-text record.
func (a Alert) record() []byte { return []byte{recordAlert, 3, 3, 0, 2, 2, byte(a)} }

// HelloError says why the first bytes of a connection are no acceptable ClientHello. The parser returns only the values
// declared in this package, so they can be compared.
type HelloError struct {
	// Alert is the alert that the client gets before the connection closes; 0 = close without a byte.
	Alert  Alert
	reason string
}

func (e *HelloError) Error() string { return "cannot read ClientHello: " + e.reason }

// What can be wrong with the first bytes of a connection.
var (
	// ErrNotTLS: the bytes are no TLS handshake record. SSLv2 compatible hellos count as this.
	ErrNotTLS = &HelloError{0, "not TLS"}
	// ErrHelloTooBig: MaxHelloBytes were not enough.
	ErrHelloTooBig = &HelloError{AlertDecodeError, "too big"}
	// ErrHelloMalformed: a length or list contradicts RFC 8446 section 4.1.2.
	ErrHelloMalformed = &HelloError{AlertDecodeError, "malformed message"}
	// ErrHelloRecord: a record of another type follows a fragment of the hello, or an empty one (RFC 8446 section 5.1).
	ErrHelloRecord = &HelloError{AlertUnexpectedMessage, "unexpected record"}
	// ErrHelloMessage: the first handshake message is not a ClientHello.
	ErrHelloMessage = &HelloError{AlertUnexpectedMessage, "another handshake message"}
	// ErrHelloOverflow: a record is longer than 2^14 bytes (RFC 8446 section 5.1).
	ErrHelloOverflow = &HelloError{AlertRecordOverflow, "record too long"}
	// ErrHelloName: the server name is not a host name: empty, longer than 255 bytes, with a trailing dot, a space, a
	// control character or a byte outside of ASCII (RFC 6066 section 3).
	ErrHelloName = &HelloError{AlertUnrecognizedName, "bad server name"}
)

// Hello is what a ClientHello says that matters for routing. The slices that its methods return point into the parsed bytes
// (or into the parser, for a hello of several records) and are valid as long as those.
type Hello struct {
	// ServerName is the host name of the server_name extension in lower case; "" without one.
	ServerName string
	// HasServerName tells whether the extension named a host.
	HasServerName bool
	// LegacyVersion is the version field of the message, 0x0303 from every client of TLS 1.2 or later.
	LegacyVersion uint16
	// Size is the length of the message with its 4 byte header, without record headers.
	Size int

	alpn     []byte // list of 8-bit length-prefixed names, checked; nil = no extension
	ticket   []byte // session ticket, of TLS 1.3 the first one; nil = none, or none that makes sense
	versions []byte // list of 16-bit versions, checked; nil = no extension
}

// HasProtocols tells whether the client offers application protocols at all (RFC 7301).
func (h *Hello) HasProtocols() bool { return h.alpn != nil }

// Protocols yields the application protocols in the order of the client. The slices are views.
func (h *Hello) Protocols() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for b := h.alpn; len(b) > 0; {
			n := int(b[0])
			if !yield(b[1 : 1+n]) {
				return
			}
			b = b[1+n:]
		}
	}
}

// Offers tells whether the client offers the application protocol.
func (h *Hello) Offers(protocol string) bool {
	for b := h.alpn; len(b) > 0; {
		n := int(b[0])
		if string(b[1:1+n]) == protocol {
			return true
		}
		b = b[1+n:]
	}
	return false
}

// Supports tells whether the client offers the protocol version, by the supported_versions extension if there is one
// (RFC 8446 section 4.2.1), else by the version field, which is a maximum.
func (h *Hello) Supports(version uint16) bool {
	if h.versions == nil {
		return version <= h.LegacyVersion && version >= 0x0300 && version < 0x0304
	}
	for b := h.versions; len(b) >= 2; b = b[2:] {
		if binary.BigEndian.Uint16(b) == version {
			return true
		}
	}
	return false
}

// HelloParser finds the ClientHello at the start of a connection. It keeps its place between calls, so that a hello which
// arrives byte by byte costs constant time per byte. The zero value is ready; Reset makes it ready again.
type HelloParser struct {
	rec    int // where the record starts that is being looked at
	got    int // bytes of the message in the records before it
	have   int // bytes in head
	head   [messageHeader]byte
	joined []byte // a message of several records, put together
}

// Reset forgets the connection and keeps the memory.
func (s *HelloParser) Reset() { *s = HelloParser{joined: s.joined[:0]} }

// Parse looks at p, all bytes of the connection so far: those of the call before and what has come since. It returns true
// and fills out when the hello is complete, false and nil when more bytes are needed, else one of the *HelloError values
// of this package. It allocates only the server name, and memory to join a hello that was split over several records.
func (s *HelloParser) Parse(p []byte, out *Hello) (bool, error) {
	for {
		b := p[s.rec:]
		if err := s.checkRecord(b); err != nil {
			return false, err
		}
		if len(b) < recordHeader {
			return false, tooBig(p)
		}
		end := recordHeader + int(binary.BigEndian.Uint16(b[3:]))
		payload := b[recordHeader:min(end, len(b))]
		if n := s.got + len(payload); s.have < messageHeader && n > s.have {
			s.have += copy(s.head[s.have:], payload[s.have-s.got:])
			if s.head[0] != typeClientHello {
				return false, ErrHelloMessage
			}
		}
		if s.have == messageHeader {
			size := messageHeader + int(s.head[1])<<16 + int(binary.BigEndian.Uint16(s.head[2:]))
			if size > MaxHelloBytes {
				return false, ErrHelloTooBig
			}
			if s.got+len(payload) >= size {
				msg := payload
				if s.got > 0 {
					msg = s.join(p, size)
				}
				err := out.parse(msg[:size])
				return err == nil, err
			}
		}
		if len(b) < end {
			return false, tooBig(p)
		}
		s.got += len(payload)
		s.rec += end
	}
}

// checkRecord looks at the header of the record b begins with, as far as it is there.
func (s *HelloParser) checkRecord(b []byte) error {
	if len(b) > 0 && b[0] != recordHandshake || len(b) > 1 && b[1] != 3 {
		if s.rec == 0 {
			return ErrNotTLS
		}
		return ErrHelloRecord
	}
	if len(b) < recordHeader {
		return nil
	}
	switch n := int(binary.BigEndian.Uint16(b[3:])); {
	case n == 0:
		return ErrHelloRecord
	case n > maxRecord:
		return ErrHelloOverflow
	}
	return nil
}

// join puts the first size bytes of the message together from the records of p.
func (s *HelloParser) join(p []byte, size int) []byte {
	s.joined = s.joined[:0]
	for len(s.joined) < size {
		n := recordHeader + int(binary.BigEndian.Uint16(p[3:]))
		s.joined = append(s.joined, p[recordHeader:min(n, len(p))]...)
		p = p[min(n, len(p)):]
	}
	return s.joined
}

func tooBig(p []byte) error {
	if len(p) >= MaxHelloBytes {
		return ErrHelloTooBig
	}
	return nil
}

// cursor reads length-prefixed fields. After the first thing missing, bad is set and everything read is empty.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) takeBytes(n int) []byte {
	if n > len(c.b) {
		c.b, c.bad = nil, true
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) u8() int {
	if v := c.takeBytes(1); v != nil {
		return int(v[0])
	}
	return 0
}

func (c *cursor) u16() int {
	if v := c.takeBytes(2); v != nil {
		return int(binary.BigEndian.Uint16(v))
	}
	return 0
}

// parse reads a complete ClientHello (RFC 8446 section 4.1.2) with its message header.
func (h *Hello) parse(msg []byte) error {
	*h = Hello{Size: len(msg)}
	c := cursor{b: msg[messageHeader:]}
	h.LegacyVersion = uint16(c.u16())
	c.takeBytes(32) // random
	if session := c.takeBytes(c.u8()); len(session) > 32 {
		return ErrHelloMalformed
	}
	if suites := c.takeBytes(c.u16()); len(suites) < 2 || len(suites)%2 != 0 {
		return ErrHelloMalformed
	}
	if compression := c.takeBytes(c.u8()); len(compression) == 0 {
		return ErrHelloMalformed
	}
	if c.bad {
		return ErrHelloMalformed
	}
	if len(c.b) == 0 { // TLS 1.2 and before: the extensions may be left out altogether
		return nil
	}
	exts := cursor{b: c.takeBytes(c.u16())}
	if c.bad || len(c.b) != 0 {
		return ErrHelloMalformed
	}
	return h.parseExtensions(&exts)
}

func (h *Hello) parseExtensions(exts *cursor) error {
	seenName := false
	for len(exts.b) > 0 {
		kind := exts.u16()
		body := cursor{b: exts.takeBytes(exts.u16())}
		if exts.bad {
			return ErrHelloMalformed
		}
		var err error
		switch kind {
		case extServerName:
			if seenName { // RFC 8446 section 4.2: one extension of a type
				return ErrHelloMalformed
			}
			seenName = true
			err = h.parseServerName(&body)
		case extALPN:
			err = h.parseALPN(&body)
		case extSupportedVersions:
			err = h.parseVersions(&body)
		case extSessionTicket: // RFC 5077
			if len(body.b) > 0 {
				h.ticket = body.b
			}
		case extPreSharedKey: // RFC 8446 section 4.2.11; whether it makes sense is for the handshake to say
			identities := cursor{b: body.takeBytes(body.u16())}
			if ticket := identities.takeBytes(identities.u16()); len(ticket) > 0 {
				h.ticket = ticket
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseServerName reads a ServerNameList (RFC 6066 section 3).
func (h *Hello) parseServerName(c *cursor) error {
	list := cursor{b: c.takeBytes(c.u16())}
	if c.bad || len(c.b) != 0 || len(list.b) == 0 {
		return ErrHelloMalformed
	}
	for len(list.b) > 0 {
		kind := list.u8()
		name := list.takeBytes(list.u16())
		if list.bad {
			return ErrHelloMalformed
		}
		if kind != 0 { // host_name is the only type there is
			continue
		}
		if h.HasServerName { // RFC 6066 section 3: no more than one name of a type
			return ErrHelloMalformed
		}
		if err := h.setServerName(name); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hello) setServerName(name []byte) error {
	if len(name) == 0 || len(name) > maxServerName || name[len(name)-1] == '.' {
		return ErrHelloName
	}
	var lower [maxServerName]byte
	for i, b := range name {
		if b <= ' ' || b >= 0x7f {
			return ErrHelloName
		}
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		lower[i] = b
	}
	h.ServerName, h.HasServerName = string(lower[:len(name)]), true
	return nil
}

// parseALPN reads a ProtocolNameList (RFC 7301 section 3.1).
func (h *Hello) parseALPN(c *cursor) error {
	list := cursor{b: c.takeBytes(c.u16())}
	if c.bad || len(c.b) != 0 || len(list.b) == 0 || h.alpn != nil {
		return ErrHelloMalformed
	}
	h.alpn = list.b
	for len(list.b) > 0 {
		if name := list.takeBytes(list.u8()); len(name) == 0 {
			return ErrHelloMalformed
		}
	}
	return nil
}

// parseVersions reads the versions of supported_versions (RFC 8446 section 4.2.1).
func (h *Hello) parseVersions(c *cursor) error {
	list := c.takeBytes(c.u8())
	if c.bad || len(c.b) != 0 || len(list) < 2 || len(list)%2 != 0 || h.versions != nil {
		return ErrHelloMalformed
	}
	h.versions = list
	return nil
}
