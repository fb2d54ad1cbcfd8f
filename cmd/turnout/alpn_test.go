package main

import (
	"crypto/tls"
	"testing"
)

// TestALPNOfCertificates: HTTP/2 is offered whatever certificate a host has. There it is left out where two hosts have one
// certificate, so that browsers do not bring requests over a connection made for the other; here they get 421.
func TestALPNOfCertificates(t *testing.T) {
	ca := newAuthority(t, "authority")
	dir := t.TempDir()
	_, ownKey, own := sign(t, ca, "own.test")
	_, sameKey, same := sign(t, ca, "n1.test n2.test")
	_, defaultKey, text := sign(t, ca, "o.test")
	whole := text + keyPEM(t, defaultKey)
	write(t, dir, "all.yaml", []byte(
		tlsRoute("own", "edge", "certificate", own, "key", keyPEM(t, ownKey))+
			tlsRoute("n1", "edge", "certificate", same, "key", keyPEM(t, sameKey))+tlsRoute("n2", "edge", "certificate", same, "key", keyPEM(t, sameKey))+
			tlsRoute("o", "edge", "certificate", whole)+tlsRoute("none", "edge")))
	for disabled, rows := range map[string]map[string][]string{ // hosts by the row they are
		"false": {"n1, n2 with identical certificate text: ALPN none on both": {"n1.test", "n2.test"}, "o whose certificate field equals the full DEFAULT_CERTIFICATE text, key included (validation off): ALPN none": {"o.test"}, "no certificate: ALPN none": {"none.test"}, "own certificate": {"own.test"}, "no route": {"nobody.test"}, "no name": {""}},
		"true":  {"own certificate, ROUTER_DISABLE_HTTP2=true: ALPN none": {"own.test"}, "no certificate: ALPN none, off": {"none.test"}},
	} {
		p := startRouter(t, []string{"DEFAULT_CERTIFICATE=" + whole, "EXTENDED_VALIDATION=false", "ROUTER_DISABLE_HTTP2=" + disabled}, "run", "--manifests", dir)
		want := map[string]string{"false": "h2", "true": "http/1.1"}[disabled]
		for id, hosts := range rows {
			for _, host := range hosts {
				c, err := tls.Dial("tcp", p.https, &tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
				if err != nil {
					t.Errorf("%s, %q: %v", id, host, err)
					continue
				}
				if got := c.ConnectionState().NegotiatedProtocol; got != want {
					t.Errorf("%s, %q: ALPN agrees on %q, want %q", id, host, got, want)
				}
				c.Close()
			}
		}
	}
}
