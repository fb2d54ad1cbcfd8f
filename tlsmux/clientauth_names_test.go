package tlsmux

import (
	"crypto/tls"
	"net"
	"testing"

	"turnout/tlsmux/clientcert"
)

// shredded sends its first write, the ClientHello, in records of one byte each.
type shredded struct {
	net.Conn
	begun bool
}

func (c *shredded) Write(p []byte) (int, error) {
	if c.begun {
		return c.Conn.Write(p)
	}
	c.begun = true
	_, err := c.Conn.Write(fragmented(p, 1))
	return len(p), err
}

// TestNoWayAroundClientCertificates: whatever name is asked for and however the ClientHello is cut, nobody gets in without
// a certificate where one is required.
func TestNoWayAroundClientCertificates(t *testing.T) {
	trust := clientcert.NewTrust(bundleOf(t, issueClient(t, nil, "ca")), nil)
	s := serve(t, Config{Policy: policyWith(t, PolicyConfig{ClientAuth: clientcert.Required, Trust: trust})})
	for _, name := range []string{"", "shared.test", "SHARED.Test", "x.own.test", "y.own.test", "a.default.test", "nobody.test", "shared.test."} {
		for what, wrap := range map[string]func(net.Conn) net.Conn{
			"whole":    func(c net.Conn) net.Conn { return c },
			"segments": func(c net.Conn) net.Conn { return slowly{c} },
			"records":  func(c net.Conn) net.Conn { return &shredded{Conn: c} },
		} {
			for _, version := range bothVersions {
				c := tls.Client(wrap(s.dial(t)), &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
				err := c.Handshake()
				if err == nil {
					_, err = c.Read(make([]byte, 1))
				}
				if err == nil {
					t.Errorf("%q, %s, %s: let in", name, what, tls.VersionName(version))
				}
				if f := get(t, "refusal", s.failed); f.err == nil {
					t.Errorf("%q, %s, %s: no reason", name, what, tls.VersionName(version))
				}
			}
		}
	}
	if n := s.mux.Stats().Terminated.Load(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}
