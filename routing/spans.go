package routing

import (
	"bytes"
	"net/netip"
	"slices"
	"sort"
)

// span is all addresses from first to last, IPv4 mapped into IPv6.
type span struct{ first, last [addrBytes]byte }

// spans are the addresses of prefixes in order, none of them twice.
func spans(prefixes []netip.Prefix) []span {
	list := make([]span, 0, len(prefixes))
	for _, p := range prefixes {
		n := p.Bits()
		if p.Addr().Is4() {
			n += 8 * mappedBytes
		}
		s := span{first: p.Addr().As16(), last: p.Addr().As16()}
		for i := range s.first {
			free := byte(0xff >> min(max(n-8*i, 0), 8)) // bits of the byte beyond the length
			s.first[i] &^= free
			s.last[i] |= free
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b span) int { return bytes.Compare(a.first[:], b.first[:]) })
	kept := list[:0]
	for _, s := range list {
		if n := len(kept); n > 0 && bytes.Compare(s.first[:], kept[n-1].last[:]) <= 0 {
			if bytes.Compare(s.last[:], kept[n-1].last[:]) > 0 {
				kept[n-1].last = s.last
			}
			continue
		}
		kept = append(kept, s)
	}
	return slices.Clip(kept)
}

// within reports whether addr is in one of the spans.
func within(list []span, addr [addrBytes]byte) bool {
	i := sort.Search(len(list), func(i int) bool { return bytes.Compare(list[i].last[:], addr[:]) >= 0 })
	return i < len(list) && bytes.Compare(list[i].first[:], addr[:]) <= 0
}
