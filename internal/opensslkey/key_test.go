//go:build openssl

package opensslkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" //nolint:gosec // TLS 1.0 signs with it
	"crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var testRSA = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })

func newRSA(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

func newECDSA(tb testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// wrapped is Wrap of a key that must be wrapped.
func wrapped(tb testing.TB, key crypto.Signer) crypto.Signer {
	tb.Helper()
	w, ok := Wrap(key).(crypto.Signer)
	if !ok || w == key {
		tb.Fatalf("%T was not wrapped", key)
	}
	if !w.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()) {
		tb.Fatal("wrapped key has another public key")
	}
	return w
}

// inLibrary tells whether the wrapped key has been handed to libcrypto.
func inLibrary(key crypto.Signer) bool {
	switch k := key.(type) {
	case *rsaKey:
		return k.lib.pkey != nil
	case *ecdsaKey:
		return k.lib.pkey != nil
	}
	return false
}

// hashes are those that libcrypto signs.
var hashes = []crypto.Hash{crypto.MD5SHA1, crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512}

func digestOf(h crypto.Hash, text string) []byte {
	if h == crypto.MD5SHA1 { // has no hash.Hash
		sum := sha256.Sum256([]byte(text))
		return append(sum[:], 1, 2, 3, 4)
	}
	d := h.New()
	_, _ = io.WriteString(d, text)
	return d.Sum(nil)
}

func TestLibraryIsNamed(t *testing.T) {
	if name := Library(); !strings.HasPrefix(name, "OpenSSL 3.") {
		t.Errorf("library is %q", name)
	}
}

func TestWhatIsWrapped(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	three, err := rsa.GenerateMultiPrimeKey(rand.Reader, 3, 2048) //nolint:staticcheck // such certificates exist
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		key  crypto.PrivateKey
		want bool
	}{
		{"RSA 512", newRSA(512), false},
		{"RSA 1024", newRSA(1024), true},
		{"RSA 2048", testRSA(), true},
		{"RSA of three primes", three, false},
		{"P-224", newECDSA(t, elliptic.P224()), false},
		{"P-256", newECDSA(t, elliptic.P256()), true},
		{"P-384", newECDSA(t, elliptic.P384()), false},
		{"P-521", newECDSA(t, elliptic.P521()), false},
		{"Ed25519", edwards, false},
	} {
		got := fmt.Sprintf("%T", Wrap(c.key))
		if (got != fmt.Sprintf("%T", c.key)) != c.want {
			t.Errorf("%s became %s", c.name, got)
		}
	}
	if Wrap(nil) != nil {
		t.Error("no key became one")
	}
}

func TestPKCS1SignaturesAreThoseOfGo(t *testing.T) {
	for _, key := range []*rsa.PrivateKey{newRSA(1024), newRSA(1031), testRSA()} {
		bits := key.N.BitLen()
		w := wrapped(t, key)
		for _, h := range hashes {
			digest := digestOf(h, "text")
			got, err := w.Sign(rand.Reader, digest, h)
			if err != nil {
				t.Fatalf("RSA %d, %v: %v", bits, h, err)
			}
			want, err := key.Sign(rand.Reader, digest, h) // it has no randomness in it
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("RSA %d, %v: libcrypto's signature differs from Go's, %v", bits, h, err)
			}
		}
		if !inLibrary(w) {
			t.Errorf("RSA %d: libcrypto was not used", bits)
		}
	}
}

