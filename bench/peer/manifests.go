package peer

import (
	"fmt"
	"net/netip"
	"strings"

	"turnout/bench/load"
	"turnout/bench/site"
)

// manifests are the site as Kubernetes objects: what `turnout run --manifests` reads.
func (s *layout) manifests() string {
	var text strings.Builder
	for k, addr := range s.upstreams {
		text.WriteString(site.Service{Name: serviceName(k), Port: int(addr.Port()), Addrs: []netip.Addr{addr.Addr()}}.String())
	}
	for i := range s.routes {
		text.WriteString(s.route(i).String())
	}
	return text.String()
}

// rules are the header actions of a site with rules.
const rules = `httpHeaders: {actions: {
  request: [{name: X-Agent, action: {type: Set, set: {value: "%[req.hdr(User-Agent),lower]"}}}],
  response: [{name: X-Frame-Options, action: {type: Set, set: {value: DENY}}}]}}`

func (s *layout) route(i int) site.Route {
	r := site.Route{Name: routeName(i), Host: load.Host(i), Service: serviceName(i % len(s.upstreams)), Annotations: "haproxy.router.openshift.io/set-forwarded-headers: append"}
	if !s.cookie {
		r.Annotations += ", " + site.NoCookies
	}
	switch {
	case s.tls:
		r.TLS = fmt.Sprintf("termination: edge, certificate: %q, key: %q", s.pem.Certificate, s.pem.Key)
		if s.pods.Certificate != "" {
			r.TLS = strings.Replace(r.TLS, "edge", "reencrypt", 1) + fmt.Sprintf(", destinationCACertificate: %q", s.pods.Certificate)
		}
	case s.through:
		r.TLS = "termination: passthrough"
	case s.rules:
		r.TLS = "termination: edge, insecureEdgeTerminationPolicy: Allow"
	}
	if s.rules {
		r.Annotations += ", haproxy.router.openshift.io/hsts_header: " + hsts
		r.More = rules
	}
	return r
}
