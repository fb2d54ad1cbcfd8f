package zone

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Set is the zones of a server, made by NewSet. It never changes, and any goroutine may use it.
type Set struct {
	zones map[wireName]*Zone
	all   []*Zone
	most  int // labels of an origin
}

// NewSet makes a set of zones, each of another origin.
func NewSet(zones ...*Zone) (*Set, error) {
	s := &Set{zones: make(map[wireName]*Zone, len(zones)), all: slices.Clone(zones)}
	for _, z := range zones {
		if s.zones[z.origin] != nil {
			return nil, fmt.Errorf("cannot make a set of zones: two are %s", z.origin)
		}
		s.zones[z.origin] = z
		s.most = max(s.most, z.origin.labels())
	}
	slices.SortFunc(s.all, func(a, b *Zone) int { return strings.Compare(a.Origin(), b.Origin()) })
	return s, nil
}

// All are the zones in the order of their origins. The slice must not be changed.
func (s *Set) All() []*Zone { return s.all }

// Zone returns the zone of an origin, nil if there is none.
func (s *Set) Zone(origin string) *Zone {
	name, err := pack(origin)
	if err != nil {
		return nil
	}
	return s.zones[name]
}

// Payload is the size of messages over UDP that is said to be taken and is sent at most: what passes nearly every network in one piece (DNS
// flag day 2020).
const Payload = 1232

// optSize is the size of an OPT record without options (RFC 6891 section 6.1.2).
const optSize = 11

// mostAliases is how many aliases of one zone are followed in an answer.
const mostAliases = 8

// Answer appends the answer to q to dst, of at most limit bytes, at least 512, and returns it. Addresses begin with the turnth, counted round. It allocates
// only what dst grows by.
func (s *Set) Answer(dst []byte, q *Query, limit int, turn uint32) []byte {
	m := message{b: dst, base: len(dst), limit: limit}
	m.begin(q)
	if m.rcode == rcodeSuccess {
		s.resolve(&m, q, turn)
	}
	m.end(q)
	return m.b
}

// Truncated appends an answer to q that has nothing but that it is truncated, so that the client asks over TCP.
func Truncated(dst []byte, q *Query) []byte { return short(dst, q, q.rcode, true) }

// Refused appends an answer to q that refuses it.
func Refused(dst []byte, q *Query) []byte { return short(dst, q, rcodeRefused, false) }

func short(dst []byte, q *Query, rcode uint16, truncated bool) []byte {
	m := message{b: dst, base: len(dst), limit: Payload}
	m.begin(q)
	m.rcode, m.truncated = rcode, truncated
	m.end(q)
	return m.b
}

// resolve answers a query that is in order (RFC 1034 section 4.3.2).
func (s *Set) resolve(m *message, q *Query, turn uint32) {
	if q.class != classIN {
		m.rcode = rcodeRefused
		return
	}
	if q.Type == typeOPT || q.Type >= 128 && q.Type < typeANY { // others than ANY are no types of data (RFC 6895 section 3.1)
		m.rcode = rcodeNotImpl
		if q.Transfer() {
			m.rcode = rcodeRefused // those are not for here
		}
		return
	}
	z, at := s.find(q)
	if z == nil {
		m.rcode = rcodeRefused
		return
	}
	z.answer(m, q, at, turn)
}

// Find returns the zone that the name in q is in, nil if there is none. With exact it has to be its origin.
func (s *Set) Find(q *Query, exact bool) *Zone {
	z, at := s.find(q)
	if exact && at != 0 {
		return nil
	}
	return z
}

// find returns the zone that q asks about, and which label its origin begins with.
func (s *Set) find(q *Query) (*Zone, int) {
	for i := max(0, q.labels-s.most); i <= q.labels && q.size > 0; i++ {
		z := s.zones[wireName(q.lower[q.starts[i]:q.size])]
		if z == nil {
			continue
		}
		if i == 0 && q.Type == typeDS { // which are the parent's (RFC 4035 section 3.1.4.1)
			for j := 1; j <= q.labels; j++ {
				if parent := s.zones[wireName(q.lower[q.starts[j]:q.size])]; parent != nil {
					return parent, j
				}
			}
		}
		return z, i
	}
	return nil, 0
}

// answer answers a query whose name is in z: the origin begins with label at.
func (z *Zone) answer(m *message, q *Query, at int, turn uint32) {
	n := z.apex
	for at > 0 {
		next := z.nodes[wireName(q.lower[q.starts[at-1]:q.size])]
		if next == nil {
			break
		}
		at--
		if n = next; n.cut {
			break
		}
	}
	switch {
	case n.cut && (at > 0 || q.Type != typeDS):
		m.refer(n.ns, pointer(headerSize+int(q.starts[at])))
		return
	case at > 0:
		n = n.wild
	}
	m.authoritative = true
	if !z.tell(m, n, q.Type, turn) {
		m.add(1, z.soa, 0, 1, pointer(headerSize+q.size-len(z.origin))) // RFC 2308 section 2
	}
}

// pointer is a pointer to where a name stands in a message.
func pointer(at int) uint16 { return 0xc000 | uint16(at) }

