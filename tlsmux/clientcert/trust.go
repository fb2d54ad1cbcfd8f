package clientcert

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"turnout/internal/certchain"
)

// Trust is what certificates of clients are judged by. It is made whole and never changes.
type Trust struct {
	bundle  *Bundle
	checked bool // for revocation
	lists   map[string][]*List
}

// NewTrust puts together what one handshake is to be judged by. lists is not kept. Without lists, nil, revocation is not
// looked at; with a slice of none every certificate is refused.
func NewTrust(b *Bundle, lists []*List) *Trust {
	t := &Trust{bundle: b, checked: lists != nil, lists: map[string][]*List{}}
	for _, l := range lists {
		t.lists[l.issuer] = append(t.lists[l.issuer], l)
	}
	for _, of := range t.lists {
		slices.SortStableFunc(of, newest)
	}
	return t
}

// Bundle returns the authorities.
func (t *Trust) Bundle() *Bundle { return t.bundle }

// Lists returns the number of revocation lists.
func (t *Trust) Lists() (n int) {
	for _, of := range t.lists {
		n += len(of)
	}
	return n
}

// ListEnd is when the revocation lists of an issuer end.
type ListEnd struct {
	Issuer string // its name, as RFC 4514 writes it
	At     time.Time
}

// ListEnds returns when the lists of each issuer end, by name. Of lists for the same certificates the newest counts, of
// those for several parts of them the one that ends first.
func (t *Trust) ListEnds() []ListEnd {
	ends := make([]ListEnd, 0, len(t.lists))
	for _, of := range t.lists {
		end := ListEnd{Issuer: of[0].header.Issuer.String()}
		var seen []*scope
		for _, l := range of {
			if slices.ContainsFunc(seen, l.scope.equal) {
				continue
			}
			seen = append(seen, &l.scope)
			if end.At.IsZero() || l.NextUpdate.Before(end.At) {
				end.At = l.NextUpdate
			}
		}
		ends = append(ends, end)
	}
	slices.SortFunc(ends, func(a, b ListEnd) int { return cmp.Or(cmp.Compare(a.Issuer, b.Issuer), a.At.Compare(b.At)) })
	return slices.CompactFunc(ends, func(a, b ListEnd) bool { return a.Issuer == b.Issuer }) // names written alike, though encoded otherwise
}

// Reasons to refuse a certificate whose chain is good.
var (
	// ErrRevoked: a revocation list names a certificate of the chain.
	ErrRevoked = errors.New("certificate is revoked")
	// ErrNoList: there is no revocation list for a certificate of the chain.
	ErrNoList = errors.New("no revocation list of the issuer")
	// ErrListExpired: the list for a certificate of the chain is not current.
	ErrListExpired = errors.New("the issuer's revocation list is not current")
)

// Verify judges a client of a full or resumed handshake. r has its certificates and the budget;
// Verify sets the usage and Accept. It accepts a client without a certificate, and a client with at
// least one good chain.
func (t *Trust) Verify(r certchain.Request) error {
	if len(r.Sent) == 0 {
		return nil
	}
	r.Usage = x509.ExtKeyUsageClientAuth
	if t.checked {
		r.Accept = func(chain []*x509.Certificate) error { return t.revocation(chain, r.Now) }
	}
	_, err := t.bundle.set.Verify(&r)
	return err
}

// revocation looks every certificate of a chain up, the root too: an authority that revokes a root says so in its own list.
func (t *Trust) revocation(chain []*x509.Certificate, now time.Time) error {
	for i, cert := range chain {
		issuer := chain[min(i+1, len(chain)-1)]
		if err := t.lookUp(cert, issuer, now); err != nil {
			return fmt.Errorf("%w: %s", err, cert.Subject)
		}
	}
	return nil
}

// lookUp asks the newest list that is current; when none is, that is the reason.
func (t *Trust) lookUp(cert, issuer *x509.Certificate, now time.Time) error {
	reason := ErrNoList
	for _, l := range t.lists[string(issuer.RawSubject)] {
		if !l.covers(cert) || !l.signedBy(issuer) {
			continue
		}
		if !l.current(now) {
			reason = ErrListExpired
			continue
		}
		switch revoked, err := l.names(cert); {
		case err != nil:
			return fmt.Errorf("%w that is understood: %w", ErrNoList, err)
		case revoked:
			return ErrRevoked
		}
		return nil
	}
	return reason
}
