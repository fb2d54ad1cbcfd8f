package proxy

import (
	"bytes"

	"turnout/internal/wire/field"
)

// maxHops is how often a request may pass routers of one loop id. Routers in front of routers are a few at most.
const maxHops = 8

// DefaultLoopID is the loop id of a router that is configured with none.
const DefaultLoopID = "turnout"

// A route may lead, by way of its endpoints, to the router itself, and a request there would go round until the router has
// no connection left. CDN-Loop (RFC 8586) exists against that: each intermediary that forwards a request adds its id, nobody removes
// anybody's, and who finds its own there knows. Via (RFC 9110 section 7.6.3) would do as well, but servers see a proxy in it
// and compress nothing, for example.

// hops counts the members of a CDN-Loop value that this router, or one with the same id, added. A member may have parameters
// (RFC 8586 section 2).
func (w *Worker) hops(value []byte) int {
	n := 0
	for rest, more := value, true; more; {
		var member []byte
		member, rest, more = bytes.Cut(rest, constant(","))
		id, _, _ := bytes.Cut(member, constant(";"))
		if string(field.Trim(id)) == string(w.loopID) {
			n++
		}
	}
	return n
}

// mark adds this router's hop, after all that a route can say about the request.
func (w *Worker) mark(h *Head) { h.addField("cdn-loop", w.loopID) }

// Streams and datagrams have no field for a hop, except the TTL of IP. Like a packet router,
// Turnout forwards them with a lower TTL than they arrived with. Address translation and load
// balancers that forward packets keep the TTL. A proxy that ends connections resets it.
const (
	maxTTL   = 64 // higher TTLs of clients count as this; systems begin with 64, 128 or 255
	hopTTL   = 7  // subtracted per hop for maxHops hops; packet routers in between leave fewer
	leastTTL = 4  // of forwarded packets, so that they reach the endpoint
)

// nextTTL returns the TTL of the connection or session to an endpoint. received is the TTL of the
// client's packets, 0 = unknown. ok is false after too many hops.
func nextTTL(received uint8) (ttl uint8, ok bool) {
	if received == 0 || received > maxTTL {
		received = maxTTL
	}
	if received < hopTTL+leastTTL {
		return 0, false
	}
	return received - hopTTL, true
}
