//go:build openssl

package tlsmux

import (
	"crypto/ecdsa"
	"testing"
)

func TestKeyOfTheDefaultCertificateSignsWithLibcrypto(t *testing.T) {
	cert, key := certPEM(t, "one")
	for _, src := range []DefaultCertificate{{Content: cert + key}, {}} {
		got, err := LoadDefaultCertificate(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, pure := got.PrivateKey.(*ecdsa.PrivateKey); pure {
			t.Errorf("Go signs with %v, although the tag openssl is set", got.Leaf.DNSNames)
		}
	}
}