func TestPSSSignaturesVerify(t *testing.T) {
	key := testRSA()
	w := wrapped(t, key)
	small := newRSA(1024)
	for _, h := range hashes[1:] {
		digest := digestOf(h, "text")
		for _, salt := range []int{rsa.PSSSaltLengthAuto, rsa.PSSSaltLengthEqualsHash, 1, 20, h.Size(), 256 - 2 - h.Size()} {
			opts := &rsa.PSSOptions{SaltLength: salt, Hash: h}
			sig, err := w.Sign(rand.Reader, digest, opts)
			if err != nil {
				t.Fatalf("%v, salt %d: %v", h, salt, err)
			}
			if err := rsa.VerifyPSS(&key.PublicKey, h, digest, sig, opts); err != nil {
				t.Errorf("%v, salt %d: %v", h, salt, err)
			}
			// The length of the salt is the one that was asked for, not one that a lenient verifier finds.
			if exact := exactSalt(key, h, salt); exact != salt {
				if err := rsa.VerifyPSS(&key.PublicKey, h, digest, sig, &rsa.PSSOptions{SaltLength: exact, Hash: h}); err != nil {
					t.Errorf("%v, salt %d: not of %d bytes: %v", h, salt, exact, err)
				}
			}
			again, err := w.Sign(rand.Reader, digest, opts)
			if err != nil || bytes.Equal(sig, again) {
				t.Errorf("%v, salt %d: the same salt twice, %v", h, salt, err)
			}
		}
	}
	if !inLibrary(w) {
		t.Error("libcrypto was not used")
	}
	// 1024 bits have room for the hash but not for a salt as long.
	opts := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA512}
	_, err := wrapped(t, small).Sign(rand.Reader, digestOf(crypto.SHA512, ""), opts)
	_, want := small.Sign(rand.Reader, digestOf(crypto.SHA512, ""), opts)
	if err == nil || want == nil || err.Error() != want.Error() {
		t.Errorf("a salt too long: got %v, want %v", err, want)
	}
}

// exactSalt is the number of bytes that salt stands for.
func exactSalt(key *rsa.PrivateKey, h crypto.Hash, salt int) int {
	switch salt {
	case rsa.PSSSaltLengthAuto:
		return key.Size() - 2 - h.Size()
	case rsa.PSSSaltLengthEqualsHash:
		return h.Size()
	}
	return salt
}

func TestECDSASignaturesVerify(t *testing.T) {
	key := newECDSA(t, elliptic.P256())
	w := wrapped(t, key)
	for _, h := range hashes {
		for i := range 50 { // lengths of signatures differ
			digest := digestOf(h, strings.Repeat("x", i))
			sig, err := w.Sign(rand.Reader, digest, h)
			if err != nil {
				t.Fatalf("%v: %v", h, err)
			}
			if !ecdsa.VerifyASN1(&key.PublicKey, digest, sig) {
				t.Errorf("%v: signature %x of %x is wrong", h, sig, digest)
			}
		}
	}
	if !inLibrary(w) {
		t.Error("libcrypto was not used")
	}
	digest := digestOf(crypto.SHA256, "text")
	got, err := w.Sign(nil, digest, crypto.SHA256)
	want, err2 := key.Sign(nil, digest, crypto.SHA256)
	if err != nil || err2 != nil || !bytes.Equal(got, want) {
		t.Errorf("a deterministic signature: %v, %v, equal %v", err, err2, bytes.Equal(got, want))
	}
}

func TestRefusedIsWhatGoRefuses(t *testing.T) {
	key := testRSA()
	w := wrapped(t, key)
	for _, c := range []struct {
		name   string
		digest []byte
		opts   crypto.SignerOpts
	}{
		{"short digest", make([]byte, 31), crypto.SHA256},
		{"long digest", make([]byte, 33), crypto.SHA256},
		{"no digest", nil, crypto.SHA384},
		{"digest of another hash", make([]byte, 48), crypto.SHA512},
		{"short digest, PSS", make([]byte, 31), &rsa.PSSOptions{SaltLength: -1, Hash: crypto.SHA256}},
		{"salt below the special values", make([]byte, 32), &rsa.PSSOptions{SaltLength: -2, Hash: crypto.SHA256}},
		{"salt too long", make([]byte, 32), &rsa.PSSOptions{SaltLength: 223, Hash: crypto.SHA256}},
		{"no room", make([]byte, 300), crypto.Hash(0)},
	} {
		_, err := w.Sign(rand.Reader, c.digest, c.opts)
		_, want := key.Sign(rand.Reader, c.digest, c.opts)
		if err == nil || want == nil || err.Error() != want.Error() {
			t.Errorf("%s: got error %v, want %v", c.name, err, want)
		}
	}
}

