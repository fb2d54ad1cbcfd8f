package proxy

import (
	"bytes"

	"turnout/internal/bound"
	"turnout/internal/wire/field"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

// requestPolicy turns the client's request into the one the endpoint gets, in the
// order of the HAProxy router:
//
//	strip       fields that end here, and what only the router may say; who the client is
//	actions     of the whole router
//	settle      the sticky cookie is taken out, forwarded fields of the client are judged
//	forward     forwarded fields are added
//	rewrite     path and host
//	actions     of the route
//	copies      for mirrors begin
//	share       of a divided route: a backend is chosen, whose actions follow
//	CDN-Loop    the router's id is added; no action can touch it
//	trace       the same of the context of the trace
//	unique id
//	X-Forwarded-For, unless it replaced the client's: no action can touch it
//
// It returns the sticky cookie's value, nil without one, and why the exchange cannot go on,
// ReasonOK if it can: ReasonRewrite if the request would grow too large, ReasonMatchWork if its
// work is used up, ReasonLoop if it has passed this router too often, ReasonInternal after a panic.
func (ex *Exchange) requestPolicy() (cookie []byte, failed Reason) {
	defer ex.recoverRules(&failed)
	h, pol, cfg := ex.req, ex.route.Policy(), ex.cfg
	room := cfg.MaxRewrite
	ex.takesGzip = cfg.Compression != nil && takesGzip(h.Fields)
	special, hops := ex.stripRequest(h)
	ex.anonymous = special&specialCredentials == 0
	special &^= specialCredentials
	if hops >= maxHops {
		ex.w.Reached(bound.Hops)
		return nil, ReasonLoop
	}
	ex.returned = hops > 0
	if len(h.Authority) == 0 && field.Index(h.Fields, "host") < 0 {
		h.addField("host", nil) // of HTTP/1.0; requests of HTTP/1.1 always have one (RFC 9112 section 3.2)
	}
	if cfg.RequestActions != nil {
		if !ex.apply(cfg.RequestActions, h, &room) {
			return nil, ex.tooMuch()
		}
		special = specialCookie | specialForwarded
	}
	var seen forwardedSeen
	if special != 0 {
		cookie = ex.settle(h, pol, &seen)
	}
	if pol.SessionHeader.IsSet() || pol.SessionTimeout > 0 {
		cookie = ex.session(h, pol, cookie)
	}
	ip := ex.forward(pol.Forwarded, &seen)
	if pol.Rewrite != nil && !ex.rewrite(pol.Rewrite, room) {
		return nil, ex.tooMuch()
	}
	if pol.RequestActions != nil && !ex.apply(pol.RequestActions, h, &room) {
		return nil, ex.tooMuch()
	}
	if ex.route.Mirrors() != nil {
		ex.copyRequest(h, ip)
	}
	if ex.route.Divided() && !ex.requestDivided(h, ex.privateCookie(cookie), &room) || ex.work.Over() {
		return nil, ex.tooMuch()
	}
	ex.w.mark(h)
	if ex.w.tracer.Tracing != nil {
		ex.tellTrace(h)
	}
	if cfg.UniqueID != nil {
		ex.uniqueID, ex.anonymous = cfg.UniqueID.value(ex), false
		h.Fields = append(h.Fields, Field{Name: cfg.UniqueID.name, Value: ex.uniqueID})
	}
	addForwardedFor(h, pol.Forwarded, ip)
	h.AdjustCase = pol.AdjustCase
	return cookie, ReasonOK
}

// addForwardedFor adds the client's address where the policy has it added.
func addForwardedFor(h *Head, policy routing.ForwardedPolicy, ip []byte) {
	switch policy {
	case routing.ForwardedAppend:
		h.addField("x-forwarded-for", ip)
	case routing.ForwardedIfNone:
		if field.Index(h.Fields, "x-forwarded-for") < 0 {
			h.addField("x-forwarded-for", ip)
		}
	}
}

// Fields that stripRequest has found. The first two are for settle.
const (
	specialCookie uint8 = 1 << iota
	specialForwarded
	specialCredentials
)

// trailersWelcome is what TE says to both hops.
var trailersWelcome = []byte("trailers")

// listed reports whether a comma list has a member, in any case of letters.
func listed(list, member []byte) bool {
	for len(list) > 0 {
		next := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			next, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if bytes.EqualFold(bytes.Trim(next, " \t"), member) {
			return true
		}
	}
	return false
}

// stripRequest removes what ends here, what only the router may say, and what
// Connection names; Host becomes the routed host. hops is how often the request was here before.
func (ex *Exchange) stripRequest(h *Head) (special uint8, hops int) {
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		switch classify(f.Name) {
		case kindHop:
			continue
		case kindIdentity:
			if !ex.cfg.KeepClientIdentity || string(f.Name) == "proxy" || ex.client.Identity != nil && string(f.Name) != "x-ssl-client-subject" {
				continue
			}
		case kindUpgrade:
			if h.Upgrade == nil {
				continue
			}
		case kindTE:
			// Of all it can say, only this is about both hops (RFC 9110 section 10.1.4).
			if !listed(f.Value, trailersWelcome) {
				continue
			}
			f.Value = trailersWelcome
		case kindHost:
			f.Value = h.Authority
		case kindCookie:
			special |= specialCookie
		case kindForwarded:
			special |= specialForwarded
		case kindHops:
			hops += ex.w.hops(f.Value)
		case kindCredentials:
			special |= specialCredentials
			if h.Options != nil && nominated(h.Options, f.Name) {
				continue
			}
		case kindPlain:
			if h.Options != nil && nominated(h.Options, f.Name) {
				continue
			}
		}
		kept = append(kept, f)
	}
	if id := ex.client.Identity; id != nil {
		kept = append(kept, id.Fields...)
	}
	h.Fields = kept
	return special, hops
}

