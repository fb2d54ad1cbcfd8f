package routing

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// AllowList is a set of addresses, of IPv4 and IPv6 alike. It is immutable and made
// by NewAllowList; any goroutine may read it. An AllowList of nothing allows nobody;
// no filter at all is a nil pointer in Policy.
type AllowList struct {
	ranges []addrRange // sorted, apart from each other
}

// addr128 is an address as a number; IPv4 is mapped into IPv6 (RFC 4291 section 2.5.5.2).
type addr128 struct{ high, low uint64 }

// addrRange is all addresses from first to last.
type addrRange struct{ first, last addr128 }

func number(a netip.Addr) addr128 {
	b := a.As16()
	return addr128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (a addr128) compare(b addr128) int {
	if c := cmp.Compare(a.high, b.high); c != 0 {
		return c
	}
	return cmp.Compare(a.low, b.low)
}

// after is the number that follows a; the last one has none.
func (a addr128) after() (next addr128, ok bool) {
	next = addr128{a.high, a.low + 1}
	if next.low == 0 {
		next.high++
	}
	return next, next != addr128{}
}

// rangeOf is all addresses of a prefix; bits beyond its length do not matter.
func rangeOf(p netip.Prefix) addrRange {
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	first, ones := number(p.Addr()), addr128{^uint64(0), ^uint64(0)}
	if bits >= 64 {
		ones.high, ones.low = 0, ones.low>>(bits-64)
	} else {
		ones.high >>= bits
	}
	return addrRange{
		addr128{first.high &^ ones.high, first.low &^ ones.low},
		addr128{first.high | ones.high, first.low | ones.low},
	}
}

// NewAllowList makes the set of all addresses of prefixes, which must be valid. A
// prefix of IPv6 that covers ::ffff:0:0/96 covers IPv4.
func NewAllowList(prefixes []netip.Prefix) *AllowList {
	all := make([]addrRange, 0, len(prefixes))
	for _, p := range prefixes {
		all = append(all, rangeOf(p))
	}
	slices.SortFunc(all, func(a, b addrRange) int { return a.first.compare(b.first) })
	l := &AllowList{}
	for _, r := range all {
		if n := len(l.ranges); n > 0 {
			last := &l.ranges[n-1]
			if next, ok := last.last.after(); !ok || r.first.compare(next) <= 0 {
				if r.last.compare(last.last) > 0 {
					last.last = r.last
				}
				continue
			}
		}
		l.ranges = append(l.ranges, r)
	}
	l.ranges = slices.Clip(l.ranges)
	return l
}

// Contains reports whether a is in the set. The zero Addr is in none. It takes the
// logarithm of the number of prefixes and allocates nothing.
func (l *AllowList) Contains(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	n := number(a)
	low, high := 0, len(l.ranges)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if l.ranges[mid].last.compare(n) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low < len(l.ranges) && l.ranges[low].first.compare(n) <= 0
}
