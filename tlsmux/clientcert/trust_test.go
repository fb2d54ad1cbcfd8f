package clientcert

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit/testcert"
)

func TestParseMode(t *testing.T) {
	for text, want := range map[string]Mode{"": None, "none": None, "optional": Optional, "required": Required} {
		if got, err := ParseMode(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
		if text != "" && want.String() != text {
			t.Errorf("%q prints as %q", text, want)
		}
	}
	for _, text := range []string{"Required", "yes", "require", "optional_no_ca"} {
		if _, err := ParseMode(text); err == nil || !strings.Contains(err.Error(), "none, optional, required") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseBundle(t *testing.T) {
	a, b := issue(t, nil, "a"), issue(t, nil, "b")
	text := append(pemOf("PRIVATE KEY", []byte("no certificate")), pemOf("CERTIFICATE", a.Cert.Raw, b.Cert.Raw, a.Cert.Raw)...)
	got, err := ParseBundle(append([]byte("# authorities\n"), text...))
	if err != nil || got.Certificates() != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if got.Digest() == bundle(t, b, a).Digest() || got.Digest() != bundle(t, a, b).Digest() {
		t.Error("the digest is not that of the content")
	}
	for what, text := range map[string][]byte{
		"empty": nil, "no PEM": []byte("hello"), "no certificate": pemOf("PRIVATE KEY", []byte("x")),
		"damaged":                append(pemOf("CERTIFICATE", a.Cert.Raw), pemOf("CERTIFICATE", a.Cert.Raw[:100])...),
		"one whole, one cut off": append(pemOf("CERTIFICATE", a.Cert.Raw), pemOf("CERTIFICATE", b.Cert.Raw)[:200]...),
	} {
		if _, err := ParseBundle(text); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestOnlyRootsAreTrusted: an authority below a root counts when the root is there too, as with OpenSSL.
func TestOnlyRootsAreTrusted(t *testing.T) {
	root := issue(t, nil, "root")
	upper := issue(t, root, "upper", testcert.Authority)
	lower := issue(t, upper, "lower", testcert.Authority)
	leaf := issue(t, lower, "leaf")
	loop := issue(t, nil, "loop")
	back := issue(t, loop, "back", testcert.Authority)
	turned := issue(t, back, "loop", testcert.Authority) // a circle without a root: loop is signed by back
	astray := issue(t, turned, "astray")
	short := issue(t, root, "short", testcert.Authority, func(c *x509.Certificate) { c.MaxPathLenZero = true })
	shortLeaf := issue(t, issue(t, short, "too deep", testcert.Authority), "leaf")
	for _, c := range []struct {
		what    string
		bundle  []*pair
		sent    []*pair
		trusted bool
	}{
		{"whole chain sent", []*pair{root}, []*pair{leaf, lower, upper}, true},
		{"one missing", []*pair{root}, []*pair{leaf, lower}, false},
		{"missing one in the bundle", []*pair{root, upper}, []*pair{leaf, lower}, true},
		{"all in the bundle", []*pair{lower, upper, root}, []*pair{leaf}, true},
		{"bundle with a gap", []*pair{lower, root}, []*pair{leaf}, false},
		{"no root", []*pair{lower, upper}, []*pair{leaf, lower, upper}, false},
		{"root sent by the client", []*pair{lower}, []*pair{leaf, lower, upper, root}, false},
		{"circle", []*pair{back, turned}, []*pair{astray}, false},
		{"nothing sent", []*pair{root}, nil, true},
		{"longer than the root's child allows", []*pair{root, short}, []*pair{shortLeaf}, false},
	} {
		if err := judge(t, NewTrust(bundle(t, c.bundle...), nil), c.sent...); (err == nil) != c.trusted {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// TestTrustedCertificates: what OpenSSL appends to a certificate says what it is trusted with. The bytes are those of
// openssl x509 -trustout -addtrust, -addreject and -setalias.
func TestTrustedCertificates(t *testing.T) {
	const clientAuth, serverAuth, anyUsage = "\x06\x08+\x06\x01\x05\x05\x07\x03\x02", "\x06\x08+\x06\x01\x05\x05\x07\x03\x01", "\x06\x04\x55\x1d\x25\x00"
	with := func(tag string, content ...string) string {
		all := strings.Join(content, "")
		return tag + string(rune(len(all))) + all
	}
	ca := issue(t, nil, "ca")
	for _, c := range []struct {
		what    string
		after   string
		trusted bool
	}{
		{"nothing", "", true},
		{"no trust", with("\x30"), true},
		{"a name", with("\x30", with("\x0c", "some")), true},
		{"for clients", with("\x30", with("\x30", clientAuth)), true},
		{"for servers and clients", with("\x30", with("\x30", serverAuth, clientAuth)), true},
		{"for anything", with("\x30", with("\x30", anyUsage)), true},
		{"for servers", with("\x30", with("\x30", serverAuth)), false},
		{"not for clients", with("\x30", with("\xa0", clientAuth)), false},
		{"not for anything", with("\x30", with("\xa0", anyUsage)), false},
		{"for clients, and not", with("\x30", with("\x30", clientAuth), with("\xa0", clientAuth)), false},
		{"not for servers", with("\x30", with("\xa0", serverAuth)), true},
	} {
		text := pemOf("TRUSTED CERTIFICATE", append(ca.Cert.Raw[:len(ca.Cert.Raw):len(ca.Cert.Raw)], c.after...))
		b, err := ParseBundle(text)
		if (err == nil) != c.trusted {
			t.Errorf("%s: %v, %v", c.what, b, err)
		}
		if err == nil && judge(t, NewTrust(b, nil), issue(t, ca, "leaf")) != nil {
			t.Errorf("%s: a client is not trusted", c.what)
		}
	}
	for _, tail := range []string{"\x30", "\x04\x00", "\x30\x02\x30", "\x30\x03\x30\x01\x06"} {
		if _, trusted := cutTrust(append(ca.Cert.Raw[:len(ca.Cert.Raw):len(ca.Cert.Raw)], tail...)); trusted {
			t.Errorf("%q is trusted", tail)
		}
	}
}

func TestRevocation(t *testing.T) {
	root := issue(t, nil, "root")
	between := issue(t, root, "between", testcert.Authority)
	const here, there = "http://here.test/crl", "http://there.test/crl"
	leaf, revoked := issue(t, between, "leaf", points(here)), issue(t, between, "revoked")
	direct := issue(t, root, "direct")
	impostor := issue(t, nil, "between") // has the name, not the key
	rootList, betweenList := list(t, root, nil), list(t, between, nil, revoked)
	at := func(this, next time.Duration) func(*x509.RevocationList) {
		return func(l *x509.RevocationList) { l.ThisUpdate, l.NextUpdate = time.Now().Add(this), time.Now().Add(next) }
	}
	for _, c := range []struct {
		what  string
		lists [][]byte
		sent  []*pair
		want  error
	}{
		{"not revoked", [][]byte{rootList, betweenList}, []*pair{leaf, between}, nil},
		{"revoked", [][]byte{rootList, betweenList}, []*pair{revoked, between}, ErrRevoked},
		{"no certificate", [][]byte{}, nil, nil},
		{"no list at all", [][]byte{}, []*pair{leaf, between}, ErrNoList},
		{"none of the one in between", [][]byte{rootList}, []*pair{leaf, between}, ErrNoList},
		{"none of the root", [][]byte{betweenList}, []*pair{leaf, between}, ErrNoList},
		{"none of the root, direct", [][]byte{betweenList}, []*pair{direct}, ErrNoList},
		{"direct", [][]byte{rootList}, []*pair{direct}, nil},
		{"one in between is revoked", [][]byte{list(t, root, nil, between), betweenList}, []*pair{leaf, between}, ErrRevoked},
		{"the root revokes itself", [][]byte{list(t, root, nil, root)}, []*pair{direct}, ErrRevoked},
		{"expired", [][]byte{rootList, list(t, between, at(-2*time.Hour, -time.Hour))}, []*pair{leaf, between}, ErrListExpired},
		{"from the future", [][]byte{rootList, list(t, between, at(time.Hour, 2*time.Hour))}, []*pair{leaf, between}, ErrListExpired},
		{"signed by somebody else", [][]byte{rootList, list(t, impostor, nil)}, []*pair{leaf, between}, ErrNoList},
		{"the newest list counts", [][]byte{rootList, list(t, between, nil, leaf), list(t, between, at(-time.Minute, time.Hour))}, []*pair{leaf, between}, nil},
		{"in any order", [][]byte{list(t, between, at(-time.Minute, time.Hour), leaf), list(t, between, nil), rootList}, []*pair{leaf, between}, ErrRevoked},
		{"taken off the list", [][]byte{rootList, list(t, between, func(l *x509.RevocationList) {
			l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: leaf.Cert.SerialNumber, RevocationTime: time.Now(), ReasonCode: removedFromList}}
		})}, []*pair{leaf, between}, nil},
		{"for users", [][]byte{rootList, list(t, between, scoped(t, flag(1)))}, []*pair{leaf, between}, nil},
		{"for authorities", [][]byte{rootList, list(t, between, scoped(t, flag(2)))}, []*pair{leaf, between}, ErrNoList},
		{"for authorities, of the root", [][]byte{list(t, root, scoped(t, flag(2))), betweenList}, []*pair{leaf, between}, nil},
		{"for users, of the root", [][]byte{list(t, root, scoped(t, flag(1))), betweenList}, []*pair{leaf, between}, ErrNoList},
		{"for some reasons", [][]byte{rootList, list(t, between, scoped(t, flag(3)))}, []*pair{leaf, between}, ErrNoList},
		{"indirect", [][]byte{rootList, list(t, between, scoped(t, flag(4)))}, []*pair{leaf, between}, ErrNoList},
		{"for this point", [][]byte{rootList, list(t, between, scoped(t, point(t, here)))}, []*pair{leaf, between}, nil},
		{"for another point", [][]byte{rootList, list(t, between, scoped(t, point(t, there)))}, []*pair{leaf, between}, ErrNoList},
		{"a part that is elsewhere does not hide the right one", [][]byte{rootList, list(t, between, scoped(t, point(t, there))), list(t, between, scoped(t, point(t, here)), leaf)}, []*pair{leaf, between}, ErrRevoked},
	} {
		lists := []*List{}
		for _, der := range c.lists {
			lists = append(lists, parsed(t, der))
		}
		trust := NewTrust(bundle(t, root), lists)
		for range 2 { // signatures are remembered
			if err := judge(t, trust, c.sent...); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.what, err, c.want)
			}
		}
	}
	if err := judge(t, NewTrust(bundle(t, root), nil), revoked, between); err != nil {
		t.Errorf("lists are not asked for: %v", err)
	}
}

// TestAuthorityInTheBundleIsCompleted: a chain that crypto/tls ends below the root is still looked up to the root.
func TestAuthorityInTheBundleIsCompleted(t *testing.T) {
	root := issue(t, nil, "root")
	between := issue(t, root, "between", testcert.Authority)
	leaf := issue(t, between, "leaf")
	b := bundle(t, root, between)
	if err := judge(t, NewTrust(b, []*List{parsed(t, list(t, root, nil)), parsed(t, list(t, between, nil))}), leaf); err != nil {
		t.Error(err)
	}
	if err := judge(t, NewTrust(b, []*List{parsed(t, list(t, root, nil, between)), parsed(t, list(t, between, nil))}), leaf); !errors.Is(err, ErrRevoked) {
		t.Errorf("the one in between is revoked: %v", err)
	}
	if err := judge(t, NewTrust(b, []*List{parsed(t, list(t, between, nil))}), leaf); !errors.Is(err, ErrNoList) {
		t.Errorf("no list of the root: %v", err)
	}
}

func TestParseLists(t *testing.T) {
	a, b := issue(t, nil, "a"), issue(t, nil, "b")
	one, two := list(t, a, nil), list(t, b, nil)
	for what, data := range map[string][]byte{
		"PEM": append(pemOf("CERTIFICATE", a.Cert.Raw), pemOf("X509 CRL", one, two)...),
	} {
		if lists, err := ParseLists(data, nil); err != nil || len(lists) != 2 || lists[0].issuer != string(a.Cert.RawSubject) {
			t.Errorf("%s: %v %v", what, lists, err)
		}
	}
	if lists, err := ParseLists(one, nil); err != nil || len(lists) != 1 {
		t.Errorf("DER: %v %v", lists, err)
	}
	delta, err := asn1.Marshal(big.NewInt(1))
	must(t, err)
	entry := func(l *x509.RevocationList) {
		l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: big.NewInt(7), RevocationTime: time.Now()}}
		issuer := &x509.RevocationList{} // an entry of another issuer
		extension(t, asn1.ObjectIdentifier{2, 5, 29, 29}, []byte{0x30, 0})(issuer)
		l.RevokedCertificateEntries[0].ExtraExtensions = issuer.ExtraExtensions
	}
	for what, data := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "no list": pemOf("CERTIFICATE", a.Cert.Raw), "torn": one[:len(one)-1],
		"one of two is torn":    pemOf("X509 CRL", one, two[:40]),
		"the second ends early": append(pemOf("X509 CRL", one), pemOf("X509 CRL", two)[:150]...),
		"changes only":          list(t, a, extension(t, oidDelta, delta)),
		"unknown extension":     list(t, a, extension(t, oidMine, delta)),
		"unknown of an entry":   list(t, a, entry),
		"an error page":         []byte("<html>not found</html>"),
		"a certificate":         a.Cert.Raw,
	} {
		if lists, err := ParseLists(data, bundle(t, a, b)); err == nil {
			t.Errorf("%s: %v", what, lists)
		}
	}
}

var oidMine = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 99999, 1}