func TestWhatTLSDoesNotKnowIsSignedByGo(t *testing.T) {
	key := testRSA()
	w := wrapped(t, key)
	digest := digestOf(crypto.SHA512_256, "text")
	sig, err := w.Sign(rand.Reader, digest, crypto.SHA512_256)
	if err != nil || rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA512_256, digest, sig) != nil {
		t.Errorf("SHA-512/256: %v", err)
	}
	if sig, err = w.Sign(rand.Reader, []byte("raw"), crypto.Hash(0)); err != nil || rsa.VerifyPKCS1v15(&key.PublicKey, 0, []byte("raw"), sig) != nil {
		t.Errorf("no hash: %v", err)
	}
	if inLibrary(w) {
		t.Error("the key was handed to libcrypto for nothing")
	}
}

func TestDecrypts(t *testing.T) {
	key := testRSA()
	w, ok := wrapped(t, key).(crypto.Decrypter)
	if !ok {
		t.Fatal("a wrapped RSA key is no crypto.Decrypter: crypto/tls would not offer RSA key exchange")
	}
	box, err := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, []byte("secret")) //nolint:staticcheck // what TLS 1.2 does
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.Decrypt(rand.Reader, box, nil); err != nil || string(got) != "secret" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestErrorsOfLibcryptoSayWhy(t *testing.T) {
	if _, err := loadDER([]byte("no key")); err == nil || !strings.Contains(err.Error(), "asn1") {
		t.Errorf("garbage for a key: %v", err)
	}
	h := &handle{}
	if !h.loaded(testRSA()) {
		t.Fatal("libcrypto does not take the key")
	}
	if _, err := h.sign(nidOf(crypto.SHA256), 1, 0, make([]byte, 5), testRSA().Size()); err == nil || !strings.Contains(err.Error(), "digest length") {
		t.Errorf("digest of 5 bytes: %v", err)
	}
	if _, err := h.sign(nidOf(crypto.SHA256), 1, 0, make([]byte, 32), 8); err == nil {
		t.Error("a signature fits into 8 bytes")
	}
	// What failed before does not stick to the thread.
	if _, err := h.sign(nidOf(crypto.SHA256), 1, 0, make([]byte, 32), testRSA().Size()); err != nil {
		t.Errorf("after failures: %v", err)
	}
}

func TestGoSignsWithKeysThatLibcryptoDoesNotTake(t *testing.T) {
	key := testRSA()
	w := &rsaKey{pure: key}
	w.lib.once.Do(func() {}) // as if it had been refused
	digest := digestOf(crypto.SHA256, "text")
	sig, err := w.Sign(rand.Reader, digest, crypto.SHA256)
	if err == nil {
		err = rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest, sig)
	}
	if err != nil {
		t.Error(err)
	}
	if (&handle{}).loaded("no key") {
		t.Error("a string was handed over as a key")
	}
}

