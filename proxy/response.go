package proxy

import (
	"bytes"

	"turnout/internal/wire/field"
	"turnout/routing"
	"turnout/routing/header"
)

// stripResponse ends the hop-by-hop fields of the endpoint here. It tells whether the endpoint sets cookies.
func (ex *Exchange) stripResponse(h *Head) (cookies bool) {
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		switch classify(f.Name) {
		case kindHop:
			continue
		case kindUpgrade:
			if h.Status != 101 && h.Status != 426 {
				continue
			}
		case kindSetCookie:
			cookies = true
		case kindPlain:
			if h.Options != nil && nominated(h.Options, f.Name) {
				continue
			}
		}
		kept = append(kept, f)
	}
	h.Fields = kept
	return cookies
}

// responsePolicy turns the endpoint's answer into the one the client gets: HSTS, CORS, the
// actions of the route, those of the backend, those of the router, and the sticky cookie last, so that nothing
// the pod or a route says can touch the router's own cookie; one of its name by anybody else is removed. It returns why the answer
// cannot be used, ReasonOK if it can, as requestPolicy does.
func (ex *Exchange) responsePolicy(h *Head) (failed Reason) {
	defer ex.recoverRules(&failed)
	pol, cfg := ex.route.Policy(), ex.cfg
	ex.headOut = answerHeadSize(h)
	ex.captureResponse(h)
	cookies := ex.stripResponse(h)
	if cfg.ReasonHeader {
		h.Fields = field.Delete(h.Fields, reasonField)
	}
	if pol.HSTS != "" {
		h.Fields = field.Delete(h.Fields, "strict-transport-security")
		h.addField("strict-transport-security", constant(pol.HSTS))
	}
	if pol.CORS != nil {
		h.Fields = pol.CORS.Answer(h.Fields, ex.origin)
	}
	left := header.Budget{Room: cfg.MaxRewrite, Work: header.MaxWork}
	if pol.ResponseActions != nil && !ex.apply(pol.ResponseActions, h, &left) {
		return ReasonRewrite
	}
	if b := ex.backend; b != nil && b.ResponseActions() != nil && !ex.apply(b.ResponseActions(), h, &left) {
		return ReasonRewrite
	}
	if cfg.ResponseActions != nil && !ex.apply(cfg.ResponseActions, h, &left) {
		return ReasonRewrite
	}
	if ex.route.CookieName() == "" {
		return ReasonOK
	}
	switch {
	case pol.SessionHeader:
		h.Fields = field.Delete(h.Fields, ex.route.CookieName())
	case cookies || cfg.ResponseActions != nil:
		h.Fields = dropCookie(h.Fields, ex.route.CookieName())
	}
	if !ex.lease.Sticky() {
		ex.addCookie(h, pol)
	}
	return ReasonOK
}

// addCookie tells the client which server to come back to.
func (ex *Exchange) addCookie(h *Head, pol *routing.Policy) {
	ex.inserted = true
	value := ex.lease.Server().Cookie()
	m := &ex.scratch
	b := m.Begin(len(ex.route.CookieName()) + 1 + len(value) + sessionEnd + len(pol.CookieAttributes))
	if pol.SessionHeader {
		h.addField(ex.route.CookieName(), m.End(ex.appendSession(b, value, pol)))
	} else {
		b = ex.appendSession(append(append(b, ex.route.CookieName()...), '='), value, pol)
		h.addField("set-cookie", m.End(append(b, pol.CookieAttributes...)))
	}
	if ex.cacheable(h) {
		h.addField("cache-control", constant("private"))
	}
}

// cacheable reports a response that a shared cache could keep and thereby hand one
// client's cookie to another (RFC 9111 section 3).
func (ex *Exchange) cacheable(h *Head) bool {
	if m := string(ex.req.Method); m != "GET" && m != "HEAD" {
		return false
	}
	switch h.Status {
	case 200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501:
	default:
		return false
	}
	for _, f := range h.Fields {
		switch string(f.Name) {
		case "etag", "last-modified", "expires":
			return true
		case "cache-control":
			if bytes.Contains(f.Value, constant("max-age")) || bytes.Contains(f.Value, constant("s-maxage")) {
				return true
			}
		}
	}
	return false
}

// withoutPort drops ":digits" at the end of an authority.
func withoutPort(a []byte) []byte {
	i := len(a)
	for i > 0 && '0' <= a[i-1] && a[i-1] <= '9' {
		i--
	}
	if i > 0 && i < len(a) && a[i-1] == ':' {
		return a[:i-1]
	}
	return a
}
