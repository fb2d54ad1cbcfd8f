package routing

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
)

// route returns the spec of a route named by its path and host.
func route(name, host, path string, change ...func(*RouteSpec)) RouteSpec {
	s := RouteSpec{
		RouteKey: RouteKey{Namespace: "ns", Name: name, UID: "u-" + name}, Host: host, Path: path,
		Targets: []balancer.Target{{ID: name, Addr: testaddr.Parse("10.0.0.1:80"), Weight: 1}},
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
func toHTTPS(s *RouteSpec)     { s.Insecure = InsecureRedirect }

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
	d := t.Match(&View{Secure: secure, Host: []byte(host), Path: []byte(path)})
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
	pair := testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}, nil)
	return &CertificateSpec{Certificate: pair.PEM(), Key: pair.KeyPEM(t)}
}

// newCertificateFor returns a certificate for host names.
func newCertificateFor(t testing.TB, names ...string) *CertificateSpec {
	t.Helper()
	pair := testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}, nil)
	return &CertificateSpec{Certificate: pair.PEM(), Key: pair.KeyPEM(t)}
}

func with(c *CertificateSpec) func(*RouteSpec) {
	return func(s *RouteSpec) { s.Certificate = c }
}
