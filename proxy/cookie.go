package proxy

import (
	"bytes"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// takeCookie removes every pair called name from a Cookie value (RFC 6265 section
// 5.4) and returns the first one's value. The other pairs keep their order; rest
// is the given value itself when nothing was found.
func (ex *Exchange) takeCookie(v []byte, name string) (rest, value []byte, found bool) {
	ex.work.Charge(work.Text(len(v)))
	for left := v; len(left) > 0 && !found; {
		var pair []byte
		pair, left = field.NextCookie(left)
		value, found = field.CookieValue(pair, name)
	}
	if !found {
		return v, nil, false
	}
	ex.work.Charge(work.Text(len(v)))
	b := ex.scratch.Begin(len(v))
	start := len(b)
	for left := v; len(left) > 0; {
		var pair []byte
		pair, left = field.NextCookie(left)
		if _, named := field.CookieValue(pair, name); named || len(pair) == 0 {
			continue
		}
		if len(b) > start {
			b = append(b, "; "...)
		}
		b = append(b, pair...)
	}
	return ex.scratch.End(b), value, true
}

// dropCookie removes the Set-Cookie fields (RFC 6265 section 5.2) that set a cookie called name: an application that sets the
// sticky cookie of its route, copied from a client most often, would end the stickiness of its clients.
func dropCookie(fields []Field, name string) []Field {
	kept := fields[:0]
	for _, f := range fields {
		if string(f.Name) == "set-cookie" {
			pair, _, _ := bytes.Cut(f.Value, constant(";"))
			if set, _, ok := bytes.Cut(pair, constant("=")); ok && string(field.Trim(set)) == name {
				continue
			}
		}
		kept = append(kept, f)
	}
	return kept
}