func FuzzParseLists(f *testing.F) {
	ca := issue(f, nil, "a")
	leaf := issue(f, ca, "leaf", points("http://here.test/crl"))
	f.Add(list(f, ca, nil, leaf))
	f.Add(list(f, ca, scoped(f, point(f, "http://here.test/crl"), flag(1))))
	f.Add(list(f, ca, scoped(f, flag(4))))
	f.Add(pemOf("X509 CRL", list(f, ca, nil), list(f, ca, nil)))
	f.Add([]byte("-----BEGIN X509 CRL-----\n-----END X509 CRL-----\n"))
	trusted := bundle(f, ca)
	f.Fuzz(func(t *testing.T, data []byte) {
		lists, err := ParseLists(data, trusted)
		if err != nil {
			return
		}
		if len(lists) == 0 {
			t.Fatal("neither a list nor an error")
		}
		for _, l := range lists {
			if l.NextUpdate.IsZero() {
				t.Fatal("a list that never ends")
			}
			l.covers(leaf.Cert)
			_ = trusted.vouches(l)
		}
		_ = judge(t, NewTrust(trusted, lists), leaf)
	})
}

func FuzzParseBundle(f *testing.F) {
	root := issue(f, nil, "a")
	f.Add(pemOf("CERTIFICATE", root.Cert.Raw, issue(f, root, "b", testcert.Authority).Cert.Raw))
	f.Add(pemOf("TRUSTED CERTIFICATE", append(root.Cert.Raw[:len(root.Cert.Raw):len(root.Cert.Raw)], "\x30\x0c\x30\x0a\x06\x08+\x06\x01\x05\x05\x07\x03\x02"...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseBundle(data)
		if err == nil && (b.Certificates() == 0 || b.Pool() == nil) {
			t.Fatal("an empty bundle")
		}
	})
}
