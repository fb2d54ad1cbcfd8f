package routing

import (
	"math/bits"
	"net/netip"
	"unsafe"
)

// AllowList is a set of addresses, of IPv4 and IPv6 alike. It is immutable and made
// by NewAllowList; any goroutine may read it. An AllowList of nothing allows nobody;
// no filter at all is a nil pointer in Policy.
//
// It is a trie of the bytes of addresses, IPv4 mapped into IPv6 (RFC 4291 section
// 2.5.5.2): a lookup takes a step per byte, however many prefixes there are. Where prefixes have so little in common that the trie
// would be much larger than they are, it is a sorted list: who writes an annotation must not get a hundred times its size of memory.
type AllowList struct {
	nodes []trieNode // the first is the root; children of a node follow each other
	ends  []byteSet  // nodes at the last byte, which have no children
	v4    trieStep   // where the lookup of an IPv4 address begins, after mappedBytes
	spans []span     // instead of the trie; nil = there is one
}

// A trie may have trieBase bytes, and trieEach for each prefix, and no more than trieMost.
const (
	trieBase = 8 << 10
	trieEach = 64
	trieMost = 1 << 20
)

// byteSet is a set of values of a byte.
type byteSet [4]uint64

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }
func (s *byteSet) addByte(b byte)  { s[b>>6] |= 1 << (b & 63) }

// rank is how many values less than b are in the set.
func (s *byteSet) rank(b byte) int {
	n := bits.OnesCount64(s[b>>6] & (1<<(b&63) - 1))
	for _, word := range s[:b>>6] {
		n += bits.OnesCount64(word)
	}
	return n
}

// trieNode is the addresses that begin with the same bytes, by their next one.
type trieNode struct {
	all   byteSet // all addresses with this byte are in the list
	some  byteSet // some may be: there is a child
	first uint32  // place of the first child, in ends when this is the byte before the last
}

// What a trie is made of, in bytes.
const (
	nodeSize = int(unsafe.Sizeof(trieNode{}))
	endSize  = int(unsafe.Sizeof(byteSet{}))
)

// trieStep is how far a lookup has come.
type trieStep struct {
	node      uint32
	known, in bool // in is the answer
}

const (
	addrBytes   = 16
	mappedBytes = 12 // of an IPv4 address, in front of its own
)

// NewAllowList makes the set of all addresses of prefixes, which must be valid. Bits beyond the
// length of a prefix do not matter. A prefix of IPv6 that covers ::ffff:0:0/96 covers IPv4.
func NewAllowList(prefixes []netip.Prefix) *AllowList {
	root, left := &growing{}, min(trieBase+trieEach*len(prefixes), trieMost)
	for _, p := range prefixes {
		n := p.Bits()
		if p.Addr().Is4() {
			n += 8 * mappedBytes
		}
		if left -= root.addPrefix(p.Addr().As16(), n); left < 0 {
			return &AllowList{spans: spans(prefixes)}
		}
	}
	l := &AllowList{nodes: make([]trieNode, 1)}
	l.pack(0, root, 0)
	mapped := netip.AddrFrom4([4]byte{}).As16()
	l.v4 = l.walk(trieStep{}, mapped[:mappedBytes])
	return l
}

// growing is a trieNode while the list is made.
type growing struct {
	all   byteSet
	child map[byte]*growing
}

// addPrefix puts the addresses into the set that have their first n bits in common with addr. It returns how many bytes of the trie that takes.
func (g *growing) addPrefix(addr [addrBytes]byte, n int) (grown int) {
	for depth := 0; ; depth++ {
		b := addr[depth]
		if left := n - 8*depth; left <= 8 {
			free := byte(1<<(8-left) - 1)
			for v := int(b &^ free); v <= int(b|free); v++ {
				g.all.addByte(byte(v))
				delete(g.child, byte(v))
			}
			return grown
		}
		if g.all.has(b) {
			return grown // all that begin so are in already
		}
		next := g.child[b]
		if next == nil {
			if g.child == nil {
				g.child = make(map[byte]*growing)
			}
			next = &growing{}
			g.child[b] = next
			if grown += nodeSize; depth == addrBytes-2 {
				grown += endSize - nodeSize
			}
		}
		g = next
	}
}

// pack writes a node and what is below it to its place.
func (l *AllowList) pack(at uint32, g *growing, depth int) {
	node := trieNode{all: g.all}
	for b := range g.child {
		node.some.addByte(b)
	}
	last := depth == addrBytes-2
	if last {
		node.first = uint32(len(l.ends))
	} else {
		node.first = uint32(len(l.nodes))
		l.nodes = append(l.nodes, make([]trieNode, len(g.child))...)
	}
	l.nodes[at] = node
	child := node.first
	for v := range 256 {
		next := g.child[byte(v)]
		switch {
		case next == nil:
			continue
		case last:
			l.ends = append(l.ends, next.all)
		default:
			l.pack(child, next, depth+1)
		}
		child++
	}
}

// walk goes on from a step along some more bytes of an address, but not the last one.
func (l *AllowList) walk(from trieStep, path []byte) trieStep {
	for _, b := range path {
		if from.known {
			return from
		}
		node := &l.nodes[from.node]
		switch {
		case node.all.has(b):
			return trieStep{known: true, in: true}
		case !node.some.has(b):
			return trieStep{known: true}
		}
		from.node = node.first + uint32(node.some.rank(b))
	}
	return from
}

// Contains reports whether a is in the set. The zero Addr is in none. It takes a step per byte of the
// address at most, or, in a sorted list, as many as the number of prefixes has bits, and allocates nothing.
func (l *AllowList) Contains(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	addr, from, step := a.As16(), 0, trieStep{}
	if l.spans != nil {
		return within(l.spans, addr)
	}
	if a.Is4() || a.Is4In6() {
		from, step = mappedBytes, l.v4
	}
	if step = l.walk(step, addr[from:addrBytes-1]); step.known {
		return step.in
	}
	return l.ends[step.node].has(addr[addrBytes-1])
}
