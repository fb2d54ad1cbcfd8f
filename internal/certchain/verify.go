// Package certchain verifies the certificate chains of untrusted peers: clients and endpoints. One
// verification costs a bounded amount of work for all chains and for all authorities that a tenant
// names. The caller may do other work between signature checks.
//
//	certificates sent ─┐  bounds: number, issuers, keys      one chain at a time, by crypto/x509
//	                   ├────────────────────► candidates ─────────────────────► verified chain
//	Set of authorities ┘  no signature is checked            each signature check is paid for
package certchain

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Bounds of one verification. Those above MaxWork apply before the first signature check.
const (
	// MaxSent is the number of certificates that a peer may send, its own included.
	MaxSent = 16
	// MaxIssuers is the number of possible issuers of one certificate: certificates with its
	// issuer's name, a key of the right kind, and no other key identifier.
	MaxIssuers = 8
	// MaxReach is the number of candidate certificates of a verification.
	MaxReach = 32
	// MaxLength is the number of certificates of a chain.
	MaxLength = 12
	// MaxNames is the number of names, name constraints and policies of a chain: crypto/x509
	// compares them with each other.
	MaxNames = 1024
	// MaxWork is the cost limit of all signature checks of a verification, in units: four checks
	// with keys on P-521, twelve on P-384, 32 with RSA keys of 4096 bits, 128 with the usual keys.
	MaxWork = 128
)

// maxTries bounds the steps from certificate to issuer while chains are tried.
const maxTries = 128

// ErrWork is the kind of errors about chains that cost too much to verify.
var ErrWork = errors.New("verifying the certificate chain costs too much")

// Request is one verification.
type Request struct {
	Sent    []*x509.Certificate // in the order of the peer, its own first
	Usage   x509.ExtKeyUsage
	DNSName string // the name that the first certificate must be valid for; "" = not checked
	Now     time.Time
	Memory  *Memory // verified chains; nil = none
	// Spend is called before each signature check with its cost in units. Verification ends with
	// its error. nil = no accounting.
	Spend func(units int) error
	// Accept makes the last decision about a valid chain. After an error Verify tries the next
	// chain. nil = all are accepted.
	Accept func(chain []*x509.Certificate) error
}

// Check returns an ErrWork if a signature check with the key of the peer's own certificate costs
// too much.
func Check(leaf *x509.Certificate) error {
	if cost := Cost(leaf); cost > MaxKeyCost {
		return fmt.Errorf("%w: the key of a certificate costs %d units; allowed: %d", ErrWork, cost, MaxKeyCost)
	}
	return nil
}

// Verify returns a chain from r.Sent[0], which must exist, to an anchor of s. It returns an
// ErrWork, an error of crypto/x509, or the error of r.Spend or r.Accept.
func (s *Set) Verify(r *Request) ([]*x509.Certificate, error) {
	if len(r.Sent) > MaxSent {
		return nil, fmt.Errorf("%w: %d certificates; allowed: %d", ErrWork, len(r.Sent), MaxSent)
	}
	if err := Check(r.Sent[0]); err != nil {
		return nil, err
	}
	key := s.keyOf(r)
	if chain := s.known(&key, r); chain != nil {
		return chain, nil
	}
	w := &walk{set: s, Request: r, issuers: map[*x509.Certificate][]*x509.Certificate{}}
	if err := w.explore(); err != nil {
		return nil, err
	}
	chain, err := w.run()
	if err == nil && r.Memory != nil && !w.below {
		r.Memory.remember(&key, s, r, chain)
	}
	return chain, err
}

// known returns the chain that was verified for the same certificates. It returns nil if there is
// none or it is no longer accepted.
func (s *Set) known(key *[32]byte, r *Request) []*x509.Certificate {
	if r.Memory == nil {
		return nil
	}
	chain := r.Memory.recall(key, s, r)
	if chain == nil || r.DNSName != "" && chain[0].VerifyHostname(r.DNSName) != nil || r.Accept != nil && r.Accept(chain) != nil {
		return nil
	}
	return chain
}

