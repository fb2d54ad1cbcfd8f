package http1

import (
	"bytes"
	"math"

	"turnout/internal/wire/field"
)

// ChunkState says how a ChunkDecoder goes on.
type ChunkState uint8

// The chunk states.
const (
	ChunkMore ChunkState = iota // all input is consumed: feed the bytes that follow
	ChunkData                   // body bytes were yielded: call Next with what is left of the input
	ChunkDone                   // the body ended, trailers included: what is left belongs to the next message
)

// ChunkLimits bounds what the framing of a chunked body may cost. A zero member
// means its default.
type ChunkLimits struct {
	LineBytes     int // bytes of one chunk-size line with its extensions; default 1024
	TrailerBytes  int // bytes of all trailer lines; default 8192
	TrailerFields int // trailer lines; default 64
}

// Defaults of ChunkLimits.
const (
	DefaultChunkLineBytes = 1024
	DefaultTrailerBytes   = 8192
	DefaultTrailerFields  = 64
)

// Framing may exceed the body by this much: each chunk adds the bytes of its
// framing to the excess and takes chunkAllowance and twice its data off again.
const (
	maxChunkExcess = 16 << 10
	chunkAllowance = 16
)

// keptTrailerBytes is the largest trailer buffer that survives Reset.
const keptTrailerBytes = 1024

// ChunkDecoder decodes the chunked transfer coding (RFC 9112 section 7.1)
// incrementally and strictly. It keeps no input but trailers, at most
// ChunkLimits.TrailerBytes. The zero value decodes one body with default limits.
type ChunkDecoder struct {
	state   chunkState
	fault   fault
	digits  uint8  // hexadecimal digits of the size line so far
	left    uint64 // size being read, then bytes of data still to come
	line    int    // bytes of the size line so far
	excess  int64
	limits  ChunkLimits
	trailer []byte // trailer lines, the fields' memory
	fields  []field.Field
}

// chunkState is where in the grammar of section 7.1 the next byte stands.
type chunkState uint8

const (
	inSize        chunkState = iota // chunk-size
	beforeName                      // BWS after ";"
	inName                          // chunk-ext-name
	afterName                       // BWS after chunk-ext-name
	beforeValue                     // BWS after "="
	inValue                         // token of chunk-ext-val
	inQuoted                        // quoted-string of chunk-ext-val
	inPair                          // after "\" in a quoted-string
	afterQuoted                     // right after the closing quote
	afterValue                      // BWS after chunk-ext-val
	lineLF                          // LF of the size line
	inData                          // chunk-data
	dataCR                          // CR after chunk-data
	dataLF                          // LF after chunk-data
	beforeTrailer                   // right after the last chunk's line
	finalLF                         // LF of an empty trailer section
	inTrailer                       // trailer lines
	chunkEnded                      // everything is consumed
	chunkFailed                     // an error was returned
)

// Reset prepares d for another body. The trailers of the one before are gone.
func (d *ChunkDecoder) Reset(lim ChunkLimits) {
	trailer := d.trailer[:0]
	if cap(trailer) > keptTrailerBytes {
		trailer = nil
	}
	clear(d.fields)
	*d = ChunkDecoder{limits: lim, trailer: trailer, fields: d.fields[:0]}
}

// Trailers are the trailer fields in order, without those that have no place in
// trailers (IsForbiddenTrailer). They are complete after ChunkDone and views into
// memory of d, valid until Reset.
func (d *ChunkDecoder) Trailers() []field.Field { return d.fields }

// NextData consumes the first n bytes of p. data is a view into p, not empty exactly
// when state is ChunkData. It returns ChunkMore only with n == len(p), and after
// ChunkDone consumes nothing. A non-nil error is an *Error and final: nothing after
// it can be trusted.
func (d *ChunkDecoder) NextData(p []byte) (data []byte, n int, state ChunkState, err error) {
	i := 0
	for i < len(p) {
		switch d.state {
		case inData:
			size := uint64(len(p) - i)
			if d.left <= size {
				size = d.left
				d.state = dataCR
			}
			d.left -= size
			end := i + int(size)
			return p[i:end:end], end, ChunkData, nil
		case inTrailer:
			size, f := d.takeTrailer(p[i:])
			if f != faultNone {
				return d.fail(f, i)
			}
			i += size
		case chunkEnded:
			return nil, i, ChunkDone, nil
		case chunkFailed:
			return d.fail(d.fault, i)
		case beforeTrailer:
			if p[i] != '\r' {
				d.state = inTrailer
				continue
			}
			d.state = finalLF
			i++
		default:
			if f := d.step(p[i]); f != faultNone {
				return d.fail(f, i)
			}
			i++
		}
	}
	if d.state == chunkEnded {
		return nil, i, ChunkDone, nil
	}
	if d.state == chunkFailed {
		return d.fail(d.fault, i)
	}
	return nil, i, ChunkMore, nil
}

func (d *ChunkDecoder) fail(f fault, n int) ([]byte, int, ChunkState, error) {
	d.state, d.fault = chunkFailed, f
	return nil, n, ChunkMore, f.request()
}

