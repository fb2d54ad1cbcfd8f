package site

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"time"
)

// KeyPair is a certificate and its key, each as PEM.
type KeyPair struct {
	Certificate, Key string
}

// NewKeyPair makes a certificate for host that signs itself, with a key on P-256 or an RSA-2048 one, that is valid for a day.
func NewKeyPair(host string, withRSA bool) KeyPair {
	var key crypto.Signer = Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	if withRSA {
		key = Must(rsa.GenerateKey(rand.Reader, 2048))
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:         true, // OpenSSL verifies it against itself only then

		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate := Must(x509.CreateCertificate(rand.Reader, form, form, key.Public(), key))
	return KeyPair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: Must(x509.MarshalPKCS8PrivateKey(key))})),
	}
}

// TLS is the pair as crypto/tls has it.
func (k KeyPair) TLS() tls.Certificate {
	return Must(tls.X509KeyPair([]byte(k.Certificate), []byte(k.Key)))
}

// DER is the certificate as a client sees it.
func (k KeyPair) DER() []byte { return k.TLS().Certificate[0] }
