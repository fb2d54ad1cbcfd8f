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
	"unsafe"

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

// chains is what the rows are made of.
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

// TestTLSErrors counts the things wrong.
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
		{"\"\" (tls present): 1 error", "", "", "", "", "", 1},
		{"invalid: 1 error", "invalid", "", "", "", "", 1},
		{"passthrough: accepted", "passthrough", "", "", "", "", 0},
		{"passthrough, certificate test: 3 errors", "passthrough", "test", "", "", "", 3},
		{"passthrough, caCertificate test: 2 errors", "passthrough", "", "", "test", "", 2},
		{"passthrough, destinationCACertificate test: 2 errors", "passthrough", "", "", "", "test", 2},
		{"reencrypt, certificate good, key good, caCertificate CA, destinationCACertificate CA: accepted", "reencrypt", good, goodKey, ca, ca, 0},
		{"reencrypt, certificate def, key ghi, caCertificate jkl, destinationCACertificate abc: 4 errors", "reencrypt", "def", "ghi", "jkl", "abc", 4},
		{"reencrypt, destinationCACertificate CA: accepted", "reencrypt", "", "", "", ca, 0},
		{"reencrypt, destinationCACertificate abc: 1 error", "reencrypt", "", "", "", "abc", 1},
		{"reencrypt, certificate good, key good, caCertificate CA: accepted", "reencrypt", good, goodKey, ca, "", 0},
		{"edge, certificate good, key good, caCertificate CA: accepted", "edge", good, goodKey, ca, "", 0},
		{"edge with destination CA", "edge", good, goodKey, ca, ca, 1},
		{"edge, certificate abc, key abc, caCertificate abc: 3 errors", "edge", "abc", "abc", "abc", "", 3},
		{"edge, certificate good, key key of another cert, caCertificate CA: 1 error", "edge", good, c.other.keyPEM(t), ca, "", 1},
		{"edge, certificate good, key good: accepted", "edge", good, goodKey, "", "", 0},
		{"edge, other host, certificate expired, key its key: accepted", "edge", c.expired.pem, c.expired.keyPEM(t), "", "", 0},
		{"edge, certificate cert of unrelated CA, key other key, caCertificate CA: 2 errors", "edge", c.unrelated.pem, c.other.keyPEM(t), ca, "", 2},
		{"edge, certificate expired, other issuer, key its key, caCertificate CA: accepted", "edge", c.expired.pem, c.expired.keyPEM(t), c.otherCA.pem, "", 0},
		{"edge: accepted", "edge", "", "", "", "", 0},
		{"edge, certificate \"\", key \"\": accepted", "edge", "", "", "", "", 0},
		{"edge, certificate expired, key its key, caCertificate its CA: accepted", "edge", c.expired.pem, c.expired.keyPEM(t), ca, "", 0},
		{"reencrypt, certificate expired, key its key, caCertificate its CA, destinationCACertificate CA: accepted", "reencrypt", c.expired.pem, c.expired.keyPEM(t), ca, ca, 0},
		{"edge, certificate expired, no key anywhere: 1 error", "edge", c.expired.pem, "", "", "", 1},
		{"edge, certificate expired, key key of another cert: 1 error", "edge", c.expired.pem, c.other.keyPEM(t), "", "", 1},
		{"reencrypt, certificate self-signed, key its key, destinationCACertificate same cert: accepted", "reencrypt", c.self.pem, c.self.keyPEM(t), "", c.self.pem, 0},
		{"edge, other host, certificate self-signed, key its key: accepted", "edge", c.self.pem, c.self.keyPEM(t), "", "", 0},
		{"edge, certificate not yet valid, key its key: accepted", "edge", c.early.pem, c.early.keyPEM(t), "", "", 0},
		{"edge, certificate not yet valid, extra whitespace in PEM, key its key: accepted", "edge", spaced(c.early.pem), spaced(c.early.keyPEM(t)), "", "", 0},
		{"edge, certificate expired via intermediate, key its key, caCertificate chain: accepted", "edge", c.viaMiddle.pem, c.viaMiddle.keyPEM(t), c.middle.pem + ca, "", 0},
		{"edge, certificate good, key good, caCertificate CSR block instead of cert: 2 errors", "edge", good, goodKey, request, "", 2},
		{"edge, certificate good, key good, caCertificate private key instead of cert: 2 errors", "edge", good, goodKey, goodKey, "", 2},
		{"edge, certificate good, key good, caCertificate malformed certificate: 2 errors", "edge", good, goodKey, malformed, "", 2},
		{"reencrypt, certificate self-signed, key its key, destinationCACertificate malformed: 1 error", "reencrypt", c.self.pem, c.self.keyPEM(t), "", malformed, 1},
		{"reencrypt, destinationCACertificate chain with whitespace: accepted", "reencrypt", "", "", "", spaced(c.middle.pem + ca), 0},
		{"edge, certificate SHA1 RSA, CA-signed, key its key: 1 error", "edge", c.weak.pem, c.weak.keyPEM(t), "", "", 1},
		{"edge, certificate SHA1 self-signed, key its key: accepted", "edge", c.weakSelf.pem, c.weakSelf.keyPEM(t), "", "", 0},
		{"edge, certificate SHA1, subject equals issuer but CA-signed, key its key: 1 error", "edge", c.weakLike.pem, c.weakLike.keyPEM(t), "", "", 1},
		{"reencrypt, destinationCACertificate SHA1 self-signed root + SHA1 intermediate: 1 error", "reencrypt", "", "", "", c.weakRoot.pem + c.weakMiddle.pem, 1},
		{"edge, certificate SHA256, key its key, caCertificate SHA1 self-signed root: accepted", "edge", good, goodKey, ca + c.weakRoot.pem, "", 0},
		{"edge, certificate SHA256, key its key, caCertificate SHA1 root + SHA1 intermediate: 1 error", "edge", good, goodKey, ca + c.weakRoot.pem + c.weakMiddle.pem, "", 1},
		{"edge, certificate leaf + chain with bag attributes, key key with bag attributes: accepted", "edge", "Bag Attributes\n  x: y\n" + good + "subject=x\n" + ca, "Bag Attributes\n" + goodKey, "", "", 0},
		{"edge, certificate chain before leaf, key leaf key: 1 error", "edge", ca + good, goodKey, "", "", 1},
		{"edge, certificate key + leaf in one field: accepted", "edge", goodKey + good, "", "", "", 0},
		{"edge, certificate leaf, key leaf key + second key: accepted", "edge", good, goodKey + c.other.keyPEM(t), "", "", 0},
		{"edge, certificate leaf, key second key + leaf key: 1 error", "edge", good, c.other.keyPEM(t) + goodKey, "", "", 1},
		{"edge, certificate leaf + chain, key key with header word XYZ: 3 errors", "edge", good + ca, strings.ReplaceAll(goodKey, "EC PRIVATE", "XYZ PRIVATE"), "", "", 3},
		{"key = one UNRECOGNIZED block: error unrecognized PEM block UNRECOGNIZED, 1 error", "edge", "", block("UNRECOGNIZED", []byte("x")), "", "", 1},
		{"key = block with malformed END line: dropped silently, key empty, 0 errors", "edge", "", strings.Replace(goodKey, "END", "ENDE", 1), "", "", 0},
		{"key = EC PARAMETERS block only: dropped, key empty, 0 errors", "edge", "", block("EC PARAMETERS", []byte("x")), "", "", 0},
		{"key = CERTIFICATE block with empty body: 1 error", "edge", "", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "", "", 1},
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

