package proxy

import (
	"net/netip"
	"strconv"

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
