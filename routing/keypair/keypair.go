// Package keypair reads certificates with their private keys for a process that has tens of thousands of them and uses
// few.
//
// Making a usable RSA key costs crypto/rsa about 0.2 ms and 8 KB, nearly all of what a certificate costs. A Parse
// therefore checks such a key, completely, and leaves making it to the first signature. What is not plainly in order is
// given to crypto/tls, whose judgement and whose words count.
//
// The check computes with math/big, whose running time depends on the key. It runs once when a key is read, of which
// nobody outside can measure anything; signatures are crypto/rsa's.
package keypair

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"strings"
)

// Parse is tls.X509KeyPair: certificates the leaf first, and the key of the leaf. It accepts and refuses the same and
// returns the same errors. The private key of an RSA certificate is a *Key.
func Parse(certificates, key []byte) (tls.Certificate, error) {
	if pair, ok := parseRSA(certificates, key); ok {
		return pair, nil
	}
	return tls.X509KeyPair(certificates, key)
}

// parseRSA reads the most frequent kind. The bool is false if it is another, or if anything is odd.
func parseRSA(certificates, key []byte) (tls.Certificate, bool) {
	der, ok := keyBlock(key)
	if ok {
		der, ok = pkcs1(der)
	}
	if !ok {
		return tls.Certificate{}, false
	}
	private := readRSA(der)
	if private == nil {
		return tls.Certificate{}, false
	}
	var pair tls.Certificate
	for {
		var block *pem.Block
		if block, certificates = pem.Decode(certificates); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			pair.Certificate = append(pair.Certificate, block.Bytes)
		}
	}
	if len(pair.Certificate) == 0 {
		return tls.Certificate{}, false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return tls.Certificate{}, false
	}
	public, ok := leaf.PublicKey.(*rsa.PublicKey)
	if !ok || public.E != private.E || public.N.Cmp(private.N) != 0 {
		return tls.Certificate{}, false
	}
	// The key is kept as it is written: some 1,200 bytes, which no other data share.
	pair.Leaf, pair.PrivateKey = leaf, &Key{public: public, der: bytes.Clone(der)}
	return pair, true
}

// keyBlock returns the content of the first private key, as crypto/tls finds it, unless it says that it is none of RSA.
func keyBlock(text []byte) ([]byte, bool) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, false
		}
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return block.Bytes, block.Type != "EC PRIVATE KEY"
		}
	}
}
