//go:build openssl

package routing

import (
	"crypto/ecdsa"
	"testing"
)

func TestKeysOfRoutesSignWithLibcrypto(t *testing.T) {
	got := compile(t, route("r", "a.test", "", edge, with(newCertificate(t, "leaf")))).SNI("a.test").Certificate
	if _, pure := got.PrivateKey.(*ecdsa.PrivateKey); pure {
		t.Error("Go signs, although the tag openssl is set")
	}
}
