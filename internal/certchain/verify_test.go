package certchain

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// holder is a certificate with the key that it is for.
type holder struct {
	*x509.Certificate
	key crypto.Signer
}

var serial int64

// issue makes a certificate signed by issuer; nil = self-signed.
func issue(t testing.TB, name string, key crypto.Signer, issuer *holder, change ...func(*x509.Certificate)) *holder {
	t.Helper()
	serial++
	form := &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	for _, c := range change {
		c(form)
	}
	parent, signer := form, key
	if issuer != nil {
		parent, signer = issuer.Certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, form, parent, key.Public(), signer)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return &holder{cert, key}
}

func on(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	must(t, err)
	return key
}

func rootsOf(holders ...*holder) *Set {
	return NewSet(certs(holders), func(c *x509.Certificate) bool { return bytes.Equal(c.RawSubject, c.RawIssuer) })
}

func certs(holders []*holder) (list []*x509.Certificate) {
	for _, h := range holders {
		list = append(list, h.Certificate)
	}
	return list
}

// verify returns the units spent by a verification, and its result.
func verify(s *Set, sent ...*x509.Certificate) (units int, err error) {
	_, err = s.Verify(&Request{Sent: sent, Usage: x509.ExtKeyUsageAny, Now: time.Now(), Spend: func(n int) error { units += n; return nil }})
	return units, err
}

// TestUsualChainsAreVerified checks that chains of real certificate authorities use only a part of
// the budget: cross-signed, renewed, and on the largest curve of crypto/x509.
func TestUsualChainsAreVerified(t *testing.T) {
	rsaKey := func(bits int) crypto.Signer {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		must(t, err)
		return key
	}
	for name, key := range map[string]func() crypto.Signer{
		"P-256": func() crypto.Signer { return on(t, elliptic.P256()) },
		"P-384": func() crypto.Signer { return on(t, elliptic.P384()) },
		"RSA":   func() crypto.Signer { return rsaKey(2048) },
	} {
		root := issue(t, "root", key(), nil, testcert.Authority)
		chain := []*holder{root}
		for i := range 5 {
			chain = append([]*holder{issue(t, fmt.Sprint("between ", i), key(), chain[0], testcert.Authority)}, chain...)
		}
		chain = append([]*holder{issue(t, "leaf", key(), chain[0])}, chain...)
		for _, sent := range [][]*holder{chain[:6], chain} {
			if units, err := verify(rootsOf(root), certs(sent)...); err != nil || units > MaxWork/2 {
				t.Errorf("%s: %d units, %v", name, units, err)
			}
		}
		if _, err := verify(rootsOf(root), certs(chain[:5])...); !errors.As(err, new(x509.UnknownAuthorityError)) {
			t.Errorf("%s, one is missing: %v", name, err)
		}
		// A second root has cross-signed the root, and the client sends that certificate. The
		// authority of the leaf has a newer certificate.
		other := issue(t, "other", key(), nil, testcert.Authority)
		crossed := issue(t, "root", root.key, other, testcert.Authority)
		renewed := issue(t, "between 4", chain[1].key, chain[2], testcert.Authority)
		sent := []*holder{chain[0], renewed, chain[1], chain[2], chain[3], chain[4], chain[5], root, crossed}
		if units, err := verify(rootsOf(other), certs(sent)...); err != nil || units > MaxWork {
			t.Errorf("%s, cross-signed: %d units, %v", name, units, err)
		}
		// The authority has a new key under its name; the old key has signed it.
		newKey := key()
		rolled := issue(t, "root", newKey, root, testcert.Authority, func(c *x509.Certificate) { c.SubjectKeyId = []byte{9} })
		leaf := issue(t, "leaf", key(), rolled)
		if _, err := verify(rootsOf(root), leaf.Certificate, rolled.Certificate); err != nil {
			t.Errorf("%s, new key: %v", name, err)
		}
	}
	large := []*holder{issue(t, "root", on(t, elliptic.P521()), nil, testcert.Authority)}
	for i := range 3 {
		large = append([]*holder{issue(t, fmt.Sprint("between ", i), on(t, elliptic.P521()), large[0], testcert.Authority)}, large...)
	}
	leaf := issue(t, "leaf", on(t, elliptic.P521()), large[0])
	if units, err := verify(rootsOf(large[3]), append([]*x509.Certificate{leaf.Certificate}, certs(large[:3])...)...); err != nil || units != 120 {
		t.Errorf("P-521: %d units, %v", units, err)
	}
	own := issue(t, "self", on(t, elliptic.P256()), nil)
	if units, err := verify(rootsOf(own), own.Certificate); err != nil || units != 0 {
		t.Errorf("a certificate that is an authority itself: %d units, %v", units, err)
	}
}

