package balancer

import (
	"encoding/binary"
	"net/netip"
)

// source returns the server of a client address: a hash of the address modulo the
// total weight. When the set changes, most clients move. If the server is skip, the
// next one is taken.
func (s *set) source(addr netip.Addr, skip int) int {
	i := s.at(uint32(hashAddr(addr) % uint64(s.total)))
	if i == skip {
		i = (i + 1) % len(s.active)
	}
	return i
}

// hashAddr hashes the address of a client. It has no secret: every replica of the
// router and every restart must send a client to the same server. A client that
// knows it can only choose its own server, which an address does anyway. An IPv4
// address and its IPv4-mapped IPv6 form are equal; a zone is ignored.
func hashAddr(addr netip.Addr) uint64 {
	b := addr.As16()
	return mix(mix(binary.BigEndian.Uint64(b[:8])) ^ binary.BigEndian.Uint64(b[8:]))
}

// hashString is FNV-1a with a final mix, the same in every process.
func hashString(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

// mix spreads every bit over all bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
