package keypair

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"
)

// pair is a certificate as PEM and its key in each encoding it has.
type pair struct {
	key   crypto.Signer
	cert  []byte
	pkcs1 []byte // RSA alone
	sec1  []byte // ECDSA alone
	pkcs8 []byte
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newPair(key crypto.Signer) *pair {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "a.test"}, DNSNames: []string{"a.test"},
		NotBefore: time.Unix(1e9, 0), NotAfter: time.Unix(4e9, 0),
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	p := &pair{key: key, cert: block("CERTIFICATE", der), pkcs8: block("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key)))}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		p.pkcs1 = block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k))
	case *ecdsa.PrivateKey:
		p.sec1 = block("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(k)))
	}
	return p
}

var (
	rsaPair   = sync.OnceValue(func() *pair { return newPair(must(rsa.GenerateKey(rand.Reader, 2048))) })
	otherRSA  = sync.OnceValue(func() *pair { return newPair(must(rsa.GenerateKey(rand.Reader, 2048))) })
	ecdsaPair = sync.OnceValue(func() *pair { return newPair(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))) })
	p384Pair  = sync.OnceValue(func() *pair { return newPair(must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))) })
	edPair    = sync.OnceValue(func() *pair {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return newPair(must(key, err))
	})
)

// same checks that Parse judges as crypto/tls does, with the same words, and returns what it returned.
func same(t *testing.T, cert, key []byte) (tls.Certificate, bool) {
	t.Helper()
	want, wantErr := tls.X509KeyPair(cert, key)
	got, err := Parse(cert, key)
	switch {
	case (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error():
		t.Errorf("error %v, want %v", err, wantErr)
	case err == nil && (len(got.Certificate) != len(want.Certificate) || !got.Leaf.Equal(want.Leaf)):
		t.Errorf("%d certificates, the first of %v; want %d, %v", len(got.Certificate), got.Leaf.Subject, len(want.Certificate), want.Leaf.Subject)
	}
	return got, err == nil
}

func TestParseJudgesAsCryptoTLS(t *testing.T) {
	r, o, e := rsaPair(), otherRSA(), ecdsaPair()
	for name, tt := range map[string]struct {
		cert, key []byte
		good      bool
	}{
		"RSA, PKCS #1":             {r.cert, r.pkcs1, true},
		"RSA, PKCS #8":             {r.cert, r.pkcs8, true},
		"ECDSA P-256, SEC 1":       {e.cert, e.sec1, true},
		"ECDSA P-256, PKCS #8":     {e.cert, e.pkcs8, true},
		"ECDSA P-384":              {p384Pair().cert, p384Pair().sec1, true},
		"Ed25519":                  {edPair().cert, edPair().pkcs8, true},
		"chain":                    {append(bytes.Clone(r.cert), e.cert...), r.pkcs1, true},
		"key after parameters":     {r.cert, append(block("EC PARAMETERS", []byte{5, 0}), r.pkcs1...), true},
		"key of another":           {r.cert, o.pkcs1, false},
		"key of another kind":      {r.cert, e.sec1, false},
		"certificate of another":   {e.cert, r.pkcs1, false},
		"no certificate":           {nil, r.pkcs1, false},
		"key for a certificate":    {r.pkcs1, r.pkcs1, false},
		"no key":                   {r.cert, nil, false},
		"certificate for a key":    {r.cert, r.cert, false},
		"a leaf that is none":      {block("CERTIFICATE", []byte("x")), r.pkcs1, false},
		"an unreadable second one": {append(bytes.Clone(r.cert), block("CERTIFICATE", []byte("x"))...), r.pkcs1, true},
		"a key that is none":       {r.cert, block("RSA PRIVATE KEY", []byte("x")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, good := same(t, tt.cert, tt.key); good != tt.good {
				t.Errorf("accepted: %v, want %v", good, tt.good)
			}
		})
	}
}

// TestInconsistentKeys changes each number of a key by one.
func TestInconsistentKeys(t *testing.T) {
	p := rsaPair()
	for i := range 8 {
		for _, by := range []int64{-2, -1, 1, 2} {
			var k rsaKey
			if _, err := asn1.Unmarshal(must(pemBytes(p.pkcs1)), &k); err != nil {
				t.Fatal(err)
			}
			if n := [...]*big.Int{k.N, nil, k.D, k.P, k.Q, k.Dp, k.Dq, k.Inverse}[i]; n != nil {
				n.Add(n, big.NewInt(by))
			} else {
				k.E += int(by)
			}
			der := must(asn1.Marshal(k))
			if readRSA(der) != nil && k.N.Cmp(p.key.Public().(*rsa.PublicKey).N) == 0 && k.E == 65537 {
				t.Errorf("number %d, changed by %d, passes", i, by)
			}
			if _, good := same(t, p.cert, block("RSA PRIVATE KEY", der)); good {
				t.Errorf("number %d, changed by %d, is accepted", i, by)
			}
		}
	}
}

func pemBytes(text []byte) ([]byte, error) {
	b, _ := pem.Decode(text)
	return b.Bytes, nil
}

func TestKeyIsMadeWhenUsed(t *testing.T) {
	p := rsaPair()
	got := must(Parse(p.cert, p.pkcs8))
	key, ok := got.PrivateKey.(*Key)
	if !ok {
		t.Fatalf("key is a %T", got.PrivateKey)
	}
	if key.made != nil {
		t.Error("made before it was used")
	}
	if !p.key.(*rsa.PrivateKey).PublicKey.Equal(key.Public()) || key.made != nil {
		t.Error("another public key, or made to tell it")
	}
	digest := sha256.Sum256([]byte("message"))
	signature := must(key.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}))
	if err := rsa.VerifyPSS(key.public, crypto.SHA256, digest[:], signature, nil); err != nil {
		t.Error(err)
	}
	if key.made == nil || key.der != nil {
		t.Error("the key was not kept, or its text was")
	}
	secret := must(rsa.EncryptPKCS1v15(rand.Reader, key.public, []byte("secret"))) //nolint:staticcheck // what the key exchange does
	if plain := must(key.Decrypt(rand.Reader, secret, nil)); string(plain) != "secret" {
		t.Errorf("decrypted %q", plain)
	}
}

// FuzzParse changes the key of a certificate: what is accepted must be what crypto/tls accepts, and work.
func FuzzParse(f *testing.F) {
	p := newPair(must(x509.ParsePKCS1PrivateKey(must(pemBytes([]byte(fuzzKey))))))
	der := must(pemBytes(p.pkcs1))
	f.Add(der)
	f.Add(must(pemBytes(p.pkcs8)))
	f.Add(must(pemBytes(ecdsaPair().sec1)))
	f.Add(append(bytes.Clone(der), 0))
	f.Add(der[:len(der)-1])
	f.Fuzz(func(t *testing.T, key []byte) {
		got, good := same(t, p.cert, block("RSA PRIVATE KEY", key))
		if !good {
			return
		}
		digest := sha256.Sum256(key)
		signature, err := got.PrivateKey.(crypto.Signer).Sign(rand.Reader, digest[:], crypto.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		if err := rsa.VerifyPKCS1v15(p.key.Public().(*rsa.PublicKey), crypto.SHA256, digest[:], signature); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, kind := range []struct {
		name string
		pair *pair
	}{{"RSA2048", rsaPair()}, {"P256", ecdsaPair()}, {"P384", p384Pair()}} {
		for name, parse := range map[string]func(cert, key []byte) (tls.Certificate, error){"crypto": tls.X509KeyPair, "lazy": Parse} {
			b.Run(kind.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := parse(kind.pair.cert, kind.pair.pkcs8); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
