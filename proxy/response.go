package proxy

import (
	"bytes"

	"turnout/balancer"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/header"
)

// responsePolicy is the only way of a header section to a client. It turns h into the section for
// the client. failed is the reason why it cannot be sent, or ReasonOK. By kind:
//
//	                       interim, trailers   final                        local
//	fields of this hop     removed             dropped                      removed
//	X-Turnout-Reason       removed             dropped                      added by Exchange.reply
//	HSTS of the route      the pod's removed   the pod's replaced           -
//	CORS of the route      the pod's removed   the pod's replaced           added
//	header actions         fields that are     carried out: the route's,    -
//	                       set or deleted      the backend's, the router's
//	                       are removed
//	Set-Cookie             removed             that of the router's cookie  -
//	                                           replaced, after all others
//	challenges             removed             -                            -
//	compression            -                   headers changed              -
//
// Interim responses and trailers get no new fields: clients process few fields there, none of
// which the router sets (RFC 9110 sections 6.5.1 and 15.2, RFC 8297 section 2, RFC 6265 section
// 3).
func (ex *Exchange) responsePolicy(kind sectionKind, h *Head) (s Section, failed Reason) {
	defer ex.recoverRules(&failed)
	s = Section{head: h}
	switch kind {
	case finalSection:
		failed = ex.finalFields(h)
	case localSection:
		ex.localFields(h)
	default:
		failed = ex.restrict(kind, h)
	}
	return s, failed
}

// stripResponse removes the fields of the incoming hop. cookies reports whether the response sets
// cookies.
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
		case kindPlain, kindCredentials:
			if h.Options != nil && nominated(h.Options, f.Name) {
				continue
			}
		}
		kept = append(kept, f)
	}
	h.Fields = kept
	return cookies
}

// responseLists returns the header actions for responses in their order: of the route, of its
// backend and of the router. nil lists are empty.
func (ex *Exchange) responseLists() (route, backend, router *header.Actions) {
	if b := ex.backend; b != nil {
		backend = b.ResponseActions()
	}
	return ex.route.Policy().ResponseActions, backend, ex.cfg.ResponseActions
}

// restrict removes the fields that responsePolicy would remove or replace in a final head, and adds
// none. Interim responses leave work for the final one.
func (ex *Exchange) restrict(kind sectionKind, h *Head) Reason {
	pol := ex.route.Policy()
	route, backend, router := ex.responseLists()
	n := len(h.Fields)
	cost := 2*work.Fields(n) + route.RestrictWork(n) + backend.RestrictWork(n) + router.RestrictWork(n)
	switch {
	case kind != interimSection && !ex.work.Spend(cost):
		return ex.tooMuch()
	case kind == interimSection && !ex.spare(cost):
		return ReasonMatchWork
	}
	ex.stripResponse(h)
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		switch name := f.Name; {
		case classify(name) == kindSetCookie, field.AboutAuthentication(name),
			ex.cfg.ReasonHeader && string(name) == reasonField,
			pol.HSTS != "" && string(name) == hstsField,
			pol.CORS != nil && cors.Is(name),
			pol.SessionHeader.IsSet() && string(name) == pol.SessionHeader.String():
			continue
		}
		kept = append(kept, f)
	}
	clear(h.Fields[len(kept):])
	h.Fields = kept
	for _, a := range [...]*header.Actions{route, backend, router} {
		h.Fields = a.Restrict(h.Fields)
	}
	return ReasonOK
}

// localFields completes a response made by the router.
func (ex *Exchange) localFields(h *Head) {
	ex.stripResponse(h)
	if ex.route == nil {
		return
	}
	rule := ex.route.Policy().CORS
	if rule == nil {
		return
	}
	ex.work.Charge(rule.Work(len(ex.req.Fields)))
	switch {
	case cors.Preflight(ex.req.Method, ex.req.Fields):
		h.Fields = rule.Permit(h.Fields, ex.req.Fields)
	default:
		h.Fields = rule.Answer(h.Fields, ex.origin)
	}
}

const hstsField = "strict-transport-security"

// finalFields turns the head of an endpoint's response into the client's head. It adds the router's
// cookie last, so that neither the pod nor a route can change it.
func (ex *Exchange) finalFields(h *Head) (failed Reason) {
	pol, cfg := ex.route.Policy(), ex.cfg
	ex.headOut = answerHeadSize(h)
	ex.captureResponse(h)
	cookies := ex.stripResponse(h)
	if cfg.ReasonHeader {
		h.Fields = field.Delete(h.Fields, reasonField)
	}
	if pol.HSTS != "" {
		ex.work.Charge(work.Fields(len(h.Fields)))
		h.Fields = field.Delete(h.Fields, hstsField)
		h.addField(hstsField, constant(pol.HSTS))
	}
	if pol.CORS != nil {
		ex.work.Charge(pol.CORS.Work(len(h.Fields)))
		h.Fields = pol.CORS.Answer(h.Fields, ex.origin)
	}
	if route, backend, router := ex.responseLists(); route != nil || backend != nil || router != nil {
		cookies = true // the actions may set a cookie
		room := cfg.MaxRewrite
		for _, a := range [...]*header.Actions{route, backend, router} {
			if a != nil && !ex.apply(a, h, &room) {
				return ex.tooMuch()
			}
		}
	}
	if ex.route.CookieName() != "" {
		ex.setSession(h, pol, cookies)
	}
	if ex.takesGzip {
		ex.compressHead(h)
	}
	if ex.work.Over() {
		return ex.tooMuch()
	}
	return ReasonOK
}

// setSession replaces the router's session cookie or field in h. cookies means that h may set the
// cookie.
func (ex *Exchange) setSession(h *Head, pol *routing.Policy, cookies bool) {
	ex.work.Charge(2 * work.Fields(len(h.Fields)))
	switch {
	case pol.SessionHeader.IsSet():
		h.Fields = field.Delete(h.Fields, pol.SessionHeader.String())
	case cookies:
		h.Fields = dropCookie(h.Fields, ex.route.CookieName())
	}
	if !ex.lease.Sticky() {
		ex.addCookie(h, pol)
	}
}

// addCookie adds the cookie or field that selects the same server for the client's next request.
func (ex *Exchange) addCookie(h *Head, pol *routing.Policy) {
	ex.inserted = true
	server := ex.lease.Server()
	m := &ex.scratch
	b := m.Begin(len(ex.route.CookieName()) + 1 + balancer.CookieLen + sessionEnd + len(pol.CookieAttributes))
	if pol.SessionHeader.IsSet() {
		h.addField(pol.SessionHeader.String(), m.End(ex.appendSession(b, server, pol)))
	} else {
		b = ex.appendSession(append(append(b, ex.route.CookieName()...), '='), server, pol)
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
