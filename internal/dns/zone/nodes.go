package zone

import (
	"encoding/binary"
	"slices"
)

// node is a name that exists, with its records as they stand in answers.
type node struct {
	a, aaaa []byte // records of one size each
	alias   []byte // one CNAME record
	to      *node  // what alias leads to; nil = it is not in this zone
	ns      *nameServers
	cut     bool
	wild    *node // the child '*'; nil = there is none
}

// nameServers are NS records, and records of addresses with whole names.
type nameServers struct {
	records      []byte
	count        uint16
	addresses    []byte
	addressCount uint16
}

// nowhere is where an alias leads that should be in its zone and is not.
var nowhere = &node{}

// build makes nodes of records.
func (z *Zone) build() {
	z.soa = z.packSOA()
	z.nodes = make(map[wireName]*node, len(z.records))
	z.apex = z.pack(z.records[z.origin])
	z.apex.ns = z.packServers(z.servers, z.origin)
	z.nodes[z.origin] = z.apex
	leaves := map[*records]*node{} // of names without children
	for _, name := range z.names {
		r := z.records[name]
		if leaves[r] == nil {
			leaves[r] = z.pack(r)
		}
		z.nodes[name] = leaves[r]
	}
	z.fillGaps()
	for r, n := range leaves {
		if r.target != "" {
			n.to = z.resolve(r.target)
		}
	}
	for _, n := range z.nodes { // those that are copies of leaves
		if n.alias != nil && n.to == nil {
			n.to = z.resolve(wireName(n.alias[recordHead:]))
		}
	}
}

// fillGaps makes nodes of names that exist because others stand below them (RFC 4592 section 2.2.2), and tells each of its wildcard.
func (z *Zone) fillGaps() {
	for _, name := range z.names {
		for above := name; above != z.origin; {
			above = above.parent()
			if z.nodes[above] != nil {
				break
			}
			z.nodes[above] = &node{}
		}
		if !name.isWildcard() {
			continue
		}
		wild := z.nodes[name]
		above := z.nodes[name.parent()]
		if r := z.records[name.parent()]; r != nil && above != z.apex { // a leaf is shared with others
			own := *above
			above = &own
			z.nodes[name.parent()] = above
		}
		above.wild = wild
	}
}

// resolve returns the node that answers for a name, nil if it is not of this zone.
func (z *Zone) resolve(name wireName) *node {
	if !name.within(z.origin) {
		return nil
	}
	var path []wireName // from name up to the origin, without it
	for n := name; n != z.origin; n = n.parent() {
		path = append(path, n)
	}
	at := z.apex
	for _, n := range slices.Backward(path) {
		next := z.nodes[n]
		if next == nil {
			if at = at.wild; at == nil {
				return nowhere
			}
			return at
		}
		if at = next; at.cut {
			return nil
		}
	}
	return at
}

// recordHead is the size of what stands in a record before its data, when its name is a pointer: name, type, class, TTL, length.
const recordHead = 12

// toQuestion is a pointer to the name in the question (RFC 1035 section 4.1.4).
const toQuestion = 0xc000 | headerSize

// appendHead begins a record whose name is toQuestion.
func appendHead(b []byte, kind uint16, ttl uint32, size int) []byte {
	b = binary.BigEndian.AppendUint16(b, toQuestion)
	return appendRest(b, kind, ttl, size)
}

func appendRest(b []byte, kind uint16, ttl uint32, size int) []byte {
	b = binary.BigEndian.AppendUint16(b, kind)
	b = binary.BigEndian.AppendUint16(b, classIN)
	b = binary.BigEndian.AppendUint32(b, ttl)
	return binary.BigEndian.AppendUint16(b, uint16(size))
}

// pack makes a node of records.
func (z *Zone) pack(r *records) *node {
	n, ttl := &node{}, z.ttl(r)
	for _, a := range r.v4 {
		n.a = append(appendHead(n.a, typeA, ttl, 4), a.AsSlice()...)
	}
	for _, a := range r.v6 {
		n.aaaa = append(appendHead(n.aaaa, typeAAAA, ttl, 16), a.AsSlice()...)
	}
	if r.target != "" {
		n.alias = append(appendHead(nil, typeCNAME, ttl, len(r.target)), r.target...)
	}
	if r.cut != nil {
		n.cut, n.ns = true, z.packServers(r.cut, z.origin)
	}
	return n
}

// packServers makes NS records, and records of the addresses of servers within the zone.
func (z *Zone) packServers(list []server, within wireName) *nameServers {
	n := &nameServers{count: uint16(len(list))}
	for _, s := range list {
		n.records = append(appendHead(n.records, typeNS, z.spec.ServerTTL, len(s.name)), s.name...)
		if !s.name.within(within) {
			continue
		}
		for _, a := range s.v4 {
			n.addresses = append(n.addresses, s.name...)
			n.addresses = append(appendRest(n.addresses, typeA, z.spec.ServerTTL, 4), a.AsSlice()...)
		}
		for _, a := range s.v6 {
			n.addresses = append(n.addresses, s.name...)
			n.addresses = append(appendRest(n.addresses, typeAAAA, z.spec.ServerTTL, 16), a.AsSlice()...)
		}
		n.addressCount += uint16(len(s.v4) + len(s.v6))
	}
	return n
}

// packSOA makes the SOA record (RFC 1035 section 3.3.13). Its TTL is that of negative answers (RFC 2308 section 3).
func (z *Zone) packSOA() []byte {
	b := appendHead(nil, typeSOA, z.spec.NegativeTTL, len(z.primary)+len(z.mailbox)+20)
	b = append(append(b, z.primary...), z.mailbox...)
	for _, n := range []uint32{z.serial, z.spec.Refresh, z.spec.Retry, z.spec.Expire, z.spec.NegativeTTL} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}
