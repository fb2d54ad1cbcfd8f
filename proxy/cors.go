package proxy

import (
	"turnout/internal/wire/field"
	"turnout/routing/cors"
)

// preflight answers a request that asks what pages of another origin may do; false: it is none. Of other requests it keeps where they are from.
func (ex *Exchange) preflight(r *cors.Rule) bool {
	h := ex.req
	ex.origin = field.Get(h.Fields, "origin")
	if !cors.Preflight(h.Method, h.Fields) {
		return false
	}
	out := &ex.local.head
	*out = Head{Status: 200, Minor: 1, Fields: r.Permit(out.Fields[:0], h.Fields)}
	ex.reply(ReasonPreflight, nil)
	return true
}
