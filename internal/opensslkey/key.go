//go:build openssl

package opensslkey

// #cgo LDFLAGS: -lcrypto
// #include "sign.h"
import "C"

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"unsafe"
)

// minBits is the size of the smallest RSA key that is wrapped. crypto/rsa refuses
// smaller ones, and goes on doing so.
const minBits = 1024

// maxECDSA is the longest signature of P-256: a SEQUENCE of two INTEGERs.
const maxECDSA = 2 + 2*(2+33)

// Library names the libcrypto in use; without the tag openssl it is empty.
func Library() string { return C.GoString(C.OpenSSL_version(C.OPENSSL_VERSION)) }

// Wrap returns a crypto.Signer for the same public key that signs with libcrypto and
// is safe for use by many goroutines. Wrapped are RSA keys of two primes and at least
// 1024 bits, which stay crypto.Decrypters too, and ECDSA keys on P-256. Every other
// key is returned as it is: Go computes as fast with it. key must not be changed any more.
func Wrap(key crypto.PrivateKey) crypto.PrivateKey {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() >= minBits && len(k.Primes) == 2 {
			return &rsaKey{pure: k}
		}
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P256() {
			return &ecdsaKey{pure: k}
		}
	}
	return key
}

// handle owns libcrypto's copy of a key, made when it is needed first.
type handle struct {
	once sync.Once
	pkey *C.EVP_PKEY // nil after once: libcrypto does not take the key
}

// loaded hands key over the first time. It returns false if libcrypto does not take it.
func (h *handle) loaded(key crypto.PrivateKey) bool {
	h.once.Do(func() {
		pkey, err := load(key)
		if err != nil {
			return // Go takes it: see the callers
		}
		h.pkey = pkey
		runtime.AddCleanup(h, release, pkey)
	})
	return h.pkey != nil
}

func load(key crypto.PrivateKey) (*C.EVP_PKEY, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode key for libcrypto: %w", err)
	}
	defer clear(der)
	return loadDER(der)
}

func loadDER(der []byte) (*C.EVP_PKEY, error) {
	var why [C.TURNOUT_WHY]byte
	pkey := C.turnout_key_load((*C.uchar)(unsafe.SliceData(der)), C.long(len(der)), text(&why))
	if pkey == nil {
		return nil, fmt.Errorf("cannot hand key to libcrypto: %w", reason(&why))
	}
	return pkey, nil
}

func release(pkey *C.EVP_PKEY) { C.EVP_PKEY_free(pkey) }

// sign signs the digest that the hash nid made, into no more than most bytes. padding and
// salt are those of turnout_key_sign.
func (h *handle) sign(nid, padding, salt int, digest []byte, most int) ([]byte, error) {
	var why [C.TURNOUT_WHY]byte
	sig := make([]byte, most)
	size := C.size_t(most)
	ok := C.turnout_key_sign(h.pkey, C.int(nid), C.int(padding), C.int(salt), (*C.uchar)(unsafe.SliceData(digest)), C.size_t(len(digest)),
		(*C.uchar)(unsafe.SliceData(sig)), &size, text(&why))
	runtime.KeepAlive(h)
	if ok != 1 {
		return nil, fmt.Errorf("cannot sign with libcrypto: %w", reason(&why))
	}
	return sig[:size], nil
}

func text(why *[C.TURNOUT_WHY]byte) *C.char { return (*C.char)(unsafe.Pointer(&why[0])) }

// reason is what libcrypto said: of what kind the failure is, never a byte of a key.
func reason(why *[C.TURNOUT_WHY]byte) error {
	if why[0] == 0 {
		return errors.New("no reason given")
	}
	return errors.New(C.GoString(text(why)))
}

// nidOf returns libcrypto's number of a hash that TLS signs, 0 for any other.
func nidOf(h crypto.Hash) int {
	switch h {
	case crypto.MD5SHA1: // TLS 1.0 and 1.1
		return C.NID_md5_sha1
	case crypto.SHA1:
		return C.NID_sha1
	case crypto.SHA224:
		return C.NID_sha224
	case crypto.SHA256:
		return C.NID_sha256
	case crypto.SHA384:
		return C.NID_sha384
	case crypto.SHA512:
		return C.NID_sha512
	}
	return 0
}

// rsaKey is an RSA key that signs with libcrypto.
type rsaKey struct {
	pure *rsa.PrivateKey
	lib  handle
}

// Public implements crypto.Signer: an *rsa.PublicKey.
func (k *rsaKey) Public() crypto.PublicKey { return k.pure.Public() }

// Decrypt implements crypto.Decrypter with crypto/rsa. TLS needs it for the key
// exchange of old suites only.
func (k *rsaKey) Decrypt(random io.Reader, ciphertext []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	return k.pure.Decrypt(random, ciphertext, opts) //nolint:wrapcheck // it is crypto/rsa's method
}

// Sign implements crypto.Signer: PSS with *rsa.PSSOptions, else PKCS #1 v1.5. What
// crypto/rsa refuses is refused with its error, and what TLS does not know, it signs.
// libcrypto has a source of randomness of its own.
func (k *rsaKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	hash := opts.HashFunc()
	nid := nidOf(hash)
	if nid == 0 || len(digest) != hash.Size() || !k.lib.loaded(k.pure) {
		return k.pure.Sign(random, digest, opts) //nolint:wrapcheck // it is crypto/rsa's method
	}
	pss, ok := opts.(*rsa.PSSOptions)
	if !ok {
		return k.lib.sign(nid, C.RSA_PKCS1_PADDING, 0, digest, k.pure.Size())
	}
	most := (k.pure.N.BitLen()-1+7)/8 - 2 - len(digest) // RFC 8017 section 9.1.1
	salt := pss.SaltLength
	switch salt {
	case rsa.PSSSaltLengthAuto:
		salt = most
	case rsa.PSSSaltLengthEqualsHash:
		salt = len(digest)
	}
	if salt < 0 || salt > most || hash == crypto.MD5SHA1 {
		return k.pure.Sign(random, digest, opts) //nolint:wrapcheck // it has the error
	}
	return k.lib.sign(nid, C.RSA_PKCS1_PSS_PADDING, salt, digest, k.pure.Size())
}

// ecdsaKey is a key on P-256 that signs with libcrypto.
type ecdsaKey struct {
	pure *ecdsa.PrivateKey
	lib  handle
}

// Public implements crypto.Signer: an *ecdsa.PublicKey.
func (k *ecdsaKey) Public() crypto.PublicKey { return k.pure.Public() }

// Sign implements crypto.Signer. A nil random asks for a deterministic signature (RFC
// 6979), which crypto/ecdsa makes; it also signs what TLS does not know.
func (k *ecdsaKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	nid := nidOf(opts.HashFunc())
	if nid == 0 || random == nil || len(digest) != opts.HashFunc().Size() || !k.lib.loaded(k.pure) {
		return k.pure.Sign(random, digest, opts) //nolint:wrapcheck // it is crypto/ecdsa's method
	}
	return k.lib.sign(nid, 0, 0, digest, maxECDSA)
}
