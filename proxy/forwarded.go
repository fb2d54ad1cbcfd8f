package proxy

import (
	"net/netip"
	"strconv"

	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/header"
)

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
		h.addField("x-forwarded-for", ip)
	}
	if always || !seen.host {
		h.addField("x-forwarded-host", h.Authority)
	}
	if always || !seen.port {
		b = m.Begin(8)
		port := ex.route.Policy().ForwardedPort
		if port == 0 {
			port = ex.client.Local.Port()
		}
		b = strconv.AppendUint(b, uint64(port), 10)
		h.addField("x-forwarded-port", m.End(b))
	}
	if always || !seen.proto {
		h.addField("x-forwarded-proto", constant(proto))
	}
	if ex.client.Agreed == protocol.HTTP2 && (always || !seen.version) {
		h.addField("x-forwarded-proto-version", constant("h2"))
	}
	if always || !seen.forwarded {
		last := constant(proto)
		if !always && len(seen.lastProto) > 0 {
			last = seen.lastProto
		}
		b = m.Begin(len(ip) + 2*len(h.Authority) + 2*len(last) + 32)
		b = append(b, "for="...)
		if from.Is6() {
			b = append(append(append(b, `"[`...), ip...), `]"`...)
		} else {
			b = append(b, ip...)
		}
		if len(h.Authority) > 0 { // a request of HTTP/1.0 may name none
			b = appendValue(append(b, ";host="...), h.Authority)
		}
		b = appendValue(append(b, ";proto="...), last)
		h.addField("forwarded", m.End(b))
	}
	return ip
}

// appendValue appends a value of a Forwarded parameter: a token as it is, anything else, such as a host with a port, as a
// quoted-string (RFC 7239 section 4, RFC 9110 section 5.6.4).
func appendValue(b, value []byte) []byte {
	if isToken(value) {
		return append(b, value...)
	}
	b = append(b, '"')
	for _, c := range value {
		if c == '"' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return append(b, '"')
}

// isToken reports a token (RFC 9110 section 5.6.2).
func isToken(value []byte) bool {
	for _, c := range value {
		if tokenBytes[c>>6]>>(c&63)&1 == 0 {
			return false
		}
	}
	return len(value) > 0
}

// tokenBytes is the set of bytes of a token: ! # $ % & ' * + - . ^ _ ` | ~, digits and letters.
var tokenBytes = [4]uint64{0x03ff6cfa00000000, 0x57ffffffc7fffffe}

func appendIP(b []byte, ip netip.Addr) []byte {
	if ip.Is6() && ip.Zone() != "" {
		ip = ip.WithZone("")
	}
	return ip.AppendTo(b)
}
