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
