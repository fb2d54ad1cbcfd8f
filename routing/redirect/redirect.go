// Package redirect compiles redirects and says where they lead: a rule answers with one instead of asking an endpoint.
package redirect

import (
	"fmt"
	"strconv"

	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing/rewrite"
)

// Target is where a redirect leads, as plain data. What the zero value leaves out is as in the request, but for the port, which is not said.
type Target struct {
	Scheme string      // http or https; "" = that of the request
	URL    rewrite.URL // host, without a port, and path; the query stays
	Port   int         // 0, 80 with http and 443 with https are not said
	Status int         // 301, 302, 303, 307 or 308; 0 = 302
}

// Rule is a compiled Target. It is immutable and may be shared.
type Rule struct {
	secure, plain bool // the scheme; neither = that of the request
	port          int
	status        int
	url           *rewrite.Rule
}

// New compiles t.
func New(t Target) (*Rule, error) {
	r := &Rule{secure: t.Scheme == "https", plain: t.Scheme == "http", port: t.Port, status: t.Status}
	switch t.Status {
	case 0:
		r.status = 302
	case 301, 302, 303, 307, 308:
	default:
		return nil, fmt.Errorf("cannot redirect with status %d: allowed: 301, 302, 303, 307, 308", t.Status)
	}
	if t.Scheme != "" && !r.secure && !r.plain {
		return nil, fmt.Errorf("cannot redirect to scheme %q: allowed: http, https", t.Scheme)
	}
	if t.Port < 0 || t.Port > 65535 {
		return nil, fmt.Errorf("cannot redirect to port %d: allowed: 1 to 65535, 0 for none", t.Port)
	}
	var err error
	r.url, err = rewrite.New(t.URL)
	return r, err
}

// Status is that of the answer.
func (r *Rule) Status() int { return r.status }

// Lasting reports that clients may keep the answer and never ask again (RFC 9110 sections 15.4.2 and 15.4.9).
func (r *Rule) Lasting() bool { return r.status == 301 || r.status == 308 }

// Location returns the value of the Location field (RFC 9110 section 10.2.2), made in the arena, for a request: whether it came by TLS, its
// host without port, its path, and its query with the question mark. A path that is none, such as the "*" of OPTIONS, leads to "/". False: the
// path would grow by more than most bytes, or the work of the request is used up.
func (r *Rule) Location(secure bool, host, path, query []byte, arena *field.Arena, most int, left *work.Account) ([]byte, bool) {
	secure = secure && !r.plain || r.secure
	if h := r.url.Host(); h != nil {
		host = h
	}
	if len(path) == 0 || path[0] != '/' {
		path, query = []byte("/"), nil
	}
	path, ok := r.url.Apply(path, arena, most, left)
	if !ok || !left.Spend(work.Copied(len(host)+len(path)+len(query))) {
		return nil, false
	}
	b := arena.Begin(len("https://:65535") + len(host) + len(path) + len(query))
	usual := 80
	if secure {
		usual = 443
		b = append(b, "https://"...)
	} else {
		b = append(b, "http://"...)
	}
	b = append(b, host...)
	if r.port != 0 && r.port != usual {
		b = strconv.AppendInt(append(b, ':'), int64(r.port), 10)
	}
	return arena.End(append(append(b, path...), query...)), true
}
