package clientcert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"testing"
	"time"

	"turnout/internal/certchain"
	"turnout/internal/testkit/testcert"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair is a certificate and its key.
type pair = testcert.Pair

// issue makes a certificate signed by issuer; without one it signs itself and is an authority.
func issue(t testing.TB, issuer *pair, name string, change ...func(*x509.Certificate)) *pair {
	t.Helper()
	form := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(1000 * time.Hour)}
	if issuer == nil {
		testcert.Authority(form)
	}
	for _, c := range change {
		c(form)
	}
	return testcert.Sign(t, form, issuer)
}

func points(urls ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.CRLDistributionPoints = urls }
}

// list makes a revocation list of issuer, current from an hour ago for an hour.
func list(t testing.TB, issuer *pair, change func(*x509.RevocationList), revoked ...*pair) []byte {
	t.Helper()
	form := &x509.RevocationList{ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	if change != nil {
		change(form)
	}
	var certs []*x509.Certificate
	for _, r := range revoked {
		certs = append(certs, r.Cert)
	}
	return issuer.Revoke(t, form, certs...)
}

// parsed is list as it is read.
func parsed(t testing.TB, der []byte) *List {
	t.Helper()
	lists, err := ParseLists(der, nil)
	must(t, err)
	return lists[0]
}

func pemOf(kind string, ders ...[]byte) (text []byte) {
	for _, der := range ders {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	return text
}

func bundle(t testing.TB, of ...*pair) *Bundle {
	t.Helper()
	var text []byte
	for _, p := range of {
		text = append(text, pemOf("CERTIFICATE", p.Cert.Raw)...)
	}
	b, err := ParseBundle(text)
	must(t, err)
	return b
}

// judge calls Trust.Verify for a client that sends a chain.
func judge(t testing.TB, trust *Trust, sent ...*pair) error {
	t.Helper()
	r := certchain.Request{Now: time.Now()}
	for _, p := range sent {
		r.Sent = append(r.Sent, p.Cert)
	}
	return trust.Verify(r)
}

// extension is one of a list, critical.
func extension(t testing.TB, oid asn1.ObjectIdentifier, value []byte) func(*x509.RevocationList) {
	return func(l *x509.RevocationList) {
		l.ExtraExtensions = append(l.ExtraExtensions, pkix.Extension{Id: oid, Critical: true, Value: value})
	}
}

// scoped is the extension that says what a list is about.
func scoped(t testing.TB, fields ...asn1.RawValue) func(*x509.RevocationList) {
	var content []byte
	for _, f := range fields {
		der, err := asn1.Marshal(f)
		must(t, err)
		content = append(content, der...)
	}
	der, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: content})
	must(t, err)
	return extension(t, oidDistributed, der)
}

func flag(tag int) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: []byte{0xff}}
}

// point names a distribution point.
func point(t testing.TB, uri string) asn1.RawValue {
	der, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(uri)})
	must(t, err)
	names, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: der})
	must(t, err)
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: names}
}