// walk is one running verification.
type walk struct {
	*Request
	set     *Set
	issuers map[*x509.Certificate][]*x509.Certificate // possible issuers, by certificate
	anchors []*x509.Certificate                       // among the certificates of the walk

	spent int
	tries int
	below bool  // the accepted chain ends below a root of the system
	fatal error // ends the walk
	err   error // of the chains that were tried
}

// explore finds the candidates for all chains, without a signature check.
func (w *walk) explore() error {
	reached := []*x509.Certificate{w.Sent[0]}
	if at := slices.IndexFunc(w.set.all, func(a *authority) bool { return a.anchor && bytes.Equal(a.der, w.Sent[0].Raw) }); at >= 0 {
		w.anchors = append(w.anchors, w.Sent[0])
		return nil
	}
	for i := 0; i < len(reached); i++ {
		c := reached[i]
		if slices.Contains(w.anchors, c) {
			continue
		}
		candidates, err := w.candidates(c)
		if err != nil {
			return err
		}
		w.issuers[c] = candidates
		for _, issuer := range candidates {
			if !slices.Contains(reached, issuer) {
				reached = append(reached, issuer)
			}
		}
		if len(reached) > MaxReach {
			return fmt.Errorf("%w: more than %d certificates come into question", ErrWork, MaxReach)
		}
	}
	return nil
}

// candidates returns the certificates that may have issued c, anchors first.
func (w *walk) candidates(c *x509.Certificate) (found []*x509.Certificate, err error) {
	add := func(issuer *x509.Certificate) bool {
		if !comesIntoQuestion(issuer, c) || slices.ContainsFunc(found, issuer.Equal) {
			return false
		}
		found = append(found, issuer)
		if err == nil {
			err = Check(issuer)
		}
		if len(found) > MaxIssuers {
			err = fmt.Errorf("%w: more than %d issuers of one certificate come into question", ErrWork, MaxIssuers)
		}
		return true
	}
	for _, anchors := range [...]bool{true, false} {
		for _, a := range w.set.all {
			if a.anchor != anchors || a.subject != string(c.RawIssuer) || err != nil {
				continue
			}
			if issuer := a.parse(); add(issuer) && anchors && !slices.Contains(w.anchors, issuer) {
				w.anchors = append(w.anchors, issuer)
			}
		}
	}
	for _, sent := range w.Sent[1:] {
		if err == nil {
			add(sent)
		}
	}
	return found, err
}

// comesIntoQuestion reports whether issuer may have issued c, without checking a signature.
func comesIntoQuestion(issuer, c *x509.Certificate) bool {
	authority := issuer.BasicConstraintsValid && issuer.IsCA || issuer.Version < 3 && !issuer.BasicConstraintsValid
	sameKey := len(issuer.SubjectKeyId) == 0 || len(c.AuthorityKeyId) == 0 || bytes.Equal(issuer.SubjectKeyId, c.AuthorityKeyId)
	maySign := issuer.KeyUsage == 0 || issuer.KeyUsage&x509.KeyUsageCertSign != 0
	return bytes.Equal(issuer.RawSubject, c.RawIssuer) && authority && sameKey && maySign && verifies(issuer, c)
}

// run tries the chains.
func (w *walk) run() ([]*x509.Certificate, error) {
	chain := w.climb([]*x509.Certificate{w.Sent[0]})
	switch {
	case chain != nil:
		return chain, nil
	case w.fatal != nil:
		return nil, w.fatal
	case w.err != nil:
		return nil, w.err
	}
	// No chain leads to an anchor. crypto/x509 supplies the error, without a signature check.
	_, err := w.Sent[0].Verify(x509.VerifyOptions{Roots: x509.NewCertPool(), CurrentTime: w.Now, KeyUsages: []x509.ExtKeyUsage{w.Usage}, DNSName: w.DNSName})
	if err == nil {
		err = x509.UnknownAuthorityError{Cert: w.Sent[0]}
	}
	return nil, err
}

