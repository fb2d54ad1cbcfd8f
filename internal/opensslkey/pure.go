//go:build !openssl

package opensslkey

import "crypto"

// Library names the libcrypto in use. It is empty: this program was built without
// the tag openssl.
func Library() string { return "" }

// Wrap returns key itself: this program was built without the tag openssl.
func Wrap(key crypto.PrivateKey) crypto.PrivateKey { return key }
