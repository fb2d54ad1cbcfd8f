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

// Strangers is NewStrangers for the name and the key of an authority.
func Strangers(t testing.TB, root *x509.Certificate, n int, curve elliptic.Curve) tls.Certificate {
	t.Helper()
	sent, err := NewStrangers(root.RawSubject, root.SubjectKeyId, n, curve)
	must(t, err)
	return sent
}

// NewStrangers makes a certificate of a client, or of the server a.test, with n authorities on
// curve. By their names and identifiers, each of them may have issued the certificate. So may the
// authority with the name and key identifier root and the key rootKey. In fact none of them has,
// but only a signature check finds that out.
func NewStrangers(root, rootKey []byte, n int, curve elliptic.Curve) (tls.Certificate, error) {
	name, id := pkix.Name{CommonName: "stranger"}, []byte{1, 2, 3, 4}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	sent := tls.Certificate{PrivateKey: own}
	sign := func(form, parent *x509.Certificate, public *ecdsa.PublicKey) error {
		form.SerialNumber, form.NotBefore, form.NotAfter = big.NewInt(int64(len(sent.Certificate)+1)), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, form, parent, public, own)
		sent.Certificate = append(sent.Certificate, der)
		return err
	}
	err = sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "client"}, DNSNames: []string{"a.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, &x509.Certificate{Subject: name, SubjectKeyId: id}, &own.PublicKey)
	for i := 0; i < n && err == nil; i++ {
		form := &x509.Certificate{Subject: name, SubjectKeyId: id}
		Authority(form)
		err = sign(form, &x509.Certificate{RawSubject: root, SubjectKeyId: rootKey}, &key.PublicKey)
	}
	return sent, err
}
