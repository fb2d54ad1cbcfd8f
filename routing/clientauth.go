package routing

import (
	"fmt"
	"strconv"

	"turnout/internal/expression"
	"turnout/tlsmux/clientcert"
)

// ClientAuthSpec is what clients of a host have to show of themselves in the TLS handshake, as plain data.
type ClientAuthSpec struct {
	Mode     clientcert.Mode
	CA       string // authorities in PEM; looked at with Optional and Required only
	Subjects string // regular expression (RE2) that the one-line subject has to match somewhere; "" = any. Who has no certificate has no subject
}

// ClientAuth is a compiled ClientAuthSpec. It is immutable; rules and listeners with the same texts share one.
// nil stands for what the router is configured with for all hosts.
type ClientAuth struct {
	sum      contentSum
	mode     clientcert.Mode
	trust    *clientcert.Trust
	subjects *expression.Expression
}

// Mode says whether clients are asked for a certificate, and what becomes of those without.
func (a *ClientAuth) Mode() clientcert.Mode { return a.mode }

// Trust is what certificates are judged by, nil if they are not asked for, or not judged.
func (a *ClientAuth) Trust() *clientcert.Trust { return a.trust }

// Subjects is what the one-line subject has to match somewhere, nil = anything.
func (a *ClientAuth) Subjects() *expression.Expression { return a.subjects }

// ID names the content: two that ask the same of clients, of whatever tables, have the same ID.
func (a *ClientAuth) ID() [32]byte { return a.sum }

// same reports whether a and b, which may be nil, ask the same of clients.
func (a *ClientAuth) same(b *ClientAuth) bool {
	return a == b || a != nil && b != nil && a.sum == b.sum
}

// equal reports whether s and o, which may be nil, say the same.
func (s *ClientAuthSpec) equal(o *ClientAuthSpec) bool {
	return s == o || s != nil && o != nil && *s == *o
}

// sum returns the identity of the content of s.
func (s *ClientAuthSpec) sum() contentSum {
	return sumOf(strconv.Itoa(int(s.Mode)), s.CA, s.Subjects)
}

// parse compiles s.
func (s *ClientAuthSpec) parse(sum contentSum) (*ClientAuth, error) {
	a := &ClientAuth{sum: sum, mode: s.Mode}
	if s.Mode == clientcert.Optional || s.Mode == clientcert.Required {
		bundle, err := clientcert.ParseBundle([]byte(s.CA))
		if err != nil {
			return nil, fmt.Errorf("cannot use authorities of clients: %w", err)
		}
		a.trust = clientcert.NewTrust(bundle, nil)
	}
	if s.Subjects != "" {
		var err error
		if a.subjects, err = expression.New(s.Subjects, expression.Somewhere, expression.Tenant()); err != nil {
			return nil, fmt.Errorf("cannot use filter of clients' subjects: %w", err)
		}
	}
	return a, nil
}
