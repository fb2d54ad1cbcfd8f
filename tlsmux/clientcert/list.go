package clientcert

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"turnout/internal/keypair"
)

// List is a certificate revocation list (RFC 5280 section 5). Nobody changes it once it is read; what it remembers of
// signatures makes it safe for any goroutine.
type List struct {
	ThisUpdate, NextUpdate time.Time

	issuer  string // name in DER
	revoked map[string]struct{}
	signed  *x509.RevocationList // without its entries
	scope   scope

	mu       sync.Mutex
	verified map[[sha256.Size]byte]bool // by certificate of an issuer
}

// scope says which certificates of the issuer a list is about (RFC 5280 section 5.2.5).
type scope struct {
	points         []string // it is for certificates that name one of these; nil = for all
	onlyUser       bool
	onlyAuthority  bool
	unintelligible bool // about none that is known
}

func (s *scope) equal(o *scope) bool {
	return slices.Equal(s.points, o.points) && s.onlyUser == o.onlyUser && s.onlyAuthority == o.onlyAuthority && s.unintelligible == o.unintelligible
}

// ParseLists reads revocation lists: one in DER, or any number in PEM, where other blocks are skipped. One that does not
// end, does not parse or says things that must be understood and are not is an error; so is finding none. Lists of changes only (RFC
// 5280 section 5.2.4) and those that do not say when the next one comes (section 5.1.2.5) are errors too.
func ParseLists(data []byte) ([]*List, error) {
	if len(data) > 0 && data[0] == 0x30 { // SEQUENCE
		l, err := parseList(data)
		if err != nil {
			return nil, err
		}
		return []*List{l}, nil
	}
	blocks, err := keypair.Decode(data)
	if err != nil {
		return nil, err
	}
	var lists []*List
	for i, block := range blocks {
		if block.Type != "X509 CRL" {
			continue
		}
		l, err := parseList(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot read PEM block %d: %w", i+1, err)
		}
		lists = append(lists, l)
	}
	if len(lists) == 0 {
		return nil, errors.New("no X509 CRL block in it")
	}
	return lists, nil
}

var (
	oidDelta       = asn1.ObjectIdentifier{2, 5, 29, 27}
	oidDistributed = asn1.ObjectIdentifier{2, 5, 29, 28}
)

// removedFromList is the reason of an entry that takes a certificate off the list (RFC 5280 section 5.3.1).
const removedFromList = 8

func parseList(der []byte) (*List, error) {
	crl, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	if crl.NextUpdate.IsZero() {
		return nil, errors.New("the list does not say when the next one comes")
	}
	l := &List{
		ThisUpdate: crl.ThisUpdate, NextUpdate: crl.NextUpdate, issuer: string(crl.RawIssuer), signed: crl,
		revoked: make(map[string]struct{}, len(crl.RevokedCertificateEntries)), verified: map[[sha256.Size]byte]bool{},
	}
	for _, e := range crl.Extensions {
		switch {
		case e.Id.Equal(oidDelta):
			return nil, errors.New("the list holds changes only")
		case e.Id.Equal(oidDistributed):
			l.scope = parseScope(e.Value)
		case e.Critical:
			return nil, fmt.Errorf("critical extension %v is not known", e.Id)
		}
	}
	for i := range crl.RevokedCertificateEntries {
		entry := &crl.RevokedCertificateEntries[i]
		if j := slices.IndexFunc(entry.Extensions, func(e pkix.Extension) bool { return e.Critical }); j >= 0 {
			return nil, fmt.Errorf("critical extension %v of an entry is not known", entry.Extensions[j].Id)
		}
		if entry.ReasonCode != removedFromList {
			l.revoked[string(entry.SerialNumber.Bytes())] = struct{}{}
		}
	}
	crl.RevokedCertificateEntries = nil
	return l, nil
}

// parseScope reads the issuing distribution point.
func parseScope(der []byte) (s scope) {
	bad := scope{unintelligible: true}
	content, rest, ok := element(der, asn1.ClassUniversal, asn1.TagSequence)
	if !ok || len(rest) > 0 {
		return bad
	}
	for len(content) > 0 {
		var field asn1.RawValue
		var err error
		if content, err = asn1.Unmarshal(content, &field); err != nil || field.Class != asn1.ClassContextSpecific {
			return bad
		}
		yes := len(field.Bytes) == 1 && field.Bytes[0] != 0
		switch field.Tag {
		case 0:
			if s.points, ok = fullName(field.Bytes); !ok {
				return bad
			}
		case 1:
			s.onlyUser = yes
		case 2:
			s.onlyAuthority = yes
		case 3: // some reasons only: others are somewhere else
			return bad
		default: // other issuers' certificates, or no public key certificates
			if yes {
				return bad
			}
		}
	}
	return s
}

// fullName reads the URIs of a distribution point; one that is named otherwise is not understood.
func fullName(der []byte) (uris []string, ok bool) {
	names, rest, ok := element(der, asn1.ClassContextSpecific, 0)
	if !ok || len(rest) > 0 {
		return nil, false
	}
	for len(names) > 0 {
		var name asn1.RawValue
		var err error
		if names, err = asn1.Unmarshal(names, &name); err != nil {
			return nil, false
		}
		if name.Class == asn1.ClassContextSpecific && name.Tag == 6 {
			uris = append(uris, string(name.Bytes))
		}
	}
	return uris, len(uris) > 0
}

// element takes a constructed element off der and returns what it holds.
func element(der []byte, class, tag int) (content, rest []byte, ok bool) {
	var v asn1.RawValue
	rest, err := asn1.Unmarshal(der, &v)
	if err != nil || v.Class != class || v.Tag != tag || !v.IsCompound {
		return nil, nil, false
	}
	return v.Bytes, rest, true
}

// covers tells whether the list would name cert if it were revoked.
func (l *List) covers(cert *x509.Certificate) bool {
	authority := cert.BasicConstraintsValid && cert.IsCA
	switch s := &l.scope; {
	case s.unintelligible, s.onlyUser && authority, s.onlyAuthority && !authority:
		return false
	case s.points == nil:
		return true
	default:
		return slices.ContainsFunc(s.points, func(p string) bool { return slices.Contains(cert.CRLDistributionPoints, p) })
	}
}

// current tells whether the list may be relied on at the time now.
func (l *List) current(now time.Time) bool {
	return !now.Before(l.ThisUpdate) && !now.After(l.NextUpdate)
}

// signedBy tells whether issuer signed the list. It looks once per issuer.
func (l *List) signedBy(issuer *x509.Certificate) bool {
	key := sha256.Sum256(issuer.Raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	ok, known := l.verified[key]
	if !known {
		ok = l.issuer == string(issuer.RawSubject) && l.signed.CheckSignatureFrom(issuer) == nil
		if len(l.verified) < 64 {
			l.verified[key] = ok
		}
	}
	return ok
}

// newest orders lists by age, the newest first.
func newest(a, b *List) int {
	if c := b.ThisUpdate.Compare(a.ThisUpdate); c != 0 {
		return c
	}
	return bytes.Compare(number(b), number(a))
}

func number(l *List) []byte {
	if l.signed.Number == nil {
		return nil
	}
	return l.signed.Number.FillBytes(make([]byte, max(20, (l.signed.Number.BitLen()+7)/8)))
}
