package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// certificateSource is where the default certificate comes from: the first field
// that is not empty, or one made at start.
type certificateSource struct {
	contents string // PEM of certificate and key
	path     string // file of the same
	dir      string // folder with tls.crt and, unless that holds the key, tls.key
}

// load reads or makes the certificate. domain names the self-made one.
func (c certificateSource) load(domain string, now time.Time) (*tls.Certificate, error) {
	switch {
	case c.contents != "":
		return pairOf([]byte(c.contents), "DEFAULT_CERTIFICATE")
	case c.path != "":
		text, err := os.ReadFile(c.path)
		if err != nil {
			return nil, fmt.Errorf("cannot read default certificate: %w", err)
		}
		return pairOf(text, c.path)
	case c.dir != "":
		text, err := readPairDir(c.dir)
		if err != nil {
			return nil, fmt.Errorf("cannot read default certificate: %w", err)
		}
		return pairOf(text, c.dir)
	}
	return selfSigned(domain, now)
}

func pairOf(text []byte, from string) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("cannot use default certificate from %s: %w", from, err)
	}
	return &pair, nil
}

// readPairDir joins tls.crt and tls.key; the second is read only when the first
// holds no private key.
func readPairDir(dir string) ([]byte, error) {
	crt, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
	if err != nil {
		return nil, err
	}
	if holdsPrivateKey(crt) {
		return crt, nil
	}
	key, err := os.ReadFile(filepath.Join(dir, "tls.key"))
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{crt, key}, []byte("\n")), nil
}

func holdsPrivateKey(text []byte) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return true
		}
	}
	return false
}

// selfSigned makes an ECDSA P-256 certificate for *.domain, or localhost without
// a domain, valid for ten years from an hour ago.
func selfSigned(domain string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make default certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	if err != nil {
		return nil, fmt.Errorf("cannot make default certificate: %w", err)
	}
	name := "localhost"
	if domain != "" {
		name = "*." + domain
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "turnout default certificate"},
		DNSNames:     []string{name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
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
