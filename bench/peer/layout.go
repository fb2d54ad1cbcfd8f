package peer

import (
	"crypto/md5" //nolint:gosec // the sticky cookie's name and value are MD5 sums by definition
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/netip"

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
	through   bool         // TLS is passed through; the upstream terminates it
	pods      site.KeyPair // of the upstream, which is its own authority; empty = it speaks no TLS
}

// onTLSPort tells which port of a router the site is behind.
func (s *layout) onTLSPort() bool { return s.tls || s.through }

func routeName(i int) string   { return fmt.Sprintf("r%05d", i) }
func serviceName(k int) string { return fmt.Sprintf("s%02d", k) }

// cookieName and cookieValue are what the router gives a route without endpoints that are pods.
func cookieName(i int) string { return md5Hex(" " + namespace + ":" + routeName(i)) }

func (s *layout) cookieValue(k int) string {
	return md5Hex(fmt.Sprintf("ept:%s:http:%s:%d", serviceName(k), s.upstreams[k].Addr(), s.upstreams[k].Port()))
}

func md5Hex(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
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
