package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"
)

// Strangers makes a certificate of a client with n authorities on curve that may all have issued it, and that root may have
// issued, as far as names and key identifiers tell. None of it is true, which only signature checks find.
func Strangers(t testing.TB, root *x509.Certificate, n int, curve elliptic.Curve) tls.Certificate {
	t.Helper()
	name, id := pkix.Name{CommonName: "stranger"}, []byte{1, 2, 3, 4}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	must(t, err)
	serial := int64(0)
	sign := func(form, parent *x509.Certificate, public *ecdsa.PublicKey) []byte {
		serial++
		form.SerialNumber, form.NotBefore, form.NotAfter = big.NewInt(serial), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, form, parent, public, own)
		must(t, err)
		return der
	}
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}, DNSNames: []string{"a.test"}}
	sent := tls.Certificate{PrivateKey: own, Certificate: [][]byte{sign(leaf, &x509.Certificate{Subject: name, SubjectKeyId: id}, &own.PublicKey)}}
	for range n {
		form := &x509.Certificate{Subject: name, SubjectKeyId: id}
		Authority(form)
		sent.Certificate = append(sent.Certificate, sign(form, &x509.Certificate{RawSubject: root.RawSubject, SubjectKeyId: root.SubjectKeyId}, &key.PublicKey))
	}
	return sent
}
