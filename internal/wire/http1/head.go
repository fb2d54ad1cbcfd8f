package http1

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"turnout/internal/wire/field"
)

// SkipEmptyLines is the number of bytes of empty lines (CRLF) that p starts with.
// A server skips them in front of a request line (RFC 9112 section 2.2).
func SkipEmptyLines(p []byte) int {
	n := 0
	for len(p) >= n+2 && p[n] == '\r' && p[n+1] == '\n' {
		n += 2
	}
	return n
}

// FindHeadEnd looks for the end of the head that p starts with. from is the number
// of bytes of p an earlier call has seen. n is the length of the head including
// its empty line, or 0 while it is incomplete.
//
// A bare LF is an error at once; a first byte that begins no message, NUL and bare
// CR are errors as soon as seen in an incomplete head, so that nobody waits for
// the end of what cannot become a message. A complete head is checked by the
// parser. An incomplete or complete head over lim.HeadBytes is 431, or 414 when
// most of that went to its first line, whether or not the line has ended. The status of the error is that for a request: a
// response is 502 whatever it says.
func FindHeadEnd(p []byte, from int, lim Limits) (n int, err error) {
	n, f := findHeadEnd(p, from, lim)
	return n, f.request()
}

func findHeadEnd(p []byte, from int, lim Limits) (int, fault) {
	limit := lim.HeadBytes
	if limit <= 0 {
		limit = DefaultHeadBytes
	}
	if from == 0 && len(p) > 0 && lowerToken[p[0]] == 0 {
		if f := badStart(p); f != faultNone {
			return 0, f
		}
	}
	for i := from; ; i++ {
		lf := bytes.IndexByte(p[i:], '\n')
		if lf < 0 {
			break
		}
		i += lf
		if i == 0 || p[i-1] != '\r' {
			return 0, faultBareLF
		}
		if i == 1 {
			return 0, faultEmptyLine
		}
		if p[i-2] != '\n' {
			continue
		}
		if i >= limit {
			return 0, tooLarge(p, limit)
		}
		return i + 1, faultNone
	}
	if bytes.IndexByte(p[from:], 0) >= 0 {
		return 0, faultNUL
	}
	if hasBareCR(p[max(from-1, 0):]) {
		return 0, faultBareCR
	}
	if len(p) >= limit {
		return 0, tooLarge(p, limit)
	}
	return 0, faultNone
}

// tooLarge says what is too large about a head of more than limit bytes: its target (RFC 9110 section 15.5.15) if the first line
// takes more than half of them, else its fields. It does not depend on how much has arrived.
func tooLarge(p []byte, limit int) fault {
	if bytes.IndexByte(p[:min(len(p), limit/2)], '\n') < 0 {
		return faultTargetSize
	}
	return faultHeadSize
}

// badStart judges a first byte that is no token character.
func badStart(p []byte) fault {
	switch p[0] {
	case '\n':
		return faultBareLF
	case 0:
		return faultNUL
	case ' ', '\t':
		return faultLeadingSpace
	case '\r':
		if len(p) == 1 {
			return faultNone // perhaps half of an empty line
		}
		if p[1] == '\n' {
			return faultEmptyLine
		}
		return faultBareCR
	}
	return faultMethod
}

// hasBareCR says whether a CR in p is followed by anything but LF. A CR at the
// very end is not judged yet.
func hasBareCR(p []byte) bool {
	for {
		cr := bytes.IndexByte(p, '\r')
		if cr < 0 || cr+1 == len(p) {
			return false
		}
		if p[cr+1] != '\n' {
			return true
		}
		p = p[cr+2:]
	}
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// controlsIn has the high bit set for bytes of w below 0x20 and for 0x7f. Of two
// adjacent ones the more significant may be reported wrongly; the least significant
// report is always right.
func controlsIn(w uint64) uint64 {
	del := w ^ 0x7f*lowBits
	return ((w-0x20*lowBits)&^w | (del-lowBits)&^del) & highBits
}

// textEnd is the index of the first byte of b from i on that is a control byte
// other than HTAB, or len(b).
func textEnd(b []byte, i int) int {
	for {
		for i+8 <= len(b) {
			if m := controlsIn(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		for i < len(b) && charClass[b[i]]&classValue != 0 {
			// A tab, or the last bytes of b.
			tab := b[i] == '\t'
			i++
			if tab {
				break
			}
		}
		if i >= len(b) || charClass[b[i]]&classValue == 0 {
			return i
		}
	}
}

// parseFields parses field lines and the empty line after them from b[i:] and
// appends them to fields. Names are made lower-case in place. k learns the fields
// that frame the message; a field it refuses to keep is not appended. k is nil for
// trailers, which frame nothing. It returns the index after the empty line. A
// parser: one loop over the bytes of a line.
func parseFields(b []byte, i int, fields []field.Field, limit int, k *known) ([]field.Field, int, fault) {
	for lines := 0; ; lines++ {
		if i >= len(b) {
			return fields, i, faultIncomplete
		}
		if b[i] == '\r' {
			if i+1 >= len(b) || b[i+1] != '\n' {
				return fields, i, valueFault(b, i)
			}
			return fields, i + 2, faultNone
		}
		if lines == limit {
			return fields, i, faultFieldCount
		}
		start := i
		for i < len(b) {
			l := lowerToken[b[i]]
			if l == 0 {
				break
			}
			b[i] = l
			i++
		}
		if i == start || i == len(b) || b[i] != ':' {
			f := nameFault(b, start, i)
			if f == faultObsFold && lines == 0 {
				f = faultLeadingSpace
			}
			return fields, i, f
		}
		name := b[start:i:i]
		i++
		for i < len(b) && isBlank(b[i]) {
			i++
		}
		start = i
		i = textEnd(b, i)
		if i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
			return fields, i, valueFault(b, i)
		}
		end := i
		for end > start && isBlank(b[end-1]) {
			end--
		}
		i += 2
		value := b[start:end:end]
		if k != nil && knownLengths>>uint(len(name)&63)&1 != 0 {
			keep, f := k.note(name, &value, len(fields))
			if f != faultNone {
				return fields, i, f
			}
			if !keep {
				continue
			}
		}
		fields = append(fields, field.Field{Name: name, Value: value})
	}
}

// nameFault tells why b[start:i], ended by b[i], is no field name.
func nameFault(b []byte, start, i int) fault {
	if i == len(b) {
		return faultIncomplete
	}
	switch c := b[i]; {
	case c == 0:
		return faultNUL
	case c == '\n':
		return faultBareLF
	case c == '\r' && i+1 < len(b) && b[i+1] != '\n':
		return faultBareCR
	case c == '\r':
		return faultNoColon
	case isBlank(c) && i == start:
		return faultObsFold
	case isBlank(c):
		for i < len(b) && isBlank(b[i]) {
			i++
		}
		if i < len(b) && b[i] == ':' {
			return faultNameSpace
		}
	}
	return faultName
}

// valueFault tells why text may not end at b[i].
func valueFault(b []byte, i int) fault {
	if i >= len(b) || b[i] == '\r' && i+1 == len(b) {
		return faultIncomplete
	}
	switch b[i] {
	case 0:
		return faultNUL
	case '\n':
		return faultBareLF
	case '\r':
		return faultBareCR
	}
	return faultValueChar
}
