package balancer

import (
	"math"
	"net/netip"
)

// sourceConsistent returns the server of a client address by weighted rendezvous
// hashing: each server draws a number from the hash of client and server, and the
// greatest wins. A server that leaves gives away only its own clients, one that
// comes takes only its share. It looks at every server, once per connection, and
// needs no table to be built by Update.
func (s *set) sourceConsistent(addr netip.Addr, skip int) int {
	client := hashAddr(addr)
	best, most := -1, math.Inf(-1)
	for i := range s.active {
		if i == skip {
			continue
		}
		c := &s.active[i]
		// ln(u)/weight with u uniform in (0,1): the greatest belongs to server i with
		// probability weight/total.
		u := (float64(mix(client^c.hash)>>11) + 0.5) / (1 << 53)
		if score := math.Log(u) / float64(c.weight); score > most {
			best, most = i, score
		}
	}
	return best
}