// TestManyGoroutinesShareAKey makes the first signatures of a key race: it is handed over once.
func TestManyGoroutinesShareAKey(t *testing.T) {
	rsaKey, ecdsaKey := testRSA(), newECDSA(t, elliptic.P256())
	for range 5 {
		for _, key := range []crypto.Signer{wrapped(t, rsaKey), wrapped(t, ecdsaKey)} {
			errs := make(chan error)
			const many = 16
			for i := range many {
				go func() { errs <- signAndVerify(key, strings.Repeat("y", i)) }()
			}
			for range many {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func signAndVerify(key crypto.Signer, text string) error {
	digest := digestOf(crypto.SHA256, text)
	pub, isRSA := key.Public().(*rsa.PublicKey)
	if !isRSA {
		sig, err := key.Sign(rand.Reader, digest, crypto.SHA256)
		if err == nil && !ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest, sig) {
			err = errors.New("wrong signature of ECDSA")
		}
		return err
	}
	opts := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	sig, err := key.Sign(rand.Reader, digest, opts)
	if err == nil {
		err = rsa.VerifyPSS(pub, crypto.SHA256, digest, sig, opts)
	}
	return err
}

// TestKeysAreFreed collects keys, among them some that sign while the collector runs.
func TestKeysAreFreed(t *testing.T) {
	for range 20 {
		key := wrapped(t, newECDSA(t, elliptic.P256()))
		for range 20 {
			if err := signAndVerify(key, "text"); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
	}
	freed := make(chan struct{})
	h := &handle{}
	if !h.loaded(testRSA()) {
		t.Fatal("libcrypto does not take the key")
	}
	runtime.AddCleanup(h, func(c chan struct{}) { close(c) }, freed)
	for range 100 {
		runtime.GC()
		select {
		case <-freed:
			return
		default:
			runtime.Gosched()
		}
	}
	<-freed // the cleanups of a handle run one after the other; it hangs if the handle is still referred to
}

func FuzzSign(f *testing.F) {
	rsaKey, ecdsaKey := testRSA(), newECDSA(f, elliptic.P256())
	wrappedRSA, wrappedECDSA := wrapped(f, rsaKey), wrapped(f, ecdsaKey)
	f.Add([]byte("text"), uint8(crypto.SHA256), -1)
	f.Add(make([]byte, 32), uint8(crypto.SHA256), 0)
	f.Add(make([]byte, 36), uint8(crypto.MD5SHA1), 20)
	f.Add(make([]byte, 64), uint8(crypto.SHA512), 190)
	f.Add([]byte{}, uint8(0), -3)
	f.Fuzz(func(t *testing.T, digest []byte, hash uint8, salt int) {
		h := crypto.Hash(hash % uint8(crypto.BLAKE2b_512+1)) // beyond, Go panics
		// PKCS #1 v1.5: the same signature or the same error.
		got, err := wrappedRSA.Sign(rand.Reader, digest, h)
		want, wantErr := rsaKey.Sign(rand.Reader, digest, h)
		if (err == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
			t.Errorf("PKCS #1 v1.5 %d: got %x, %v; want %x, %v", h, got, err, want, wantErr)
		}
		// PSS: verifies, or fails as Go does.
		opts := &rsa.PSSOptions{SaltLength: salt, Hash: h}
		if !h.Available() {
			return // Go needs the hash itself
		}
		got, err = wrappedRSA.Sign(rand.Reader, digest, opts)
		_, wantErr = rsaKey.Sign(rand.Reader, digest, opts)
		if (err == nil) != (wantErr == nil) {
			t.Errorf("PSS %d, salt %d: got %v, want %v", h, salt, err, wantErr)
		} else if err == nil && rsa.VerifyPSS(&rsaKey.PublicKey, h, digest, got, opts) != nil {
			t.Errorf("PSS %d, salt %d: wrong signature", h, salt)
		}
		got, err = wrappedECDSA.Sign(rand.Reader, digest, h)
		if err != nil || !ecdsa.VerifyASN1(&ecdsaKey.PublicKey, digest, got) {
			t.Errorf("ECDSA %d: wrong signature, %v", h, err)
		}
	})
}

// BenchmarkSign compares Go's signatures with libcrypto's, of what TLS 1.3 asks for.
func BenchmarkSign(b *testing.B) {
	digest := digestOf(crypto.SHA256, "text")
	pss := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	for _, c := range []struct {
		name string
		key  crypto.Signer
		opts crypto.SignerOpts
	}{
		{"RSA-2048", testRSA(), pss},
		{"ECDSA-P256", newECDSA(b, elliptic.P256()), crypto.SHA256},
	} {
		for _, by := range []struct {
			name string
			key  crypto.Signer
		}{{"go", c.key}, {"libcrypto", wrapped(b, c.key)}} {
			b.Run(c.name+"/"+by.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := by.key.Sign(rand.Reader, digest, c.opts); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