// message is an answer while it is written.
type message struct {
	b     []byte
	base  int // where it begins in b
	limit int

	counts        [3]uint16 // answer, authority, additional
	rcode         uint16
	authoritative bool
	truncated     bool
}

// begin writes header and question.
func (m *message) begin(q *Query) {
	m.b = append(m.b, byte(q.id>>8), byte(q.id), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	m.b = append(m.b, q.question...)
	if q.edns {
		m.limit -= optSize
	}
	m.rcode = q.rcode
}

// end writes OPT, and completes the header.
func (m *message) end(q *Query) {
	if m.truncated {
		// Nobody may use what is there (RFC 2181 section 9), and who forged the address of the query should not have it sent.
		m.b, m.counts = m.b[:m.base+headerSize+len(q.question)], [3]uint16{}
	}
	if q.edns {
		do := byte(0)
		if q.do {
			do = 0x80
		}
		m.b = append(m.b, 0, 0, typeOPT, Payload>>8, Payload&0xff, byte(m.rcode>>4), 0, do, 0, 0, 0)
		m.counts[2]++
	}
	h := m.b[m.base:]
	h[2] = 0x80 | q.bits
	if m.authoritative {
		h[2] |= 0x04
	}
	if m.truncated {
		h[2] |= 0x02
	}
	if h[3] = byte(m.rcode & 15); m.rcode >= rcodeExtended && !q.edns {
		h[3] = rcodeFormat
	}
	if len(q.question) > 0 {
		h[5] = 1
	}
	for i, count := range m.counts {
		binary.BigEndian.PutUint16(h[6+2*i:], count)
	}
}

// fits reports whether there is room for so many bytes.
func (m *message) fits(size int) bool { return !m.truncated && len(m.b)-m.base+size <= m.limit }

// add writes count records of one name, beginning with the one at byte from. If they do not fit, the answer is truncated.
func (m *message) add(section int, records []byte, from int, count uint16, owner uint16) {
	if !m.fits(len(records)) {
		m.truncated = true
		return
	}
	start := len(m.b)
	m.b = append(append(m.b, records[from:]...), records[:from]...)
	m.counts[section] += count
	if owner == toQuestion {
		return
	}
	for at := start; at < len(m.b); { // the names are pointers that lead elsewhere
		binary.BigEndian.PutUint16(m.b[at:], owner)
		at += recordHead + int(binary.BigEndian.Uint16(m.b[at+recordHead-2:]))
	}
}

// tell writes what a node has of a type. False: nothing. A nil node is a name that does not exist.
func (z *Zone) tell(m *message, n *node, kind uint16, turn uint32) bool {
	owner := uint16(toQuestion)
	for hops := 0; n != nil && n.alias != nil && kind != typeCNAME && kind != typeANY; hops++ {
		if hops == mostAliases || m.truncated {
			return true
		}
		at := len(m.b) - m.base + recordHead
		m.add(0, n.alias, 0, 1, owner)
		if n.to == nil {
			return true // others know where it leads
		}
		n, owner = n.to, pointer(at)
	}
	if n == nil || n == nowhere {
		m.rcode = rcodeName
		return false
	}
	return z.data(m, n, kind, owner, turn)
}

// data writes what a node itself has of a type.
func (z *Zone) data(m *message, n *node, kind, owner uint16, turn uint32) bool {
	switch {
	case n.alias != nil: // which is asked for
		m.add(0, n.alias, 0, 1, owner)
	case kind == typeA && n.a != nil:
		m.rotated(n.a, recordHead+4, owner, turn)
	case kind == typeAAAA && n.aaaa != nil:
		m.rotated(n.aaaa, recordHead+16, owner, turn)
	case kind == typeNS && n.ns != nil:
		m.add(0, n.ns.records, 0, n.ns.count, owner)
		m.addresses(n.ns)
	case kind == typeSOA && n == z.apex:
		m.add(0, z.soa, 0, 1, owner)
	case kind == typeANY && (n.a != nil || n.aaaa != nil || n.ns != nil):
		m.add(0, minimal, 0, 1, owner)
	default:
		return false
	}
	return true
}

// minimal answers queries of type ANY: a HINFO record "RFC8482", "" (RFC 8482 section 4.2), for an hour.
var minimal = []byte("\xc0\x0c\x00\x0d\x00\x01\x00\x00\x0e\x10\x00\x09\x07RFC8482\x00")

// rotated writes records of one size.
func (m *message) rotated(records []byte, size int, owner uint16, turn uint32) {
	count := uint32(len(records) / size)
	m.add(0, records, int(turn%count)*size, uint16(count), owner)
}

// addresses writes those of name servers, if they fit.
func (m *message) addresses(ns *nameServers) bool {
	if !m.fits(len(ns.addresses)) {
		return false
	}
	m.b = append(m.b, ns.addresses...)
	m.counts[2] += ns.addressCount
	return true
}

// refer writes which servers answer for a name. Their addresses have to be there (RFC 9471 section 2.1).
func (m *message) refer(ns *nameServers, owner uint16) {
	m.add(1, ns.records, 0, ns.count, owner)
	m.truncated = !m.addresses(ns)
}
