package tlsmux

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// hostAuth compiles what clients of one host have to show.
func hostAuth(t *testing.T, spec routing.ClientAuthSpec) *routing.ClientAuth {
	t.Helper()
	table, rejected := routing.CompileRules(routing.Options{}, nil, []routing.RuleSpec{{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "r", UID: "u"}, Host: "a.test", Termination: routing.TermEdge, ClientAuth: &spec,
	}})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	return table.SNI("a.test").Arrival.Auth
}

// TestSessionsOfAHost: a session is resumed where clients are asked for the same, by whatever router that shares the secrets, and
// nowhere else; configurations are made once, and are gone when nobody asks for that any more.
func TestSessionsOfAHost(t *testing.T) {
	form := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}}
	testcert.Authority(form)
	authority := testcert.Sign(t, form, nil)
	ca := authority.PEM()
	specs := []routing.ClientAuthSpec{{Mode: clientcert.Required, CA: ca}, {Mode: clientcert.Optional, CA: ca}, {Mode: clientcert.Unverified}}
	secret := bytes.Repeat([]byte{1}, MinTicketSecret)
	var policies [2]*Policy
	for i := range policies {
		var err error
		if policies[i], err = NewPolicy(PolicyConfig{}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // before the secrets are there, and after
			policies[i].snapshotOf(hostAuth(t, specs[0]))
		}
		if err := policies[i].ShareTickets([][]byte{secret}); err != nil {
			t.Fatal(err)
		}
	}
	var auths []*routing.ClientAuth
	for _, s := range specs {
		auths = append(auths, hostAuth(t, s))
	}
	auths = append(auths, nil)
	configOf := func(p *Policy, a *routing.ClientAuth) *tls.Config {
		c, from, _ := p.config(new(Hello), a, true)
		if (from.trust != nil) != (a != nil && a.Trust() != nil) {
			t.Errorf("the certificate is judged by %v", from.trust)
		}
		return c
	}
	if first := configOf(policies[0], auths[0]); first != configOf(policies[0], auths[0]) {
		t.Error("the configuration is made for each handshake")
	}
	served := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"a.test"}}, authority).TLS()
	shown := testcert.Sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authority).TLS()
	resumed := func(from, to *routing.ClientAuth) bool {
		client := &tls.Config{
			InsecureSkipVerify: true, ServerName: "a.test", ClientSessionCache: tls.NewLRUClientSessionCache(1), MaxVersion: tls.VersionTLS12,
			Certificates: []tls.Certificate{shown},
		}
		var last tls.ConnectionState
		for i, auth := range []*routing.ClientAuth{from, to} {
			server := configOf(policies[i], auth).Clone()
			server.GetCertificate, server.Certificates = nil, []tls.Certificate{served}
			near, far := net.Pipe()
			done := make(chan error, 1)
			go func() { done <- tls.Server(far, server).Handshake() }()
			c := tls.Client(near, client)
			if err := errors.Join(c.Handshake(), <-done); err != nil {
				t.Fatal(err)
			}
			last = c.ConnectionState()
			near.Close()
			far.Close()
		}
		return last.DidResume
	}
	for i, from := range auths {
		for j, to := range auths {
			if got := resumed(from, to); got != (i == j) {
				t.Errorf("a session of %d is resumed by %d: %t", i, j, got)
			}
		}
	}
	runtime.KeepAlive(auths)
	clear(auths)
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		runtime.GC()
		left := 0
		for _, p := range policies {
			p.own.Range(func(any, any) bool { left++; return true })
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d configurations are left", left)
		}
	}
}
