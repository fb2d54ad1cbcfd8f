// Package opensslkey lets OpenSSL's libcrypto compute signatures where Go's own code
// is slower: with RSA keys, by a factor of four, and with keys on P-256, by two.
// Everything else of TLS stays with crypto/tls.
//
// It does so only in programs built with the tag openssl, which needs cgo and
// libcrypto 3.0 or newer (Debian: libssl-dev). Without the tag Wrap returns what it
// is given, nothing is linked and no cgo is used.
//
// With the tag, a wrapped key is handed to libcrypto when it signs for the first
// time, as many certificates of a router are never asked for. libcrypto's copy is
// overwritten and freed after the key is collected. That timing does not depend on
// the key, blinding, and checking results against faults are libcrypto's own.
package opensslkey
