package proxy

import (
	"bytes"

	"turnout/internal/wire/field"
)

// takeCookie removes every pair called name from a Cookie value (RFC 6265 section
// 5.4) and returns the first one's value. The other pairs keep their order; rest
// is the given value itself when nothing was found.
func (ex *Exchange) takeCookie(v []byte, name string) (rest, value []byte, found bool) {
	if !hasCookie(v, name) {
		return v, nil, false
	}
	m, whole := &ex.scratch, v
	b := m.Begin(len(v))
	first := true
	for len(v) > 0 {
		pair := v
		for i, c := range v {
			if c == ';' {
				pair = v[:i]
				break
			}
		}
		v = v[min(len(pair)+1, len(v)):]
		pair = field.Trim(pair)
		if val, ok := cookieNamed(pair, name); ok {
			if !found {
				found, value = true, val
			}
			continue
		}
		if len(pair) == 0 {
			continue
		}
		if !first {
			b = append(b, "; "...)
		}
		first = false
		b = append(b, pair...)
	}
	if !found {
		return whole, nil, false
	}
	return m.End(b), value, true
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

func cookieNamed(pair []byte, name string) ([]byte, bool) {
	if len(pair) <= len(name) || pair[len(name)] != '=' || string(pair[:len(name)]) != name {
		return nil, false
	}
	val := pair[len(name)+1:]
	if len(val) >= 2 && val[0] == '"' && val[len(val)-1] == '"' {
		val = val[1 : len(val)-1]
	}
	return val, true
}

func hasCookie(v []byte, name string) bool {
	for i := 0; i+len(name) < len(v); i++ {
		if v[i] == name[0] && v[i+len(name)] == '=' && string(v[i:i+len(name)]) == name &&
			(i == 0 || v[i-1] == ' ' || v[i-1] == ';' || v[i-1] == '\t') {
			return true
		}
	}
	return false
}
