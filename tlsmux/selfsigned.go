package tlsmux

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"turnout/internal/keypair"
	"turnout/internal/opensslkey"
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

// CheckDefaultCertificate says why LoadDefaultCertificate would fail, nil if it would not.
func CheckDefaultCertificate(src DefaultCertificate) error {
	_, err := src.load()
	return err
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
	if !keypair.HasKey(text) {
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

// parseCertificate reads what keypair.ParseBundle does, and says where it comes from.
func parseCertificate(from string, text []byte) (*tls.Certificate, error) {
	cert, err := keypair.ParseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("cannot use default certificate from %s: %w", from, err)
	}
	return &cert, nil
}
