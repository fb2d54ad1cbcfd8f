package clientcert

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"turnout/internal/keypair"
)

// maxUnsigned is the length in bytes of the longest list that is kept before the authority that has
// signed it is known. Such a list is authenticated in the first handshake with the authority.
const maxUnsigned = 512 << 10

// maxHeader is the length in bytes of a list without its entries: names, times, extensions and the
// signature. It is parsed before the signature is verified. A tiny extension takes 40 times its
// bytes.
const maxHeader = 16 << 10

// List is a certificate revocation list (RFC 5280 section 5). Its entries are read once its
// signature is verified; until then it holds their bytes. It is safe for concurrent use.
type List struct {
	ThisUpdate, NextUpdate time.Time

	issuer string               // DER
	header *x509.RevocationList // all but the entries
	scope  scope

	mu      sync.Mutex
	entries der    // not read yet
	signer  string // public key of the authority that signed the list, in DER; "" = not known yet
	revoked serials
	bad     error // error in entries that the authority has signed
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

// ParseLists reads revocation lists: one in DER, or any number in PEM. It skips other PEM blocks.
// It returns an error if there is no list, or if one is incomplete, does not parse or has an
// unsupported critical extension. It also rejects delta lists (RFC 5280 section 5.2.4) and lists
// without the time of the next update (section 5.1.2.5).
//
// The authorities of b authenticate the lists. A list that none of them has signed is stored
// unread, up to 512 KiB, until a client sends its authority; a longer one is an error. b may be nil
// as long as there are no authorities.
func ParseLists(data []byte, b *Bundle) ([]*List, error) {
	if len(data) > 0 && data[0] == tagSequence {
		l, err := parseList(data, b)
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
		l, err := parseList(block.Bytes, b)
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

func parseList(text der, b *Bundle) (*List, error) {
	l, err := parseHeader(text)
	if err != nil {
		return nil, err
	}
	if b != nil {
		for _, c := range b.certs {
			if l.signedBy(c) {
				break
			}
		}
	}
	switch {
	case l.bad != nil:
		return nil, l.bad
	case l.signer == "" && len(text) > maxUnsigned:
		return nil, fmt.Errorf("the list of %s has %d bytes, and none of the authorities has signed it; allowed: %d bytes", l.header.Issuer, len(text), maxUnsigned)
	}
	return l, nil
}

// parseHeader parses a list without its entries, with crypto/x509.
func parseHeader(text der) (*List, error) {
	list, ok := text.take(tagSequence)
	if !ok {
		return nil, errEncoding
	}
	_, fields, signed, ok := list.next()
	if !ok || signed[0] != tagSequence {
		return nil, errEncoding
	}
	start := fields
	// Skip version, algorithm, issuer and times.
	for _, tag := range [...]byte{tagInteger, tagSequence, tagSequence, tagUTCTime, tagUTCTime} {
		if fields.begins(tag) || tag == tagUTCTime && fields.begins(tagGeneralizedTime) {
			if _, _, _, ok := fields.next(); !ok {
				return nil, errEncoding
			}
		}
	}
	before, after := start[:len(start)-len(fields)], fields
	var entries der
	if after.begins(tagSequence) {
		if entries, ok = after.take(tagSequence); !ok {
			return nil, errEncoding
		}
	}
	if n := len(before) + len(after) + len(list); n > maxHeader {
		return nil, fmt.Errorf("the list has %d bytes besides its entries; allowed: %d bytes", n, maxHeader)
	}
	crl, err := x509.ParseRevocationList(element(tagSequence, element(tagSequence, before, after), list))
	if err != nil {
		return nil, err
	}
	if crl.NextUpdate.IsZero() {
		return nil, errors.New("the list does not say when the next one comes")
	}
	crl.RawTBSRevocationList = signed
	l := &List{ThisUpdate: crl.ThisUpdate, NextUpdate: crl.NextUpdate, issuer: string(crl.RawIssuer), header: crl, entries: entries}
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
	crl.Extensions = nil // they are read, and take more than their bytes
	return l, nil
}

// parseScope reads the issuing distribution point.
func parseScope(text der) (s scope) {
	bad := scope{unintelligible: true}
	content, ok := text.take(tagSequence)
	if !ok || len(text) > 0 {
		return bad
	}
	for len(content) > 0 {
		tag, field, _, ok := content.next()
		if !ok {
			return bad
		}
		yes := len(field) == 1 && field[0] != 0
		switch tag {
		case contextual | constructed:
			if s.points, ok = fullName(field); !ok {
				return bad
			}
		case contextual | 1:
			s.onlyUser = yes
		case contextual | 2:
			s.onlyAuthority = yes
		case contextual | 4, contextual | 5: // indirect lists, or attribute certificates only
			if yes {
				return bad
			}
		default: // only some reasons: other lists have the rest
			return bad
		}
	}
	return s
}

// fullName reads the URIs of a distribution point; one that is named otherwise is not understood.
func fullName(text der) (uris []string, ok bool) {
	names, ok := text.take(contextual | constructed)
	if !ok || len(text) > 0 {
		return nil, false
	}
	for len(names) > 0 {
		tag, name, _, ok := names.next()
		if !ok {
			return nil, false
		}
		if tag == contextual|6 {
			uris = append(uris, string(name))
		}
	}
	return uris, len(uris) > 0
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

// signedBy reports whether issuer signed the list. It reads the entries the first time that this is
// true.
func (l *List) signedBy(issuer *x509.Certificate) bool {
	if l.issuer != string(issuer.RawSubject) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.signer != "" {
		return l.signer == string(issuer.RawSubjectPublicKeyInfo) && maySignLists(issuer)
	}
	otherKey := len(l.header.AuthorityKeyId) > 0 && len(issuer.SubjectKeyId) > 0 && !bytes.Equal(l.header.AuthorityKeyId, issuer.SubjectKeyId)
	if otherKey || l.header.CheckSignatureFrom(issuer) != nil {
		return false
	}
	l.signer = string(issuer.RawSubjectPublicKeyInfo)
	l.revoked, l.bad = readEntries(l.entries)
	l.entries, l.header.RawTBSRevocationList = nil, nil
	return true
}

// maySignLists reports whether a certificate may sign lists, by the rules of
// x509.RevocationList.CheckSignatureFrom.
func maySignLists(c *x509.Certificate) bool {
	authority := c.BasicConstraintsValid && c.IsCA || c.Version < 3 && !c.BasicConstraintsValid
	return authority && (c.KeyUsage == 0 || c.KeyUsage&x509.KeyUsageCRLSign != 0)
}

// names reports whether the list, signed by issuer, has an entry for a certificate.
func (l *List) names(c *x509.Certificate) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revoked.has(c.SerialNumber.Bytes()), l.bad
}

// newest orders lists by age, the newest first.
func newest(a, b *List) int {
	if c := b.ThisUpdate.Compare(a.ThisUpdate); c != 0 {
		return c
	}
	return bytes.Compare(number(b), number(a))
}

func number(l *List) []byte {
	n := l.header.Number
	if n == nil {
		return nil
	}
	return n.FillBytes(make([]byte, max(20, (n.BitLen()+7)/8)))
}
