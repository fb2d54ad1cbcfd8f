// Package tracecontext reads and writes what the head of a request says of the trace that it belongs to: traceparent and tracestate of
// the W3C (Trace Context, level 2), and the fields of B3. It takes what follows the grammars and nothing else, and allocates nothing.
package tracecontext

import (
	"encoding/binary"
	"slices"
)

// TraceID names a trace. The zero value is none.
type TraceID [16]byte

// SpanID names a span of a trace. The zero value is none.
type SpanID [8]byte

// Sampling is what the sender of a context decided about its trace.
type Sampling uint8

// What can have been decided.
const (
	Undecided  Sampling = iota // only B3 can leave it to the receiver
	NotSampled                 // the sender records nothing
	Sampled                    // the sender may have recorded it
)

// Context is one position in a trace. The zero value is none.
type Context struct {
	Trace    TraceID
	Span     SpanID
	Sampling Sampling
	Random   bool // the trace id was made at random, as its sender says (Trace Context, level 2, section 3.2.2.5)
}

// Valid says that the context names a trace and a span.
func (c *Context) Valid() bool { return c.Trace != TraceID{} && c.Span != SpanID{} }

// Flags of traceparent.
const (
	flagSampled = 1
	flagRandom  = 2
)

// ParentSize is the length of a traceparent of version 00, and ParentSpan where the id of the span stands in it.
const (
	ParentSize = 55
	ParentSpan = 36
)

// ParseParent reads the value of a traceparent (section 3.2). A version above 00 is read as far as 00 goes (section 4.3). false: it breaks the
// grammar, and the request is as one without it.
func ParseParent(v []byte) (c Context, ok bool) {
	var version, flags [1]byte
	if len(v) < ParentSize || v[2] != '-' || v[35] != '-' || v[52] != '-' ||
		!unhex(version[:], v[:2]) || !unhex(c.Trace[:], v[3:35]) || !unhex(c.Span[:], v[36:52]) || !unhex(flags[:], v[53:55]) {
		return Context{}, false
	}
	switch {
	case version[0] == 0xff, version[0] == 0 && len(v) != ParentSize, len(v) > ParentSize && v[ParentSize] != '-', !c.Valid():
		return Context{}, false
	}
	c.Sampling = NotSampled
	if flags[0]&flagSampled != 0 {
		c.Sampling = Sampled
	}
	c.Random = version[0] == 0 && flags[0]&flagRandom != 0
	return c, true
}

// AppendParent appends a traceparent of version 00, ParentSize bytes. The id of the span begins at ParentSpan of them.
func AppendParent(b []byte, c *Context) []byte {
	at := len(b)
	b = slices.Grow(b, ParentSize)[:at+ParentSize]
	to := (*[ParentSize]byte)(b[at:])
	to[0], to[1], to[2], to[35], to[52], to[53], to[54] = '0', '0', '-', '-', '-', '0', '0'
	putHex(to[3:], c.Trace[:])
	putHex(to[ParentSpan:], c.Span[:])
	if c.Sampling == Sampled {
		to[54] += flagSampled
	}
	if c.Random {
		to[54] += flagRandom
	}
	return b
}

// AppendHex appends an id as it is written in fields and logs.
func AppendHex(b, id []byte) []byte {
	at := len(b)
	b = slices.Grow(b, 2*len(id))[:at+2*len(id)]
	putHex(b[at:], id)
	return b
}

// putHex writes the digits of an id, four bytes of it at a time, which all ids are whole numbers of.
func putHex(to, id []byte) {
	for ; len(id) >= 4; to, id = to[8:], id[4:] {
		// Each nibble becomes a byte, and these the digits: those above 9 are letters.
		v := uint64(binary.BigEndian.Uint32(id))
		v = (v | v<<16) & 0x0000ffff0000ffff
		v = (v | v<<8) & 0x00ff00ff00ff00ff
		v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
		letters := (v + 0x0606060606060606) >> 4 & 0x0101010101010101
		binary.BigEndian.PutUint64(to, v+0x3030303030303030+letters*('a'-'0'-10))
	}
}

// PutSpan writes an id over the 16 digits that stand at the beginning of to.
func PutSpan(to []byte, id SpanID) { AppendHex(to[:0:16], id[:]) }

// unhex reads exactly len(to) bytes in lower-case digits.
func unhex(to, digits []byte) bool {
	if len(digits) != 2*len(to) {
		return false
	}
	for i := range to {
		hi, lo := digit(digits[2*i]), digit(digits[2*i+1])
		if hi|lo > 15 {
			return false
		}
		to[i] = hi<<4 | lo
	}
	return true
}

// digit is the value of a lower-case hexadecimal digit; above 15: it is none.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}