// strangers are a leaf and n authorities that seem to have issued it, see testcert.Strangers.
func strangers(t testing.TB, root *x509.Certificate, n int, curve elliptic.Curve) (sent []*x509.Certificate) {
	for _, der := range testcert.Strangers(t, root, n, curve).Certificate {
		c, err := x509.ParseCertificate(der)
		must(t, err)
		sent = append(sent, c)
	}
	return sent
}

// TestStrangersCostLittle checks that chains beyond the budget are refused, most of them before any
// signature check.
func TestStrangersCostLittle(t *testing.T) {
	root := issue(t, "root", on(t, elliptic.P256()), nil, testcert.Authority)
	for n, most := range map[int]int{90: 0, MaxSent: 0, MaxSent - 1: 0, MaxIssuers + 1: 0, MaxIssuers: MaxWork, 2: 60} {
		units, err := verify(rootsOf(root), strangers(t, root.Certificate, n, elliptic.P521())...)
		if err == nil || units > most || n > 4 != errors.Is(err, ErrWork) {
			t.Errorf("%d issuers: %d units, %v; want %d at most", n, units, err, most)
		}
	}
	// A tenant's own authorities are bounded, too: each of these may have issued the leaf.
	var many []*holder
	for range MaxIssuers + 1 {
		many = append(many, issue(t, "same", on(t, elliptic.P256()), nil, testcert.Authority, func(c *x509.Certificate) { c.SubjectKeyId = []byte{1} }))
	}
	leaf := issue(t, "leaf", on(t, elliptic.P256()), many[0])
	if units, err := verify(rootsOf(many...), leaf.Certificate); !errors.Is(err, ErrWork) || units != 0 {
		t.Errorf("authorities of one name: %d units, %v", units, err)
	}
	if _, err := verify(rootsOf(many[:MaxIssuers]...), leaf.Certificate); err != nil {
		t.Error(err)
	}
	names := func(c *x509.Certificate) {
		for i := range MaxNames {
			c.DNSNames = append(c.DNSNames, fmt.Sprintf("%d.test", i))
		}
	}
	if units, err := verify(rootsOf(root), issue(t, "leaf", on(t, elliptic.P256()), root, names).Certificate); err != nil || units != 1 {
		t.Errorf("many names: %d units, %v", units, err)
	}
	if _, err := verify(rootsOf(root), issue(t, "leaf", on(t, elliptic.P256()), root, names, names).Certificate); !errors.Is(err, ErrWork) {
		t.Errorf("too many names: %v", err)
	}
}

// TestCost checks that no accepted key costs more than a step of a handshake may take.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		bits, exponent, want int
	}{{1024, 3, 1}, {2048, 65537, 1}, {3072, 65537, 3}, {4096, 65537, 4}, {8192, 65537, 16}, {4096, 1<<31 - 1, 14}, {8192, 1<<31 - 1, 53}, {8200, 3, MaxKeyCost + 1}} {
		if got := rsaCost(c.bits, uint64(c.exponent)); got != c.want {
			t.Errorf("RSA of %d bits with exponent %d: %d, want %d", c.bits, c.exponent, got, c.want)
		}
	}
	n := new(big.Int).Lsh(big.NewInt(1), 9000)
	dear := &x509.Certificate{PublicKey: &rsa.PublicKey{N: n, E: 65537}}
	if _, err := rootsOf().Verify(&Request{Sent: []*x509.Certificate{dear}}); !errors.Is(err, ErrWork) {
		t.Error(err)
	}
}

