//go:build !openssl

package opensslkey

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"testing"
)

func TestWithoutTheTagKeysStayAsTheyAre(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []any{rsaKey, ecdsaKey, nil} {
		if got := Wrap(key); got != key {
			t.Errorf("%T became %T", key, got)
		}
	}
	if name := Library(); name != "" {
		t.Errorf("library is %q, want none", name)
	}
}
