package clientcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"sync/atomic"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var serials atomic.Int64

// issue makes a certificate signed by issuer; without one it signs itself and is an authority.
func issue(t testing.TB, issuer *pair, name string, change ...func(*x509.Certificate)) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serials.Add(1)), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	if issuer == nil {
		authority(template)
	}
	for _, c := range change {
		c(template)
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &pair{cert, key}
}

func authority(c *x509.Certificate) {
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
}

func points(urls ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.CRLDistributionPoints = urls }
}

// list makes a revocation list of issuer, current from an hour ago for an hour.
func list(t testing.TB, issuer *pair, change func(*x509.RevocationList), revoked ...*pair) []byte {
	t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(serials.Add(1)), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, r := range revoked {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: r.cert.SerialNumber, RevocationTime: time.Now()})
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, issuer.cert, issuer.key)
	must(t, err)
	return der
}

// parsed is list as it is read.
func parsed(t testing.TB, der []byte) *List {
	t.Helper()
	lists, err := ParseLists(der)
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
		text = append(text, pemOf("CERTIFICATE", p.cert.Raw)...)
	}
	b, err := ParseBundle(text)
	must(t, err)
	return b
}

// judge does what crypto/tls and Trust.Verify do with a client that sends a chain.
func judge(t testing.TB, trust *Trust, sent ...*pair) error {
	t.Helper()
	between := x509.NewCertPool()
	var cs tls.ConnectionState
	for i, p := range sent {
		cs.PeerCertificates = append(cs.PeerCertificates, p.cert)
		if i > 0 {
			between.AddCert(p.cert)
		}
	}
	if len(sent) > 0 {
		var err error
		cs.VerifiedChains, err = sent[0].cert.Verify(x509.VerifyOptions{Roots: trust.Bundle().Pool(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return err
		}
	}
	return trust.Verify(&cs, time.Now())
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
