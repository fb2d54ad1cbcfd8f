package certchain

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"math/bits"
)

// Unit is the cost of one of the cheapest signature checks, about 0.1 ms of a processor. Keys on
// P-256 and RSA keys of 2048 bits have this cost.
const Unit = 1

// MaxKeyCost is the cost limit of one signature check, about 4 ms: a check cannot be interrupted.
// RSA keys of more than 8192 bits exceed it, as do keys with a long modulus and a long exponent.
const MaxKeyCost = 40

// Cost returns the cost of one signature check with the public key of c, in units. It exceeds
// MaxKeyCost for rejected keys, and is 0 for keys that crypto/x509 does not support.
func Cost(c *x509.Certificate) int {
	switch key := c.PublicKey.(type) {
	case ed25519.PublicKey:
		return Unit
	case *ecdsa.PublicKey:
		switch key.Params().BitSize {
		case 256:
			return Unit
		case 224:
			return 3 * Unit
		case 384:
			return 10 * Unit
		}
		return 30 * Unit
	case *rsa.PublicKey:
		return rsaCost(key.N.BitLen(), uint64(key.E))
	}
	return 0
}

// rsaCost returns the cost of one exponentiation. It takes a squaring for each bit of the exponent
// and a multiplication for each set bit. Each costs the square of the length of the modulus.
func rsaCost(length int, exponent uint64) int {
	if length > 8192 {
		return MaxKeyCost + 1
	}
	multiplications := bits.Len64(exponent) + bits.OnesCount64(exponent)
	return Unit + length*length*multiplications/80_000_000
}

// verifies reports whether a key of the algorithm of issuer can have made the signature of c.
func verifies(issuer, c *x509.Certificate) bool {
	switch c.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
		return issuer.PublicKeyAlgorithm == x509.RSA
	case x509.ECDSAWithSHA1, x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
		return issuer.PublicKeyAlgorithm == x509.ECDSA
	case x509.PureEd25519:
		return issuer.PublicKeyAlgorithm == x509.Ed25519
	}
	return false
}
