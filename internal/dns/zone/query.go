package zone

import "encoding/binary"

// Types of records and queries (RFC 1035 section 3.2, RFC 3596, RFC 4034, RFC 6891, RFC 8945).
const (
	typeA     = 1
	typeNS    = 2
	typeCNAME = 5
	typeSOA   = 6
	typeHINFO = 13
	typeAAAA  = 28
	typeOPT   = 41
	typeDS    = 43
	typeTSIG  = 250
	TypeIXFR  = 251 // transfer of what has changed (RFC 1995)
	TypeAXFR  = 252 // transfer of a zone (RFC 5936)
	typeANY   = 255
)

const (
	classIN  = 1
	classANY = 255
)

// Rcodes (RFC 1035 section 4.1.1, RFC 6891 section 9).
const (
	rcodeSuccess  = 0
	rcodeFormat   = 1
	rcodeName     = 3
	rcodeNotImpl  = 4
	rcodeRefused  = 5
	rcodeVersion  = 16
	rcodeExtended = 16 // rcodes from here on need EDNS
)

// headerSize is that of a message, in bytes (RFC 1035 section 4.1.1).
const headerSize = 12

// Query is a message that asks something. It is made by Parse, and may be used again for another.
type Query struct {
	Type   uint16
	Signed bool // its last record is TSIG (RFC 8945)

	id       uint16
	bits     byte // opcode and RD, as they stand in the third byte
	class    uint16
	rcode    uint16 // what is wrong with it; rcodeSuccess: nothing
	question []byte // of the message; empty if it could not be read
	edns     bool
	payload  uint16 // bytes that the client takes over UDP, if edns
	do       bool   // DNSSEC OK, which is repeated (RFC 3225 section 3)

	lower  [maxName]byte        // the name in lower case
	size   int                  // of the name
	starts [maxLabels + 1]uint8 // where its labels begin, and the root
	labels int                  // without the root
}

// Parse reads a message, which must not change as long as q is used. False: it is not to be answered, because it is no query or too short to
// tell. A query that is wrong is answered with what is wrong.
func (q *Query) Parse(message []byte) bool {
	if len(message) < headerSize || message[2]&0x80 != 0 {
		return false
	}
	q.id, q.bits = binary.BigEndian.Uint16(message), message[2]&0x79
	q.question, q.size, q.labels = nil, 0, 0
	q.edns, q.do, q.Signed, q.payload, q.Type, q.class = false, false, false, 0, 0, 0
	q.rcode = q.parse(message)
	return true
}

// parse reads as much as there is, so that an answer that says what is wrong has EDNS if the query has.
func (q *Query) parse(message []byte) uint16 {
	rcode, end := uint16(rcodeSuccess), headerSize
	switch binary.BigEndian.Uint16(message[4:]) {
	case 0:
		rcode = rcodeFormat
	case 1:
		if end = q.readName(message); end == 0 || end+4 > len(message) {
			return rcodeFormat
		}
		q.Type, q.class = binary.BigEndian.Uint16(message[end:]), binary.BigEndian.Uint16(message[end+2:])
		end += 4
		q.question = message[headerSize:end]
	default:
		return rcodeFormat
	}
	answers, authorities := int(binary.BigEndian.Uint16(message[6:])), int(binary.BigEndian.Uint16(message[8:]))
	wrong := q.readRecords(message, end, answers+authorities, int(binary.BigEndian.Uint16(message[10:])))
	switch {
	case q.bits&0x78 != 0: // opcode
		return rcodeNotImpl
	case rcode != rcodeSuccess:
		return rcode
	}
	return wrong
}

// readName reads the name in the question, and returns where it ends; 0: it is none. Nothing stands before it that a pointer could lead to.
func (q *Query) readName(message []byte) int {
	at := headerSize
	for {
		if at >= len(message) {
			return 0
		}
		length := int(message[at])
		start := at - headerSize
		if length > maxLabel || start+1+length > maxName || at+1+length > len(message) {
			return 0
		}
		q.starts[q.labels] = uint8(start)
		q.lower[start] = byte(length)
		if length == 0 {
			q.size = start + 1
			return at + 1
		}
		for i, c := range message[at+1 : at+1+length] {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			q.lower[start+1+i] = c
		}
		q.labels++
		at += 1 + length
	}
}

// readRecords looks for OPT and TSIG in the records after the question, of which the last few are additional.
func (q *Query) readRecords(message []byte, at, others, additional int) uint16 {
	rcode := uint16(rcodeSuccess)
	for i := range others + additional {
		start := at
		if at = skipName(message, at); at == 0 || at+10 > len(message) {
			return rcodeFormat
		}
		kind, size := binary.BigEndian.Uint16(message[at:]), int(binary.BigEndian.Uint16(message[at+8:]))
		end := at + 10 + size
		switch {
		case end > len(message) || q.Signed: // nothing follows TSIG (RFC 8945 section 5.2)
			return rcodeFormat
		case kind == typeTSIG:
			if i < others {
				return rcodeFormat
			}
			q.Signed = true
		case kind == typeOPT:
			// One, additional, of the root (RFC 6891 section 6.1.1).
			if q.edns || i < others || at != start+1 {
				return rcodeFormat
			}
			q.edns, q.payload, q.do = true, binary.BigEndian.Uint16(message[at+2:]), message[at+6]&0x80 != 0
			if message[at+5] != 0 {
				rcode = rcodeVersion
			}
		}
		at = end
	}
	if at != len(message) {
		return rcodeFormat
	}
	return rcode
}

// skipName returns where a name ends, 0 if it is none.
func skipName(message []byte, at int) int {
	for at < len(message) {
		switch length := int(message[at]); {
		case length == 0:
			return at + 1
		case length >= 0xc0: // a pointer, which ends it
			if at+2 > len(message) {
				return 0
			}
			return at + 2
		case length > maxLabel:
			return 0
		default:
			at += 1 + length
		}
	}
	return 0
}

// Transfer reports whether q asks for a transfer of a zone.
func (q *Query) Transfer() bool {
	return q.rcode == rcodeSuccess && q.class == classIN && (q.Type == TypeAXFR || q.Type == TypeIXFR)
}

// Limit is how many bytes an answer over UDP may have when the server sends at most most: what the client takes, at least 512 (RFC 1035
// section 4.2.1, RFC 6891 section 6.2.5).
func (q *Query) Limit(most int) int {
	if !q.edns {
		return min(most, 512)
	}
	return min(most, max(int(q.payload), 512))
}
