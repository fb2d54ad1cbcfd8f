package admit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

var tlsNow = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// identity is a certificate with its key.
type identity struct {
	cert *x509.Certificate
	pem  string
	key  crypto.Signer
}

func (i identity) keyPEM(t testing.TB) string {
	t.Helper()
	if k, ok := i.key.(*rsa.PrivateKey); ok {
		return block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k))
	}
	der, err := x509.MarshalECPrivateKey(i.key.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	return block("EC PRIVATE KEY", der)
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// how is how issue makes a certificate.
type how struct {
	name     string
	from, to time.Duration // relative to tlsNow; 0, 0 = valid
	sha1     bool
	ca       bool
	subject  string // "" = name
}

// issue makes a certificate signed by issuer, by itself if issuer is nil.
func issue(t testing.TB, h how, issuer *identity) identity {
	t.Helper()
	var key crypto.Signer
	var err error
	if h.sha1 || h.ca {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	if h.from == 0 && h.to == 0 {
		h.from, h.to = -time.Hour, time.Hour
	}
	if h.subject == "" {
		h.subject = h.name
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: h.subject}, NotBefore: tlsNow.Add(h.from), NotAfter: tlsNow.Add(h.to),
		IsCA: h.ca, BasicConstraintsValid: true, DNSNames: []string{h.name},
		SubjectKeyId: serial.Bytes(),
	}
	if h.sha1 {
		template.SignatureAlgorithm = x509.SHA1WithRSA
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
		template.AuthorityKeyId = issuer.cert.SubjectKeyId
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return identity{cert: cert, pem: block("CERTIFICATE", der), key: key}
}

// chains is what the rows of section M are made of.
type chains struct {
	ca, otherCA, weakRoot, weakMiddle, middle                               identity
	good, other, expired, early, unrelated, self, weak, weakSelf, viaMiddle identity
	weakLike                                                                identity
}

func makeChains(t *testing.T) *chains {
	t.Helper()
	c := new(chains)
	c.ca = issue(t, how{name: "ca", ca: true}, nil)
	c.otherCA = issue(t, how{name: "other-ca", ca: true}, nil)
	c.weakRoot = issue(t, how{name: "weak-root", ca: true, sha1: true}, nil)
	c.weakMiddle = issue(t, how{name: "weak-middle", ca: true, sha1: true}, &c.weakRoot)
	c.middle = issue(t, how{name: "middle", ca: true}, &c.ca)
	c.good = issue(t, how{name: "www.example.test"}, &c.ca)
	c.other = issue(t, how{name: "other.example.test"}, &c.ca)
	c.expired = issue(t, how{name: "old.example.test", from: -2 * time.Hour, to: -time.Hour}, &c.ca)
	c.early = issue(t, how{name: "new.example.test", from: time.Hour, to: 2 * time.Hour}, &c.ca)
	c.unrelated = issue(t, how{name: "un.example.test"}, &c.otherCA)
	c.self = issue(t, how{name: "self.example.test"}, nil)
	c.weak = issue(t, how{name: "weak.example.test", sha1: true}, &c.ca)
	c.weakSelf = issue(t, how{name: "weak-self.example.test", sha1: true}, nil)
	c.weakLike = issue(t, how{name: "like.example.test", subject: "ca", sha1: true}, &c.ca)
	c.viaMiddle = issue(t, how{name: "via.example.test", from: -2 * time.Hour, to: -time.Hour}, &c.middle)
	return c
}

// tlsErrors returns the number of things wrong.
func tlsErrors(config *routev1.TLSConfig) int {
	errs := checkTLS(config, tlsNow, nil).errs
	return len(errs)
}

// TestTLSErrors is section M.1: the number of things wrong.
func TestTLSErrors(t *testing.T) {
	c := makeChains(t)
	good, goodKey, ca := c.good.pem, c.good.keyPEM(t), c.ca.pem
	spaced := func(text string) string {
		return "\n  \n" + strings.ReplaceAll(text, "-----BEGIN", "\n\n-----BEGIN") + "\n\n"
	}
	malformed := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	request := block("CERTIFICATE REQUEST", []byte("x"))
	for _, r := range []struct {
		id, termination             string
		cert, key, cas, destination string
		errors                      int
	}{
		{"C536", "", "", "", "", "", 1},
		{"C537", "invalid", "", "", "", "", 1},
		{"C538", "passthrough", "", "", "", "", 0},
		{"C539", "passthrough", "test", "", "", "", 3},
		{"C541", "passthrough", "", "", "test", "", 2},
		{"C542", "passthrough", "", "", "", "test", 2},
		{"C543", "reencrypt", good, goodKey, ca, ca, 0},
		{"C544", "reencrypt", "def", "ghi", "jkl", "abc", 4},
		{"C546", "reencrypt", "", "", "", ca, 0},
		{"C547", "reencrypt", "", "", "", "abc", 1},
		{"C548", "reencrypt", good, goodKey, ca, "", 0},
		{"C549", "edge", good, goodKey, ca, "", 0},
		{"edge with destination CA", "edge", good, goodKey, ca, ca, 1},
		{"C551", "edge", "abc", "abc", "abc", "", 3},
		{"C552", "edge", good, c.other.keyPEM(t), ca, "", 1},
		{"C553", "edge", good, goodKey, "", "", 0},
		{"C554", "edge", c.expired.pem, c.expired.keyPEM(t), "", "", 0},
		{"C556", "edge", c.unrelated.pem, c.other.keyPEM(t), ca, "", 2},
		{"C557", "edge", c.expired.pem, c.expired.keyPEM(t), c.otherCA.pem, "", 0},
		{"C558", "edge", "", "", "", "", 0},
		{"C559", "edge", "", "", "", "", 0},
		{"C561", "edge", c.expired.pem, c.expired.keyPEM(t), ca, "", 0},
		{"C562", "reencrypt", c.expired.pem, c.expired.keyPEM(t), ca, ca, 0},
		{"C563", "edge", c.expired.pem, "", "", "", 1},
		{"C564", "edge", c.expired.pem, c.other.keyPEM(t), "", "", 1},
		{"C566", "reencrypt", c.self.pem, c.self.keyPEM(t), "", c.self.pem, 0},
		{"C567", "edge", c.self.pem, c.self.keyPEM(t), "", "", 0},
		{"C568", "edge", c.early.pem, c.early.keyPEM(t), "", "", 0},
		{"C569", "edge", spaced(c.early.pem), spaced(c.early.keyPEM(t)), "", "", 0},
		{"C571", "edge", c.viaMiddle.pem, c.viaMiddle.keyPEM(t), c.middle.pem + ca, "", 0},
		{"C572", "edge", good, goodKey, request, "", 2},
		{"C573", "edge", good, goodKey, goodKey, "", 2},
		{"C574", "edge", good, goodKey, malformed, "", 2},
		{"C576", "reencrypt", c.self.pem, c.self.keyPEM(t), "", malformed, 1},
		{"C577", "reencrypt", "", "", "", spaced(c.middle.pem + ca), 0},
		{"C579", "edge", c.weak.pem, c.weak.keyPEM(t), "", "", 1},
		{"C581", "edge", c.weakSelf.pem, c.weakSelf.keyPEM(t), "", "", 0},
		{"C583", "edge", c.weakLike.pem, c.weakLike.keyPEM(t), "", "", 1},
		{"C584", "reencrypt", "", "", "", c.weakRoot.pem + c.weakMiddle.pem, 1},
		{"C586", "edge", good, goodKey, ca + c.weakRoot.pem, "", 0},
		{"C587", "edge", good, goodKey, ca + c.weakRoot.pem + c.weakMiddle.pem, "", 1},
		{"C588", "edge", "Bag Attributes\n  x: y\n" + good + "subject=x\n" + ca, "Bag Attributes\n" + goodKey, "", "", 0},
		{"C589", "edge", ca + good, goodKey, "", "", 1},
		{"C591", "edge", goodKey + good, "", "", "", 0},
		{"C592", "edge", good, goodKey + c.other.keyPEM(t), "", "", 0},
		{"C593", "edge", good, c.other.keyPEM(t) + goodKey, "", "", 1},
		{"C594", "edge", good + ca, strings.ReplaceAll(goodKey, "EC PRIVATE", "XYZ PRIVATE"), "", "", 3},
		{"C596", "edge", "", block("UNRECOGNIZED", []byte("x")), "", "", 1},
		{"C597", "edge", "", strings.Replace(goodKey, "END", "ENDE", 1), "", "", 0},
		{"C598", "edge", "", block("EC PARAMETERS", []byte("x")), "", "", 0},
		{"C599", "edge", "", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "", "", 1},
	} {
		config := &routev1.TLSConfig{
			Termination: routev1.TLSTerminationType(r.termination), Certificate: r.cert, Key: r.key,
			CACertificate: r.cas, DestinationCACertificate: r.destination,
		}
		errs := checkTLS(config, tlsNow, nil).errs
		if len(errs) != r.errors {
			t.Errorf("%s: %d errors, want %d: %v", r.id, len(errs), r.errors, errs)
		}
		for _, e := range errs {
			if len(r.key) > 100 && strings.Contains(e.Error(), r.key[40:80]) {
				t.Errorf("%s: a key is shown in %v", r.id, e)
			}
		}
	}
}

func TestTLSMessages(t *testing.T) {
	c := makeChains(t)
	v := func(config routev1.TLSConfig) string {
		_, _, v := TLS(&config, tlsNow, nil)
		if v.Admitted == (v.Message != "") || !v.Admitted && v.Reason != ReasonInvalid {
			t.Errorf("verdict %+v", v)
		}
		return v.Message
	}
	for _, r := range []struct {
		config routev1.TLSConfig
		want   string
	}{
		{routev1.TLSConfig{Termination: "x"}, `spec.tls.termination: Unsupported value: "x"`},
		{routev1.TLSConfig{Termination: "passthrough", Key: "k"}, `spec.tls.key: Invalid value: "redacted key data": passthrough termination does not support certificates`},
		{routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "hsts"},
			"invalid value for InsecureEdgeTerminationPolicy option, acceptable values are None, Allow, Redirect, or empty"},
		{routev1.TLSConfig{Termination: "passthrough", InsecureEdgeTerminationPolicy: "Allow"}, "acceptable values are None, Redirect, or empty"},
		{routev1.TLSConfig{Termination: "edge", Certificate: c.good.pem}, "no key specified"},
		{routev1.TLSConfig{Termination: "edge", Certificate: c.good.pem, Key: c.other.keyPEM(t)}, "tls: private key does not match public key"},
		{routev1.TLSConfig{Termination: "edge", Certificate: c.weak.pem, Key: c.weak.keyPEM(t)}, "router does not support CA-signed certs using SHA1"},
		{routev1.TLSConfig{Termination: "edge", Key: block("UNRECOGNIZED", []byte("x"))}, "unrecognized PEM block UNRECOGNIZED"},
		{routev1.TLSConfig{Termination: "edge", Certificate: c.unrelated.pem, Key: c.unrelated.keyPEM(t), CACertificate: c.ca.pem}, "error verifying certificate: "},
	} {
		if got := v(r.config); !strings.Contains(got, r.want) {
			t.Errorf("message %q, want %q in it", got, r.want)
		}
	}
	for _, policy := range []routev1.InsecureEdgeTerminationPolicyType{"", "None", "Allow", "Redirect"} {
		if got := v(routev1.TLSConfig{Termination: "reencrypt", InsecureEdgeTerminationPolicy: policy}); got != "" {
			t.Errorf("policy %q: %s", policy, got)
		}
	}
	if _, _, v := TLS(nil, tlsNow, nil); !v.Admitted {
		t.Error("a route without TLS is not admitted")
	}
}

// TestTLSCleaned is section M.2.
func TestTLSCleaned(t *testing.T) {
	c := makeChains(t)
	clean := func(config routev1.TLSConfig) *routev1.TLSConfig {
		t.Helper()
		before := config
		out, parsed, v := TLS(&config, tlsNow, nil)
		if !v.Admitted {
			t.Fatalf("not admitted: %s", v.Message)
		}
		if config != before {
			t.Error("the argument was changed")
		}
		sameAsText(t, parsed, out)
		return out
	}
	keyA, keyB := c.good.keyPEM(t), c.other.keyPEM(t)
	out := clean(routev1.TLSConfig{Termination: "edge", Certificate: c.good.pem + keyA, Key: keyB})
	if out.Key != keyA+keyB || out.Certificate != c.good.pem {
		t.Error("C601: the key of the certificate field does not stand before the key")
	}
	out = clean(routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: "\nx\n" + c.ca.pem + "\n\n" + c.middle.pem + "y"})
	if out.DestinationCACertificate != c.ca.pem+c.middle.pem {
		t.Error("C602: the destination CA is not clean")
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.weakSelf.key)
	if err != nil {
		t.Fatal(err)
	}
	out = clean(routev1.TLSConfig{Termination: "edge", Certificate: c.weakSelf.pem, Key: block("PRIVATE KEY", der)})
	if out.Key != c.weakSelf.keyPEM(t) {
		t.Error("C603: the key is not encoded as PKCS#1")
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if der, err = x509.MarshalPKCS8PrivateKey(edwards); err != nil {
		t.Fatal(err)
	}
	if n := tlsErrors(&routev1.TLSConfig{Termination: "edge", Key: block("PRIVATE KEY", der)}); n != 1 {
		t.Errorf("an Ed25519 key: %d errors", n)
	}
	encrypted := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte("x")}))
	if n := tlsErrors(&routev1.TLSConfig{Termination: "edge", Key: encrypted}); n != 1 {
		t.Errorf("an encrypted key: %d errors", n)
	}
}

func TestWeakHash(t *testing.T) {
	for algorithm, want := range map[x509.SignatureAlgorithm]string{
		x509.MD2WithRSA: "MD2", x509.MD5WithRSA: "MD5", x509.SHA1WithRSA: "SHA1", x509.ECDSAWithSHA1: "SHA1", x509.SHA256WithRSA: "",
	} {
		signed := &x509.Certificate{SignatureAlgorithm: algorithm, RawIssuer: []byte("a"), RawSubject: []byte("b"), PublicKeyAlgorithm: x509.RSA}
		if got := weakSigner([]*x509.Certificate{signed}); got != want {
			t.Errorf("C578: %v signed by a CA: %q, want %q", algorithm, got, want)
		}
	}
	self := &x509.Certificate{SignatureAlgorithm: x509.MD5WithRSA, PublicKeyAlgorithm: x509.RSA}
	if got := weakSigner([]*x509.Certificate{self}); got != "" {
		t.Errorf("C582: self-signed: %q", got)
	}
}