// certificate is that of the client in DER, nil without one.
func (c *Client) certificate() []byte {
	if c.Identity == nil {
		return nil
	}
	return c.Identity.Certificate
}

// settle takes the sticky cookie out and returns its value, removes the client's
// forwarded fields where the policy is to replace them, and otherwise notes them.
func (ex *Exchange) settle(h *Head, pol *routing.Policy, seen *forwardedSeen) (cookie []byte) {
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		switch classify(f.Name) {
		case kindCookie:
			if ex.route.CookieName() == "" || pol.SessionHeader.IsSet() {
				break
			}
			rest, value, found := ex.takeCookie(f.Value, ex.route.CookieName())
			if !found {
				break
			}
			if cookie == nil {
				cookie = value
			}
			if len(rest) == 0 {
				continue
			}
			f.Value = rest
		case kindForwarded:
			if pol.Forwarded == routing.ForwardedReplace {
				continue
			}
			seen.note(f)
		}
		kept = append(kept, f)
	}
	h.Fields = kept
	return cookie
}

// apply carries header actions out on a head. All lists for one message share the room. False: the
// room or the work of the request is used up.
func (ex *Exchange) apply(a *header.Actions, h *Head, room *int) bool {
	ex.anonymous = false // the list may add credentials
	m := &ex.actions
	*m = header.Message{Fields: h.Fields, Certificate: ex.client.certificate(), Arena: &ex.scratch, Room: *room, Work: &ex.work}
	ok := a.Apply(m)
	h.Fields, *room = m.Fields, m.Room
	return ok
}

// spare takes work for something that the request can do without, see work.Account.Spare.
func (ex *Exchange) spare(n int) bool {
	if ex.work.Spare(n) {
		return true
	}
	ex.Reached(bound.MatchWork)
	return false
}

// tooMuch counts a message that rules cannot be carried out on, and returns the reason.
func (ex *Exchange) tooMuch() Reason {
	if !ex.work.Over() {
		ex.Reached(bound.HeaderActions)
		return ReasonRewrite
	}
	ex.Reached(bound.MatchWork)
	if ex.route != nil {
		ex.detail = ex.route.Namespace()
	}
	return ReasonMatchWork
}

// rewrite carries a rewrite out, with that many bytes that the path may grow by.
func (ex *Exchange) rewrite(r *rewrite.Rule, most int) bool {
	h := ex.req
	var ok bool
	if h.Path, ok = r.Apply(h.Path, &ex.scratch, most, &ex.work); !ok {
		return false
	}
	host := r.Host()
	if host == nil {
		return true
	}
	if i := field.Index(h.Fields, "host"); i >= 0 {
		h.Fields[i].Value = host
	} else {
		h.addField("host", host)
	}
	return true
}

// nominated reports a field that the sender's Connection field makes hop-by-hop
// (RFC 9110 section 7.6.1). Fields with a kind of their own never get here, so a
// client cannot talk the router out of Host, Cookie or X-Forwarded-For.
func nominated(options [][]byte, name []byte) bool {
	if string(name) == "authorization" {
		return false
	}
	for _, o := range options {
		if string(o) == string(name) {
			return true
		}
	}
	return false
}
