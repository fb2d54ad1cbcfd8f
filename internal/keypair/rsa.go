package keypair

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"io"
	"math/big"
	"sync"

	"turnout/internal/opensslkey"
)

// Key is an RSA private key that is made when it is first used. It was checked when it was read. Any goroutine may use it.
type Key struct {
	public *rsa.PublicKey

	mu   sync.Mutex
	der  []byte    // PKCS #1; nil once made
	made decrypter // nil = not used yet
	err  error
}

var _ decrypter = (*Key)(nil)

// decrypter is what TLS makes of an RSA key.
type decrypter interface {
	crypto.Signer
	crypto.Decrypter
}

// Public implements crypto.Signer.
func (k *Key) Public() crypto.PublicKey { return k.public }

// Sign implements crypto.Signer.
func (k *Key) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	private, err := k.private()
	if err != nil {
		return nil, err
	}
	return private.Sign(random, digest, opts)
}

// Decrypt implements crypto.Decrypter, which key exchange by RSA needs (RFC 5246 section 7.4.7.1).
func (k *Key) Decrypt(random io.Reader, message []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	private, err := k.private()
	if err != nil {
		return nil, err
	}
	return private.Decrypt(random, message, opts)
}

// private returns the key that works.
func (k *Key) private() (decrypter, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made == nil && k.err == nil {
		made, err := x509.ParsePKCS1PrivateKey(k.der)
		if err != nil {
			k.err = fmt.Errorf("cannot use RSA key: %w", err)
			return nil, k.err
		}
		k.made, _ = opensslkey.Wrap(made).(decrypter)
		k.der = nil
	}
	return k.made, k.err
}

// pkcs1 returns a PKCS #1 private key (RFC 8017 appendix A.1.2), taken out of PKCS #8 (RFC 5208) if it is in it.
func pkcs1(der []byte) ([]byte, bool) {
	var outer struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
		// RFC 5958 allows more; who has that is not in a hurry.
	}
	rest, err := asn1.Unmarshal(der, &outer)
	if err != nil {
		return der, true // PKCS #1, or nothing that readRSA accepts
	}
	if len(rest) > 0 || !outer.Algorithm.Algorithm.Equal(oidRSA) {
		return nil, false
	}
	return outer.Key, true
}

var oidRSA = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}

// rsaKey is RSAPrivateKey of RFC 8017 appendix A.1.2 with two primes.
type rsaKey struct {
	Version         int
	N               *big.Int
	E               int
	D, P, Q         *big.Int
	Dp, Dq, Inverse *big.Int
}

// Bounds of what is checked here; crypto/rsa judges other sizes.
const (
	minBits = 2048
	maxBits = 8192
)

func isOne(n *big.Int) bool { return n.IsInt64() && n.Int64() == 1 }

// newKey reads an RSA private key that is encoded as PKCS #1 or PKCS #8. The bool is false if der is something else, or a
// key that is not plainly in order: then crypto/x509 has to judge it.
func newKey(der []byte) (*Key, bool) {
	der, ok := pkcs1(der)
	if !ok {
		return nil, false
	}
	k := readRSA(der)
	if k == nil {
		return nil, false
	}
	// The key is kept as it is written: some 1,200 bytes, which no other data share.
	return &Key{public: &rsa.PublicKey{N: k.N, E: k.E}, der: bytes.Clone(der)}, true
}

// readRSA returns a two-prime key that crypto/rsa accepts too, or nil. It checks what crypto/rsa does.
func readRSA(der []byte) *rsaKey {
	k := new(rsaKey)
	if rest, err := asn1.Unmarshal(der, k); err != nil || len(rest) > 0 || !k.consistent() {
		return nil
	}
	return k
}

func (k *rsaKey) consistent() bool {
	if k.Version != 0 {
		return false
	}
	for _, n := range [...]*big.Int{k.N, k.D, k.P, k.Q, k.Dp, k.Dq, k.Inverse} {
		if n == nil || n.Sign() <= 0 {
			return false
		}
	}
	bits := k.N.BitLen()
	if bits < minBits || bits > maxBits || k.E <= 2 || k.E&1 == 0 || int64(k.E) > 1<<31-1 {
		return false
	}
	if k.P.Bit(0) == 0 || k.Q.Bit(0) == 0 || k.P.BitLen() != k.Q.BitLen() || k.D.BitLen() <= bits/2 || k.D.Cmp(k.N) >= 0 {
		return false
	}
	product := new(big.Int).Mul(k.P, k.Q)
	apart := new(big.Int).Sub(k.P, k.Q)
	if product.Cmp(k.N) != 0 || apart.Abs(apart).BitLen() <= bits/2-100 {
		return false
	}
	return k.fits(k.P, k.Dp) && k.fits(k.Q, k.Dq) && k.Inverse.Cmp(k.P) < 0 &&
		isOne(product.Mod(product.Mul(k.Inverse, k.Q), k.P))
}

// fits tells whether exponent is that of the prime: e·exponent ≡ 1 and d ≡ exponent, modulo prime-1.
func (k *rsaKey) fits(prime, exponent *big.Int) bool {
	order := new(big.Int).Sub(prime, big.NewInt(1))
	if exponent.Cmp(order) >= 0 {
		return false
	}
	v := big.NewInt(int64(k.E))
	if v.Mod(v.Mul(v, exponent), order); !isOne(v) {
		return false
	}
	return v.Mod(k.D, order).Cmp(exponent) == 0
}
