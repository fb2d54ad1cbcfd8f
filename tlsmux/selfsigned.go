package tlsmux

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"turnout/internal/opensslkey"
	"turnout/internal/strictpem"
	"turnout/routing/keypair"
)

// SelfSigned makes a certificate for `*.domain`, or for localhost if domain is empty, with a new ECDSA P-256 key. It is
// valid from one hour before now, for 3652 days.
func SelfSigned(domain string, now time.Time) (*tls.Certificate, error) {
	name := "localhost"
	if domain != "" {
		name = "*." + domain
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make default certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).SetBit(new(big.Int), 63, 1))
	if err != nil {
		return nil, fmt.Errorf("cannot make default certificate: %w", err)
	}
	from := now.Add(-time.Hour)
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)), // RFC 5280 section 4.1.2.2: positive
		Subject:      pkix.Name{CommonName: "openshift-router"},
		DNSNames:     []string{name},
		NotBefore:    from, NotAfter: from.AddDate(0, 0, 3652),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make default certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot make default certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// DefaultCertificate says where the default certificate comes from. The first field that is set counts; with none a
// certificate is made.
type DefaultCertificate struct {
	Content string // PEM text of certificates and key
	Path    string // file with the same
	Dir     string // directory with tls.crt and, unless that holds a key too, tls.key
	Domain  string // of the router, for the certificate that is made; "" = localhost
}

// LoadDefaultCertificate reads the default certificate, or makes it.
func LoadDefaultCertificate(src DefaultCertificate) (*tls.Certificate, error) {
	cert, err := src.load()
	if err != nil {
		return nil, err
	}
	cert.PrivateKey = opensslkey.Wrap(cert.PrivateKey)
	return cert, nil
}

func (src *DefaultCertificate) load() (*tls.Certificate, error) {
	switch {
	case src.Content != "":
		return parseCertificate("DEFAULT_CERTIFICATE", []byte(src.Content))
	case src.Path != "":
		text, err := os.ReadFile(src.Path)
		if err != nil {
			return nil, fmt.Errorf("cannot read default certificate: %w", err)
		}
		return parseCertificate(src.Path, text)
	case src.Dir != "":
		return loadDir(src.Dir)
	}
	return SelfSigned(src.Domain, time.Now())
}

func loadDir(dir string) (*tls.Certificate, error) {
	path := filepath.Join(dir, "tls.crt")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read default certificate: %w", err)
	}
	if !hasKey(text) {
		key, err := os.ReadFile(filepath.Join(dir, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("cannot read key of default certificate: %w", err)
		}
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		text = append(text, key...)
	}
	return parseCertificate(path, text)
}

// isKeyBlock tells whether a block counts as a private key. Those with headers, encrypted the old way, do not.
func isKeyBlock(b *pem.Block) bool {
	switch b.Type {
	case "RSA PRIVATE KEY", "PRIVATE KEY", "ANY PRIVATE KEY", "DSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "EC PRIVATE KEY":
		return len(b.Headers) == 0
	}
	return false
}

func hasKey(text []byte) bool {
	for {
		var b *pem.Block
		if b, text = pem.Decode(text); b == nil {
			return false
		}
		if isKeyBlock(b) {
			return true
		}
	}
}

// parseCertificate reads PEM text that holds certificates, the leaf first, and a key, in any order. Nothing of the text gets
// into errors.
func parseCertificate(from string, text []byte) (*tls.Certificate, error) {
	blocks, err := strictpem.Decode(text)
	var certs, key []byte
	for _, b := range blocks {
		switch {
		case b.Type == "CERTIFICATE" || b.Type == "X509 CERTIFICATE":
			certs = append(certs, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Bytes})...)
		case key == nil && isKeyBlock(b):
			key = pem.EncodeToMemory(b)
		}
	}
	switch {
	case err != nil:
	case certs == nil:
		err = errors.New("no certificate in it")
	case key == nil:
		err = errors.New("no private key in it")
	default:
		var cert tls.Certificate
		if cert, err = keypair.Parse(certs, key); err == nil {
			return &cert, nil
		}
	}
	return nil, fmt.Errorf("cannot use default certificate from %s: %w", from, err)
}
