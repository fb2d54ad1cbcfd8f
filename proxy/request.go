package proxy

import (
	"bytes"
	"net/netip"
	"strconv"

	"turnout/proxy/field"
	"turnout/routing"
	"turnout/routing/header"
)

// requestPolicy turns the client's request into the one the endpoint gets, in the
// order of the router this one replaces:
//
//	strip       fields that end here, and what only the router may say; who the client is
//	actions     of the whole router
//	settle      the sticky cookie is taken out, forwarded fields of the client are judged
//	forward     forwarded fields are added
//	rewrite     the path
//	actions     of the route
//	unique id
//	X-Forwarded-For, unless it replaced the client's: no action can touch it
//
// It returns the sticky cookie's value, nil without one, and why the exchange cannot go on, ReasonOK if it can:
// ReasonRewrite when the request would have grown too large, ReasonInternal after a panic.
func (ex *Exchange) requestPolicy() (cookie []byte, failed Reason) {
	defer ex.contain(&failed)
	h, pol, cfg := ex.req, ex.route.Policy(), &ex.w.cfg
	room := cfg.MaxRewrite
	ex.takesGzip = cfg.Compression != nil && takesGzip(h.Fields)
	special := ex.stripRequest(h)
	if cfg.RequestActions != nil {
		if !ex.apply(cfg.RequestActions, h, &room) {
			return nil, ReasonRewrite
		}
		special = specialCookie | specialForwarded
	}
	var seen forwardedSeen
	if special != 0 {
		cookie = ex.settle(h, pol, &seen)
	}
	ip := ex.forward(pol.Forwarded, &seen)
	if pol.Rewrite != nil {
		var ok bool
		if h.Path, ok = pol.Rewrite.Apply(h.Path, &ex.scratch, room); !ok {
			return nil, ReasonRewrite
		}
	}
	if pol.RequestActions != nil && !ex.apply(pol.RequestActions, h, &room) {
		return nil, ReasonRewrite
	}
	if cfg.UniqueID != nil {
		ex.uniqueID = cfg.UniqueID.value(ex)
		h.Fields = append(h.Fields, Field{Name: cfg.UniqueID.name, Value: ex.uniqueID})
	}
	switch pol.Forwarded {
	case routing.ForwardedAppend:
		h.add("x-forwarded-for", ip)
	case routing.ForwardedIfNone:
		if field.Index(h.Fields, "x-forwarded-for") < 0 {
			h.add("x-forwarded-for", ip)
		}
	}
	h.AdjustCase = pol.AdjustCase
	return cookie, ReasonOK
}

// What stripRequest met that settle has to look at.
const (
	specialCookie uint8 = 1 << iota
	specialForwarded
)

