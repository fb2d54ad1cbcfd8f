package proxy

import (
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing/cors"
)

// preflight responds to a CORS preflight and returns true. For another request it keeps the origin
// for the response and returns false.
func (ex *Exchange) preflight() bool {
	h := ex.req
	ex.work.Charge(3 * work.Fields(len(h.Fields)))
	ex.origin = field.Get(h.Fields, "origin")
	if !cors.Preflight(h.Method, h.Fields) {
		return false
	}
	out := &ex.local.head
	*out = Head{Status: 200, Minor: 1, Fields: out.Fields[:0]} // localFields adds the CORS fields
	ex.reply(ReasonPreflight, nil)
	return true
}
