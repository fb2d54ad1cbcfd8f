package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/md5" //nolint:gosec // the sticky cookie's name and value are MD5 sums by definition
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/netip"
	"time"

	"turnout/bench/load"
)

// namespace holds every object of a site.
const namespace = "bench"

// site is what both proxies of a case are configured to serve: routes r00000, r00001, … for the hosts of
// package load. Route i goes to upstream i modulo the number of upstreams.
type site struct {
	routes    int
	upstreams []netip.AddrPort
	tls       bool
	cookie    bool
	rules     bool    // HSTS and two header actions; without tls the route takes plain requests too
	pem       keyPair // of Host(0); only with tls
	fallback  keyPair // of no host; only with tls
	through   bool    // TLS is passed through; the upstream terminates it
	pods      keyPair // of the upstream, which is its own authority; empty = it speaks no TLS
}

// onTLSPort tells which port of a router the site is behind.
func (s *site) onTLSPort() bool { return s.tls || s.through }

// keyPair is a certificate and its key, each as PEM.
type keyPair struct {
	certificate, key string
}

func routeName(i int) string   { return fmt.Sprintf("r%05d", i) }
func serviceName(k int) string { return fmt.Sprintf("s%02d", k) }

// cookieName and cookieValue are what the router gives a route without endpoints that are pods.
func cookieName(i int) string { return md5Hex(" " + namespace + ":" + routeName(i)) }

func (s *site) cookieValue(k int) string {
	return md5Hex(fmt.Sprintf("ept:%s:http:%s:%d", serviceName(k), s.upstreams[k].Addr(), s.upstreams[k].Port()))
}

func md5Hex(text string) string {
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// newKeyPair makes a self-signed certificate for host, with a key on P-256 or an RSA-2048 one, that is valid for a day.
func newKeyPair(host string, withRSA bool) (keyPair, error) {
	var key crypto.Signer
	var err error
	if withRSA {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot make a key: %w", err)
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
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot make a certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("cannot encode a key: %w", err)
	}
	return keyPair{
		certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})),
	}, nil
}

// clientTLS is the client's side of the site: nil without TLS, otherwise trusting only its certificate.
// No ALPN is offered, so the answer is HTTP/1.1.
func (s *site) clientTLS() *tls.Config {
	if !s.tls {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.pem.certificate))
	return &tls.Config{
		ServerName: load.Host(0), RootCAs: roots,
		MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519},
	}
}