// stripRequest removes what ends here, what only the router may say, and what
// Connection names; Host becomes the routed host.
func (ex *Exchange) stripRequest(h *Head) (special uint8) {
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		switch classify(f.Name) {
		case kindHop:
			continue
		case kindIdentity:
			if !ex.w.cfg.KeepClientIdentity || string(f.Name) == "proxy" || ex.client.Identity != nil && string(f.Name) != "x-ssl-client-subject" {
				continue
			}
		case kindUpgrade:
			if h.Upgrade == nil {
				continue
			}
		case kindTE:
			// Of all it can say, only this is about both hops (RFC 9110 section 10.1.4).
			if !equalFold(f.Value, "trailers") {
				continue
			}
		case kindHost:
			f.Value = h.Authority
		case kindCookie:
			special |= specialCookie
		case kindForwarded:
			special |= specialForwarded
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
	return special
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
			if pol.CookieName == "" {
				break
			}
			rest, value, found := ex.takeCookie(f.Value, pol.CookieName)
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

// apply carries header actions out on a head.
func (ex *Exchange) apply(a *header.Actions, h *Head, room *int) bool {
	m := &ex.actions
	*m = header.Message{Fields: h.Fields, Certificate: ex.client.certificate(), Arena: &ex.scratch, Room: *room}
	ok := a.Apply(m)
	h.Fields, *room = m.Fields, m.Room
	return ok
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

type kind uint8

const (
	kindPlain     kind = iota
	kindHop            // ends at this hop, or is made anew by the codec
	kindIdentity       // only the router may speak it
	kindHost           //
	kindCookie         //
	kindForwarded      // X-Forwarded-* and Forwarded
	kindUpgrade        //
	kindSetCookie      //
	kindTE             //
	kindGuarded        // end-to-end whatever Connection says
)

// classify is the one table of names that the pipeline treats specially.
func classify(name []byte) kind {
	switch string(name) {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "http2-settings":
		return kindHop
	case "proxy", "x-ssl", "x-ssl-client-cn", "x-ssl-client-der", "x-ssl-client-dn", "x-ssl-client-notafter",
		"x-ssl-client-notbefore", "x-ssl-client-sha1", "x-ssl-client-serial", "x-ssl-client-subject",
		"x-ssl-client-verify", "x-ssl-client-version", "x-ssl-issuer":
		return kindIdentity
	case "host":
		return kindHost
	case "cookie":
		return kindCookie
	case "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-proto-version", "forwarded":
		return kindForwarded
	case "upgrade":
		return kindUpgrade
	case "set-cookie":
		return kindSetCookie
	case "te":
		return kindTE
	case "trailer", "expect":
		return kindGuarded
	}
	if len(name) > 4 && name[0] == 'x' && bytes.IndexByte(name, '_') > 0 {
		return classifyTwin(name)
	}
	return kindPlain
}

// classifyTwin is classify for a name with underscores: whoever hands fields on as variables cannot tell it from the one with
// hyphens (RFC 3875 section 4.1.18), so it is of the same kind where that is about trust.
func classifyTwin(name []byte) kind {
	var twin [32]byte
	if len(name) > len(twin) {
		return kindPlain
	}
	n := copy(twin[:], name)
	for i := range n {
		if twin[i] == '_' {
			twin[i] = '-'
		}
	}
	switch k := classify(twin[:n]); k {
	case kindIdentity, kindForwarded:
		return k
	}
	return kindPlain
}

// forwardedSeen remembers which forwarded fields the client sent itself.
type forwardedSeen struct {
	host, port, proto, version, forwarded bool
	lastProto                             []byte // last element of the client's X-Forwarded-Proto
}

func (s *forwardedSeen) note(f Field) {
	switch string(f.Name) {
	case "x-forwarded-host":
		s.host = true
	case "x-forwarded-port":
		s.port = true
	case "x-forwarded-proto":
		s.proto, s.lastProto = true, header.LastElement(f.Value)
	case "x-forwarded-proto-version":
		s.version = true
	case "forwarded":
		s.forwarded = true
	}
}

// forward adds the forwarded fields: own lines in append, all of them in replace (the
// client's are gone by then), the missing ones in if-none. It returns the client's
// address; X-Forwarded-For is added here in replace only.
func (ex *Exchange) forward(p routing.ForwardedPolicy, seen *forwardedSeen) (ip []byte) {
	if p == routing.ForwardedNever {
		return nil
	}
	h := ex.req
	always := p != routing.ForwardedIfNone
	proto := "http"
	if ex.client.Secure {
		proto = "https"
	}
	from := ex.client.Addr.Addr().Unmap()

	m := &ex.scratch
	b := m.Begin(64)
	b = appendIP(b, from)
	ip = m.End(b)
	if p == routing.ForwardedReplace {
		h.add("x-forwarded-for", ip)
	}
	if always || !seen.host {
		h.add("x-forwarded-host", h.Authority)
	}
	if always || !seen.port {
		b = m.Begin(8)
		b = strconv.AppendUint(b, uint64(ex.client.Local.Port()), 10)
		h.add("x-forwarded-port", m.End(b))
	}
	if always || !seen.proto {
		h.add("x-forwarded-proto", constant(proto))
	}
	if ex.client.H2 && (always || !seen.version) {
		h.add("x-forwarded-proto-version", constant("h2"))
	}
	if always || !seen.forwarded {
		last := constant(proto)
		if !always && seen.proto {
			last = seen.lastProto
		}
		b = m.Begin(len(ip) + len(h.Authority) + len(last) + 32)
		b = append(b, "for="...)
		if from.Is6() {
			b = append(append(append(b, `"[`...), ip...), `]"`...)
		} else {
			b = append(b, ip...)
		}
		b = append(append(b, ";host="...), h.Authority...)
		b = append(append(b, ";proto="...), last...)
		h.add("forwarded", m.End(b))
	}
	return ip
}

func appendIP(b []byte, ip netip.Addr) []byte {
	if ip.Is6() && ip.Zone() != "" {
		ip = ip.WithZone("")
	}
	return ip.AppendTo(b)
}

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
