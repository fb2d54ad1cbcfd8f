// Package keypair reads PEM text: strictly what has to be complete, and certificates with their private keys for a process that has
// tens of thousands of them and uses few.
//
// Making a usable RSA key costs crypto/rsa about 0.2 ms and 8 KB, nearly all of what a certificate costs. A Parse
// therefore checks such a key, completely, and leaves making it to the first signature. What is not plainly in order is
// given to crypto/tls, whose judgement and whose words count.
//
// The check computes with math/big, whose running time depends on the key. It runs once when a key is read, of which
// nobody outside can measure anything; signatures are crypto/rsa's.
package keypair

import (
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// ReadKey reads a private key that is encoded as PKCS #1, PKCS #8 or SEC 1: a *Key, *ecdsa.PrivateKey, ed25519.PrivateKey,
// *ecdh.PrivateKey, or *rsa.PrivateKey if it is an unusual one.
func ReadKey(der []byte) (any, error) {
	if k, ok := newKey(der); ok {
		return k, nil
	}
	if key, err := x509.ParseECPrivateKey(der); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return key, nil
	}
	return x509.ParsePKCS1PrivateKey(der) //nolint:wrapcheck // what to say of it is up to the caller
}

// Belongs tells whether key is the private key of a certificate.
func Belongs(key any, leaf *x509.Certificate) bool {
	private, ok := key.(crypto.Signer)
	if !ok {
		return false
	}
	public, ok := private.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(leaf.PublicKey)
}

// Parse is tls.X509KeyPair: certificates the leaf first, and the key of the leaf. It accepts and refuses the same, but for
// what Usable and Bounded refuse, and returns the same errors. The private key of an RSA certificate is a *Key.
func Parse(certificates, key []byte) (tls.Certificate, error) {
	pair, ok := parseRSA(certificates, key)
	var err error
	if !ok {
		if pair, err = tls.X509KeyPair(certificates, key); err == nil {
			err = Usable(pair.Leaf)
		}
	}
	if err == nil {
		err = Bounded(pair.Certificate)
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	return pair, nil
}

// ParseBundle reads text that holds certificates, the leaf first, and a key, in any order, and that has to be complete: see Decode.
// The certificate is what Parse makes of them. Nothing of the text gets into errors.
func ParseBundle(text []byte) (tls.Certificate, error) {
	blocks, err := Decode(text)
	if err != nil {
		return tls.Certificate{}, err
	}
	var certs, key []byte
	for _, b := range blocks {
		switch {
		case b.Type == "CERTIFICATE" || b.Type == "X509 CERTIFICATE":
			certs = append(certs, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Bytes})...)
		case key == nil && isKey(b):
			key = pem.EncodeToMemory(b)
		}
	}
	switch {
	case certs == nil:
		return tls.Certificate{}, errors.New("no certificate in it")
	case key == nil:
		return tls.Certificate{}, errors.New("no private key in it")
	}
	return Parse(certs, key)
}

// Bounds of RSA keys in bits. With shorter ones crypto/rsa does not sign; a signature by a longer one takes more than a
// second, which other handshakes would wait for, and many clients do not verify it.
const (
	minServed = 1024
	maxServed = maxBits
)

// MaxChain is how many bytes of certificates are served at most, the leaf with all of its chain. Each handshake that is not
// complete may hold as much, and clients refuse little more (OpenSSL: 100 KiB).
const MaxChain = 64 << 10

// ErrLongChain is the kind of errors about chains above MaxChain.
var ErrLongChain = errors.New("certificate chain too long")

// Bounded fails, with an ErrLongChain, if a chain is longer than MaxChain.
func Bounded(chain [][]byte) error {
	size := 0
	for _, der := range chain {
		size += len(der)
	}
	if size > MaxChain {
		return fmt.Errorf("%w: %d bytes in %d certificates; allowed: %d bytes", ErrLongChain, size, len(chain), MaxChain)
	}
	return nil
}

// Usable fails if leaf parses, and handshakes with it would fail all the same or cost others too much.
func Usable(leaf *x509.Certificate) error {
	public, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil
	}
	if bits := public.N.BitLen(); bits < minServed || bits > maxServed {
		return fmt.Errorf("RSA key of %d bits; allowed: %d to %d", bits, minServed, maxServed)
	}
	return nil
}

// parseRSA reads the most frequent kind. The bool is false if it is another, or if anything is odd.
func parseRSA(certificates, key []byte) (tls.Certificate, bool) {
	der, ok := keyBlock(key)
	if !ok {
		return tls.Certificate{}, false
	}
	private, ok := newKey(der)
	if !ok {
		return tls.Certificate{}, false
	}
	var pair tls.Certificate
	for block := range Blocks(certificates) {
		if block.Type == "CERTIFICATE" {
			pair.Certificate = append(pair.Certificate, block.Bytes)
		}
	}
	if len(pair.Certificate) == 0 {
		return tls.Certificate{}, false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || !Belongs(private, leaf) {
		return tls.Certificate{}, false
	}
	pair.Leaf, pair.PrivateKey = leaf, private
	return pair, true
}

// keyBlock returns the content of the first private key, as crypto/tls finds it, unless it says that it is none of RSA.
func keyBlock(text []byte) ([]byte, bool) {
	for block := range Blocks(text) {
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return block.Bytes, block.Type != "EC PRIVATE KEY"
		}
	}
	return nil, false
}
