package cors

import (
	"strings"
	"unsafe"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// Preflight reports whether a request asks what pages of its origin may do (Fetch section 3.3.2): such a request is not for an endpoint.
func Preflight(method []byte, fields []field.Field) bool {
	return string(method) == "OPTIONS" && field.Index(fields, "origin") >= 0 && field.Index(fields, "access-control-request-method") >= 0
}

// Is reports whether name, in lower case, is a field with which a response grants permissions to
// pages of other origins.
func Is(name []byte) bool { return strings.HasPrefix(text(name), "access-control-") }

// Permit appends to out what the answer to a preflight with these fields says: nothing to an origin that is not allowed but that the answer
// depends on the fields. What it appends are views into the fields of the request and into r.
func (r *Rule) Permit(out, request []field.Field) []field.Field {
	from := field.Get(request, "origin")
	if !r.allows(from) {
		return vary(out)
	}
	out = r.share(out, from)
	method, headers := r.methods, r.headers
	if r.anyMethod {
		method = field.Get(request, "access-control-request-method")
	}
	if r.anyHeader {
		headers = field.Get(request, "access-control-request-headers")
	}
	out = add(out, "access-control-allow-methods", method)
	out = add(out, "access-control-allow-headers", headers)
	return add(out, "access-control-max-age", r.maxAge)
}

// Work returns the work of Permit or Answer with n fields.
func (r *Rule) Work(n int) int {
	const compared = 4 // an origin: a cache miss and up to maxOrigin bytes
	return 2*work.Fields(n) + compared*len(r.origins)
}

// Answer turns the fields of an endpoint's answer to a request of an origin, nil if it says none, into those that clients get.
func (r *Rule) Answer(fields []field.Field, from []byte) []field.Field {
	kept := fields[:0]
	for _, f := range fields {
		if !Is(f.Name) {
			kept = append(kept, f)
		}
	}
	if from == nil || !r.allows(from) {
		return vary(kept)
	}
	return r.share(kept, from)
}

// share appends what every answer to an allowed origin says.
func (r *Rule) share(out []field.Field, from []byte) []field.Field {
	if r.all && !r.credentials {
		from = constant("*")
	}
	out = add(out, "access-control-allow-origin", from)
	if r.credentials {
		out = add(out, "access-control-allow-credentials", constant("true"))
	}
	out = add(out, "access-control-expose-headers", r.expose)
	if r.all && !r.credentials {
		return out // all get the same answer
	}
	return vary(out)
}

// vary tells caches that the answer depends on the origin (Fetch section 3.3.6).
func vary(out []field.Field) []field.Field { return add(out, "vary", constant("Origin")) }

// add appends a field that has a value.
func add(out []field.Field, name string, value []byte) []field.Field {
	if len(value) == 0 {
		return out
	}
	return append(out, field.Field{Name: constant(name), Value: value})
}

// allows reports whether the value of an Origin field is one of those that are allowed.
func (r *Rule) allows(from []byte) bool {
	if len(from) == 0 {
		return false
	}
	if r.all {
		return true
	}
	if len(from) > maxOrigin {
		return false
	}
	s := text(from)
	for i := range r.origins {
		if r.origins[i].is(s) {
			return true
		}
	}
	return false
}

// maxOrigin is the length of the longest value that is compared with origins: a scheme, a host of
// 253 bytes and a port.
const maxOrigin = 512

// is reports whether o takes an origin. Browsers write these in lower-case letters and without the usual port (RFC 6454 section 6.2).
func (o *origin) is(s string) bool {
	host, ok := strings.CutPrefix(s, o.scheme)
	if !ok {
		return false
	}
	if !o.suffix {
		return host == o.host
	}
	if host, ok = strings.CutSuffix(host, o.port); !ok {
		return false
	}
	if host, ok = strings.CutSuffix(host, o.host); !ok || host == "" || host[0] == '.' {
		return false
	}
	return !strings.ContainsAny(host, ":/")
}

// constant is the bytes of a text, which nobody writes to.
func constant(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
