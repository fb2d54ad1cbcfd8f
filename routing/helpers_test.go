package routing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
)

// route returns the spec of a route named by its path and host.
func route(name, host, path string, change ...func(*RouteSpec)) RouteSpec {
	s := RouteSpec{
		RouteKey: RouteKey{Namespace: "ns", Name: name, UID: "u-" + name}, Host: host, Path: path,
		Targets: []balancer.Target{{ID: name, Addr: netip.MustParseAddrPort("10.0.0.1:80"), Weight: 1}},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func wildcard(s *RouteSpec)    { s.Wildcard = true }
func edge(s *RouteSpec)        { s.Termination = TermEdge }
func reencrypt(s *RouteSpec)   { s.Termination = TermReencrypt }
func passthrough(s *RouteSpec) { s.Termination = TermPassthrough }
func allow(s *RouteSpec)       { s.Insecure = InsecureAllow }
func redirect(s *RouteSpec)    { s.Insecure = InsecureRedirect }

func compile(t testing.TB, specs ...RouteSpec) *Table {
	t.Helper()
	table, rejections := Compile(Options{}, nil, specs)
	if len(rejections) > 0 {
		t.Fatalf("rejected: %v", rejections)
	}
	return table
}

// answer returns what Match says as text: "503", "302 NAME" or NAME.
func answer(t *Table, secure bool, host, path string) string {
	d := t.Match(secure, []byte(host), []byte(path))
	switch d.Kind {
	case Serve:
		return d.Route.Name()
	case Redirect:
		return "302 " + d.Route.Name()
	}
	return "503"
}

// ask is answer for host and path in one text, as tables of the reference have it.
func ask(t *Table, secure bool, key string) string {
	host, path := key, ""
	if i := strings.IndexByte(key, '/'); i >= 0 {
		host, path = key[:i], key[i:]
	}
	return answer(t, secure, host, path)
}

// newCertificate returns a certificate of its own with a name in it.
func newCertificate(t testing.TB, name string) *CertificateSpec {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &CertificateSpec{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})),
	}
}

func with(c *CertificateSpec) func(*RouteSpec) {
	return func(s *RouteSpec) { s.Certificate = c }
}