// climb returns the first accepted chain that begins with path, nil if there is none.
func (w *walk) climb(path []*x509.Certificate) []*x509.Certificate {
	if w.tries++; w.tries > maxTries && w.fatal == nil {
		w.fatal = fmt.Errorf("%w: more than %d chains come into question", ErrWork, maxTries)
	}
	last := path[len(path)-1]
	switch {
	case w.fatal != nil:
		return nil
	case slices.Contains(w.anchors, last):
		return w.try(path, false)
	}
	if w.set.system != nil {
		if chain := w.try(path, true); chain != nil || w.fatal != nil {
			return chain
		}
	}
	if len(path) == MaxLength {
		return nil
	}
	for _, issuer := range w.issuers[last] {
		if slices.Contains(path, issuer) {
			continue
		}
		if chain := w.climb(append(path[:len(path):len(path)], issuer)); chain != nil || w.fatal != nil {
			return chain
		}
	}
	return nil
}

// systemCost is the assumed cost of a signature check with a root of the system.
const systemCost = 4 * Unit

// try verifies one chain with crypto/x509. The chain ends at an anchor, or at the certificate below
// a root of the system.
//
// crypto/x509 finds issuers by name and checks the signatures of all of them. Therefore it gets
// copies that are named after their position in the chain, so that each has one issuer. The copies
// of a chain below a root of the system end with the real name.
func (w *walk) try(path []*x509.Certificate, below bool) []*x509.Certificate {
	if w.fatal = namesBounded(path); w.fatal != nil {
		return nil
	}
	opts := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: w.Now, KeyUsages: []x509.ExtKeyUsage{w.Usage}, DNSName: w.DNSName}
	if below {
		opts.Roots = w.set.system
	}
	next := 1 // index of the certificate with the next key
	pay := func() error {
		cost := systemCost
		if next < len(path) {
			cost = Cost(path[next])
		} else if !below {
			return nil
		}
		next++
		w.fatal = w.spend(cost)
		return w.fatal
	}
	var leaf *x509.Certificate
	for i, c := range path {
		placed := *c
		placed.RawSubject = []byte(strconv.Itoa(i))
		if i < len(path)-1 || !below {
			placed.RawIssuer = []byte(strconv.Itoa(i + 1))
		}
		paid := func([]*x509.Certificate) error { return pay() }
		switch {
		case i == 0:
			leaf = &placed
			if len(path) == 1 && !below {
				opts.Roots.AddCert(leaf)
			}
		case i == len(path)-1 && !below:
			opts.Roots.AddCertWithConstraint(&placed, paid)
		default:
			opts.Intermediates.AddCertWithConstraint(&placed, paid)
		}
	}
	if pay() != nil {
		return nil
	}
	_, err := leaf.Verify(opts)
	if w.fatal != nil {
		return nil
	}
	if err == nil && w.Accept != nil {
		err = w.Accept(path)
		w.err = err // more specific than the errors of other chains
	}
	if err == nil {
		w.below = below
		return path
	}
	if w.err == nil && !below {
		w.err = err
	}
	return nil
}

// spend accounts for a signature check.
func (w *walk) spend(cost int) error {
	if w.spent += cost; w.spent > MaxWork {
		return fmt.Errorf("%w: more than %d units of signature checks", ErrWork, MaxWork)
	}
	if w.Spend == nil {
		return nil
	}
	return w.Spend(cost)
}

// namesBounded returns an ErrWork if a chain has more than MaxNames.
func namesBounded(path []*x509.Certificate) error {
	n := 0
	for _, c := range path {
		n += len(c.DNSNames) + len(c.EmailAddresses) + len(c.IPAddresses) + len(c.URIs) + len(c.Policies) + 2*len(c.PolicyMappings) +
			len(c.PermittedDNSDomains) + len(c.ExcludedDNSDomains) + len(c.PermittedIPRanges) + len(c.ExcludedIPRanges) +
			len(c.PermittedEmailAddresses) + len(c.ExcludedEmailAddresses) + len(c.PermittedURIDomains) + len(c.ExcludedURIDomains) +
			len(c.ExtKeyUsage) + len(c.UnknownExtKeyUsage)
	}
	if n > MaxNames {
		return fmt.Errorf("%w: %d names, constraints and policies; allowed: %d", ErrWork, n, MaxNames)
	}
	return nil
}
