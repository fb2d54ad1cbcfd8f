// Package testcert makes certificates for tests.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Pair is a certificate and its key.
type Pair struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// Sign makes a certificate as form has it, with a key of its own on P-256, signed by issuer; without an issuer it signs
// itself. What form leaves out of serial number and validity is random, and from an hour ago to in an hour. form is filled in.
func Sign(t testing.TB, form *x509.Certificate, issuer *Pair) *Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if form.SerialNumber == nil {
		form.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
		must(t, err)
	}
	if form.NotBefore.IsZero() {
		form.NotBefore = time.Now().Add(-time.Hour)
	}
	if form.NotAfter.IsZero() {
		form.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := form, key
	if issuer != nil {
		parent, signer = issuer.Cert, issuer.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, &key.PublicKey, signer)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &Pair{cert, key}
}

// Authority makes form that of one that signs certificates and revocation lists.
func Authority(form *x509.Certificate) {
	form.IsCA, form.BasicConstraintsValid, form.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
}

// PEM is the certificate as text.
func (p *Pair) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert.Raw}))
}

// KeyPEM is the key as text, PKCS #8.
func (p *Pair) KeyPEM(t testing.TB) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// TLS is the pair as crypto/tls has it, with more of its chain.
func (p *Pair) TLS(chain ...*Pair) tls.Certificate {
	c := tls.Certificate{Certificate: [][]byte{p.Cert.Raw}, PrivateKey: p.Key, Leaf: p.Cert}
	for _, more := range chain {
		c.Certificate = append(c.Certificate, more.Cert.Raw)
	}
	return c
}

// Revoke makes the pair's revocation list as form has it, in DER. What form leaves out of number and validity is the time,
// and from a minute ago to in an hour. form is filled in.
func (p *Pair) Revoke(t testing.TB, form *x509.RevocationList, certs ...*x509.Certificate) []byte {
	t.Helper()
	if form.Number == nil {
		form.Number = big.NewInt(time.Now().UnixNano())
	}
	if form.ThisUpdate.IsZero() {
		form.ThisUpdate = time.Now().Add(-time.Minute)
	}
	if form.NextUpdate.IsZero() {
		form.NextUpdate = time.Now().Add(time.Hour)
	}
	for _, c := range certs {
		form.RevokedCertificateEntries = append(form.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, form, p.Cert, p.Key)
	must(t, err)
	return der
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