// step takes one byte of framing.
func (d *ChunkDecoder) step(c byte) fault {
	switch d.state {
	case inSize:
		if v := hexDigit[c]; v != 0 {
			return d.addDigit(v - 1)
		}
		if d.digits == 0 {
			return byteFault(c, faultChunkSize)
		}
		return d.stepLine(c, faultChunkSize)
	case lineLF:
		if c != '\n' {
			return faultBareCR
		}
		return d.endLine()
	case dataCR:
		if c != '\r' {
			return byteFault(c, faultChunkEnd)
		}
		d.state = dataLF
	case dataLF:
		if c != '\n' {
			return faultBareCR
		}
		d.state, d.digits, d.line = inSize, 0, 0
	case finalLF:
		if c != '\n' {
			return faultBareCR
		}
		d.state = chunkEnded
	default:
		return d.stepLine(c, faultChunkExt)
	}
	return faultNone
}

// addDigit appends one hexadecimal digit to the size.
func (d *ChunkDecoder) addDigit(v byte) fault {
	// 16 digits are 64 bits; zeros in front count, or they would be endless.
	if d.digits == 16 {
		return faultChunkOverflow
	}
	d.digits++
	d.line++
	d.left = d.left<<4 | uint64(v)
	if d.left > math.MaxInt64 {
		return faultChunkOverflow
	}
	return faultNone
}

// stepLine takes one byte of a size line after the digits (RFC 9112 section
// 7.1.1): *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] ) CR. BWS
// right after the digits is refused: nobody sends it, and parsers that cut it off
// or not disagree about the size.
func (d *ChunkDecoder) stepLine(c byte, otherwise fault) fault {
	limit := d.limits.LineBytes
	if limit <= 0 {
		limit = DefaultChunkLineBytes
	}
	if d.line++; d.line > limit {
		return faultChunkLine
	}
	next := d.state
	switch d.state {
	case inQuoted:
		switch {
		case c == '"':
			next = afterQuoted
		case c == '\\':
			next = inPair
		case charClass[c]&classQuoted == 0:
			return byteFault(c, otherwise)
		}
	case inPair:
		if charClass[c]&classValue == 0 {
			return byteFault(c, otherwise)
		}
		next = inQuoted
	default:
		next = d.state.after(c)
		if next == chunkFailed {
			return byteFault(c, otherwise)
		}
	}
	d.state = next
	return faultNone
}

// after is the state that follows s, one outside of quotes, at the byte c;
// chunkFailed when c has no place there.
func (s chunkState) after(c byte) chunkState {
	switch {
	case c == '\r':
		if s == inSize || s == inName || s == inValue || s == afterQuoted {
			return lineLF
		}
	case c == ';':
		if s != beforeName && s != beforeValue {
			return beforeName
		}
	case isBlank(c):
		switch s {
		case inSize:
			return chunkFailed
		case inName:
			return afterName
		case inValue, afterQuoted:
			return afterValue
		}
		return s
	case c == '=':
		if s == inName || s == afterName {
			return beforeValue
		}
	case c == '"':
		if s == beforeValue {
			return inQuoted
		}
	case lowerToken[c] != 0:
		switch s {
		case beforeName, inName:
			return inName
		case beforeValue, inValue:
			return inValue
		}
	}
	return chunkFailed
}

// endLine takes the end of a size line: data or the last chunk follow.
func (d *ChunkDecoder) endLine() fault {
	// CRLF of the line and CRLF of the data are framing as well.
	d.excess += int64(d.line) + 4 - chunkAllowance
	if d.excess -= 2 * int64(min(d.left, 1<<40)); d.excess < 0 {
		d.excess = 0
	}
	if d.excess > maxChunkExcess {
		return faultChunkFlood
	}
	d.state = inData
	if d.left == 0 {
		d.state = beforeTrailer
	}
	return faultNone
}

// takeTrailer copies trailer lines from p and parses them at their end.
func (d *ChunkDecoder) takeTrailer(p []byte) (int, fault) {
	limit := d.limits.TrailerBytes
	if limit <= 0 {
		limit = DefaultTrailerBytes
	}
	n := bytes.IndexByte(p, '\n') + 1
	size := n
	if n == 0 {
		size = len(p)
	}
	if size > limit-len(d.trailer) {
		return 0, faultTrailerSize
	}
	d.trailer = append(d.trailer, p[:size]...)
	t := d.trailer
	switch {
	case n == 0:
		return size, faultNone
	case len(t) < 2 || t[len(t)-2] != '\r':
		return 0, faultBareLF
	case len(t) < 4 || t[len(t)-3] != '\n':
		return size, faultNone
	}
	return size, d.endTrailers()
}

// endTrailers parses the collected trailer lines (RFC 9112 section 7.1.2).
func (d *ChunkDecoder) endTrailers() fault {
	limit := d.limits.TrailerFields
	if limit <= 0 {
		limit = DefaultTrailerFields
	}
	fields, _, f := parseFields(d.trailer, 0, d.fields[:0], limit, nil)
	if f == faultFieldCount {
		f = faultTrailerCount
	}
	if f != faultNone {
		return f
	}
	kept := fields[:0]
	for _, t := range fields {
		if !IsForbiddenTrailer(t.Name) {
			kept = append(kept, t)
		}
	}
	d.fields = kept
	d.state = chunkEnded
	return faultNone
}

// byteFault tells why c has no place here.
func byteFault(c byte, otherwise fault) fault {
	switch c {
	case 0:
		return faultNUL
	case '\n':
		return faultBareLF
	}
	return otherwise
}