// TestVerifyAgreesWithX509 makes random authorities that sign each other, some with equal names.
// Verify finds a chain exactly if crypto/x509 finds one.
func TestVerifyAgreesWithX509(t *testing.T) {
	keys := make([]crypto.Signer, 5)
	for i := range keys {
		keys[i] = on(t, elliptic.P256())
	}
	found := 0
	for seed := range uint64(400) {
		r := mathrand.New(mathrand.NewPCG(seed, 1))
		name := func() string { return string(rune('a' + r.IntN(3))) }
		all := []*holder{issue(t, name(), keys[r.IntN(5)], nil, testcert.Authority)}
		for range 2 + r.IntN(6) {
			var issuer *holder
			if r.IntN(4) > 0 {
				issuer = all[r.IntN(len(all))]
			}
			all = append(all, issue(t, name(), keys[r.IntN(5)], issuer, testcert.Authority, func(c *x509.Certificate) {
				if r.IntN(6) == 0 {
					c.NotAfter = time.Now().Add(-time.Minute)
				}
				if r.IntN(6) == 0 {
					c.MaxPathLenZero = true
				}
				if r.IntN(8) == 0 {
					c.PermittedDNSDomains = []string{"a.test"}
				}
			}))
		}
		leaf := issue(t, "leaf", keys[0], all[r.IntN(len(all))], func(c *x509.Certificate) { c.DNSNames = []string{"b.test"} })
		var trusted, sent []*holder
		for _, h := range all {
			if r.IntN(3) == 0 {
				trusted = append(trusted, h)
			} else {
				sent = append(sent, h)
			}
		}
		anchors, between := x509.NewCertPool(), x509.NewCertPool()
		for _, h := range trusted {
			anchors.AddCert(h.Certificate)
		}
		for _, h := range sent {
			between.AddCert(h.Certificate)
		}
		_, want := leaf.Verify(x509.VerifyOptions{Roots: anchors, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		set := NewSet(certs(trusted), func(*x509.Certificate) bool { return true })
		units, err := verify(set, append([]*x509.Certificate{leaf.Certificate}, certs(sent)...)...)
		if (err == nil) != (want == nil) || units > MaxWork {
			t.Errorf("seed %d: %v with %d units, crypto/x509: %v", seed, err, units, want)
		}
		if err == nil {
			found++
		}
	}
	if found < 40 || found > 360 {
		t.Errorf("%d of 400 have a chain", found)
	}
}

// TestKnownChainsCostNothing checks that a repeated verification needs no signature check, and that
// every input of the verification is part of the memory's key.
func TestKnownChainsCostNothing(t *testing.T) {
	root := issue(t, "root", on(t, elliptic.P256()), nil, testcert.Authority)
	between := issue(t, "between", on(t, elliptic.P256()), root, testcert.Authority)
	leaf := issue(t, "leaf", on(t, elliptic.P256()), between, func(c *x509.Certificate) { c.DNSNames = []string{"a.test"} })
	m := new(Memory)
	sent := certs([]*holder{leaf, between})
	refused := errors.New("refused")
	for i, c := range []struct {
		what   string
		set    *Set
		change func(*Request)
		units  int
		ok     bool
	}{
		{"first", rootsOf(root), func(*Request) {}, 2, true},
		{"again", rootsOf(root), func(*Request) {}, 0, true},
		{"its name", rootsOf(root), func(r *Request) { r.DNSName = "a.test" }, 0, true},
		{"another name", rootsOf(root), func(r *Request) { r.DNSName = "b.test" }, 1, false},
		{"expired", rootsOf(root), func(r *Request) { r.Now = r.Now.Add(2 * time.Hour) }, 1, false},
		{"not accepted", rootsOf(root), func(r *Request) { r.Accept = func([]*x509.Certificate) error { return refused } }, 2, false},
		{"another authority", rootsOf(issue(t, "root", on(t, elliptic.P256()), nil, testcert.Authority)), func(*Request) {}, 1, false},
		{"other certificates sent", rootsOf(root), func(r *Request) { r.Sent = append(r.Sent[:2:2], root.Certificate) }, 2, true},
		{"another usage", rootsOf(root), func(r *Request) { r.Usage = x509.ExtKeyUsageClientAuth }, 2, true},
		{"still known", rootsOf(root), func(*Request) {}, 0, true},
	} {
		units := 0
		r := Request{Sent: sent, Usage: x509.ExtKeyUsageAny, Now: time.Now(), Memory: m, Spend: func(n int) error { units += n; return nil }}
		c.change(&r)
		chain, err := c.set.Verify(&r)
		if (err == nil) != c.ok || units > c.units || c.ok && units != c.units || c.ok && len(chain) != 3 {
			t.Errorf("%d, %s: %d units, %v, %d certificates", i, c.what, units, err, len(chain))
		}
	}
}

// TestSpendEndsVerification checks that an error of Spend ends the verification between two
// signature checks.
func TestSpendEndsVerification(t *testing.T) {
	root := issue(t, "root", on(t, elliptic.P256()), nil, testcert.Authority)
	between := issue(t, "between", on(t, elliptic.P256()), root, testcert.Authority)
	leaf := issue(t, "leaf", on(t, elliptic.P256()), between)
	enough := errors.New("enough")
	for after := range 2 {
		n := 0
		_, err := rootsOf(root).Verify(&Request{Sent: certs([]*holder{leaf, between}), Usage: x509.ExtKeyUsageAny, Now: time.Now(), Spend: func(int) error {
			if n++; n > after {
				return enough
			}
			return nil
		}})
		if !errors.Is(err, enough) || n != after+1 {
			t.Errorf("%v after %d checks, want %d", err, n, after+1)
		}
	}
}

// BenchmarkStrangers measures the cost of refusing a client with n authorities on P-521.
func BenchmarkStrangers(b *testing.B) {
	root := issue(b, "root", on(b, elliptic.P256()), nil, testcert.Authority)
	for _, n := range []int{90, MaxIssuers} {
		sent := strangers(b, root.Certificate, n, elliptic.P521())
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := verify(rootsOf(root), sent...); err == nil {
					b.Fatal("accepted")
				}
			}
		})
		b.Run(fmt.Sprint("x509/", n), func(b *testing.B) {
			roots, between := x509.NewCertPool(), x509.NewCertPool()
			roots.AddCert(root.Certificate)
			for _, c := range sent[1:] {
				between.AddCert(c)
			}
			for b.Loop() {
				if _, err := sent[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between}); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}
