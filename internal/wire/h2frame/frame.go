package h2frame

import "encoding/binary"

// Type is a frame type (RFC 9113 section 6).
type Type uint8

// The frame types.
const (
	Data         Type = 0x0
	Headers      Type = 0x1
	Priority     Type = 0x2
	RSTStream    Type = 0x3
	Settings     Type = 0x4
	PushPromise  Type = 0x5
	Ping         Type = 0x6
	GoAway       Type = 0x7
	WindowUpdate Type = 0x8
	Continuation Type = 0x9
)

// Flags of a frame; which of them mean something depends on its type.
type Flags uint8

// The flags.
const (
	FlagEndStream  Flags = 0x1 // DATA, HEADERS
	FlagAck        Flags = 0x1 // SETTINGS, PING
	FlagEndHeaders Flags = 0x4 // HEADERS, CONTINUATION
	FlagPadded     Flags = 0x8 // DATA, HEADERS
	FlagPriority   Flags = 0x20
)

// Setting is the identifier of a setting (RFC 9113 section 6.5.2).
type Setting uint16

// The settings.
const (
	HeaderTableSize       Setting = 0x1
	EnablePush            Setting = 0x2
	MaxConcurrentStreams  Setting = 0x3
	InitialWindowSize     Setting = 0x4
	MaxFrameSize          Setting = 0x5
	MaxHeaderListSize     Setting = 0x6
	EnableConnectProtocol Setting = 0x8 // RFC 8441
)

const (
	// Preface is what a client sends first (RFC 9113 section 3.4).
	Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// PrefaceHead is the part of it that looks like the head of an HTTP/1.1 request.
	PrefaceHead = "PRI * HTTP/2.0\r\n\r\n"
	// HeaderSize is the length of a frame header.
	HeaderSize = 9
	// FrameSize is the largest payload that is accepted and sent: the initial value of SETTINGS_MAX_FRAME_SIZE.
	FrameSize = 16384
	// MaxWindow is the largest flow-control window (RFC 9113 section 6.9.1).
	MaxWindow = 1<<31 - 1
	// MaxStream is the largest stream identifier.
	MaxStream = 1<<31 - 1
)

// Header is a frame header.
type Header struct {
	Length int // of the payload
	Type   Type
	Flags  Flags
	Stream uint32 // without the reserved bit
}

// Has says whether all of f are set.
func (h Header) Has(f Flags) bool { return h.Flags&f == f }

// ParseHeader reads the header at the start of b, which has at least HeaderSize bytes.
func ParseHeader(b []byte) Header {
	_ = b[8]
	return Header{
		Length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]), Type: Type(b[3]), Flags: Flags(b[4]),
		Stream: binary.BigEndian.Uint32(b[5:]) & MaxStream,
	}
}

// AppendHeader appends a frame header.
func AppendHeader(b []byte, h Header) []byte {
	return append(b, byte(h.Length>>16), byte(h.Length>>8), byte(h.Length), byte(h.Type), byte(h.Flags),
		byte(h.Stream>>24), byte(h.Stream>>16), byte(h.Stream>>8), byte(h.Stream))
}

// PutLength writes the length of the frame whose header is at the start of b.
func PutLength(b []byte, n int) { b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n) }

// AppendSetting appends one setting to the payload of a SETTINGS frame.
func AppendSetting(b []byte, id Setting, v uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(id)), v)
}

// AppendRSTStream appends a RST_STREAM frame.
func AppendRSTStream(b []byte, stream uint32, code Code) []byte {
	return binary.BigEndian.AppendUint32(AppendHeader(b, Header{4, RSTStream, 0, stream}), uint32(code))
}

// AppendWindowUpdate appends a WINDOW_UPDATE frame; stream 0 is the connection.
func AppendWindowUpdate(b []byte, stream, n uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendHeader(b, Header{4, WindowUpdate, 0, stream}), n)
}

// AppendPing appends a PING frame with 8 bytes of data.
func AppendPing(b []byte, flags Flags, data []byte) []byte {
	return append(AppendHeader(b, Header{8, Ping, flags, 0}), data[:8]...)
}

// AppendGoAway appends a GOAWAY frame; debug is for people who debug the peer.
func AppendGoAway(b []byte, last uint32, code Code, debug string) []byte {
	b = AppendHeader(b, Header{8 + len(debug), GoAway, 0, 0})
	b = binary.BigEndian.AppendUint32(b, last)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return append(b, debug...)
}