// TestTLSCleaned: what is kept of keys and certificates.
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
		t.Error("certificate = cert + key A, key = key B: key = key A followed by key B, accepted: the key of the certificate field does not stand before the key")
	}
	out = clean(routev1.TLSConfig{Termination: "reencrypt", DestinationCACertificate: "\nx\n" + c.ca.pem + "\n\n" + c.middle.pem + "y"})
	if out.DestinationCACertificate != c.ca.pem+c.middle.pem {
		t.Error("destination CA chain with whitespace: canonical PEM: the destination CA is not clean")
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.weakSelf.key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := block("PRIVATE KEY", der)
	out = clean(routev1.TLSConfig{Termination: "edge", Certificate: c.weakSelf.pem, Key: encoded})
	if unsafe.StringData(out.Key) != unsafe.StringData(encoded) {
		t.Error("a key of RSA in PKCS #8, which is clean, is kept twice")
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
			t.Errorf("edge, certificate MD5, CA-signed, key its key: 1 error: %v signed by a CA: %q, want %q", algorithm, got, want)
		}
	}
	self := &x509.Certificate{SignatureAlgorithm: x509.MD5WithRSA, PublicKeyAlgorithm: x509.RSA}
	if got := weakSigner([]*x509.Certificate{self}); got != "" {
		t.Errorf("edge, certificate MD5 self-signed, key its key: accepted: self-signed: %q", got)
	}
}
