package peer

import (
	"crypto/md5" //nolint:gosec // the sticky cookie's name and value are MD5 sums by definition
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"turnout/bench/load"
	"turnout/bench/site"
)

// namespace holds every object of a site.
const namespace = "bench"

// layout is what both proxies of a case are configured to serve: routes r00000, r00001, … for the hosts of
// package load. Route i goes to upstream i modulo the number of upstreams.
type layout struct {
	routes    int
	upstreams []netip.AddrPort
	tls       bool
	cookie    bool
	rules     bool         // HSTS and two header actions; without tls the route takes plain requests too
	pem       site.KeyPair // of Host(0); only with tls
	fallback  site.KeyPair // of no host; only with tls
	upgrades  bool         // WebSockets are asked for
	h2c       bool         // the upstream speaks HTTP/2 without TLS
	through   bool         // TLS is passed through; the upstream terminates it
	pods      site.KeyPair // of the upstream, which is its own authority; empty = it speaks no TLS
}

func routeName(i int) string   { return fmt.Sprintf("r%05d", i) }
func serviceName(k int) string { return fmt.Sprintf("s%02d", k) }

// cookieName and cookieValue are what the router gives a route without endpoints that are pods.
func cookieName(i int) string { return md5Hex(" " + namespace + ":" + routeName(i)) }

func (s *layout) cookieValue(k int) string {
	return md5Hex(fmt.Sprintf("ept:%s:http:%s", serviceName(k), s.upstreams[k]))
}

func md5Hex(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// backendName is HAProxy's backend of route i.
func (s *layout) backendName(i int) string {
	if s.tls {
		return "be_edge_http:" + namespace + ":" + routeName(i)
	}
	return "be_http:" + namespace + ":" + routeName(i)
}

// clientTLS is the client's side of the site: nil without TLS, otherwise trusting only its certificate.
// No ALPN is offered, so the answer is HTTP/1.1.
func (s *layout) clientTLS() *tls.Config {
	if !s.tls {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.pem.Certificate))
	return &tls.Config{
		ServerName: load.Host(0), RootCAs: roots,
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519},
	}
}

// hsts is the header of sites with rules, and rules their header actions.
const (
	hsts  = "max-age=31536000"
	rules = `httpHeaders: {actions: {
  request: [{name: X-Agent, action: {type: Set, set: {value: "%[req.hdr(User-Agent),lower]"}}}],
  response: [{name: X-Frame-Options, action: {type: Set, set: {value: DENY}}}]}}`
)

// manifests are the site as Kubernetes objects: what `turnout run --manifests` reads.
func (s *layout) manifests() string {
	var text strings.Builder
	for k, addr := range s.upstreams {
		protocol := ""
		if s.h2c {
			protocol = "kubernetes.io/h2c"
		}
		text.WriteString(site.Service{Protocol: protocol, Name: serviceName(k), Port: int(addr.Port()), Addrs: []netip.Addr{addr.Addr()}}.String())
	}
	for i := range s.routes {
		text.WriteString(s.route(i).String())
	}
	return text.String()
}

func (s *layout) route(i int) site.Route {
	r := site.Route{Name: routeName(i), Host: load.Host(i), Service: serviceName(i % len(s.upstreams)), Annotations: "haproxy.router.openshift.io/set-forwarded-headers: append"}
	if !s.cookie {
		r.Annotations += ", " + site.NoCookies
	}
	switch {
	case s.tls && s.pods.Certificate != "":
		r.TLS = fmt.Sprintf("termination: reencrypt, certificate: %q, key: %q, destinationCACertificate: %q", s.pem.Certificate, s.pem.Key, s.pods.Certificate)
	case s.tls:
		r.TLS = fmt.Sprintf("termination: edge, certificate: %q, key: %q", s.pem.Certificate, s.pem.Key)
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
