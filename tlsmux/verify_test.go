package tlsmux

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"turnout/balancer"
	"turnout/internal/testkit/testcert"
	"turnout/internal/wire/protocol"
)

// named issues a certificate with these names, of which "" stands for none.
func (a *authority) named(t *testing.T, dns, uri string, usage x509.ExtKeyUsage) *testcert.Pair {
	t.Helper()
	form := &x509.Certificate{Subject: pkix.Name{CommonName: "somebody"}, ExtKeyUsage: []x509.ExtKeyUsage{usage}}
	if dns != "" {
		form.DNSNames = []string{dns}
	}
	if uri != "" {
		u, err := url.Parse(uri)
		must(t, err)
		form.URIs = []*url.URL{u}
	}
	return testcert.Sign(t, form, a.Pair)
}

// TestSubjectAltNames: one of the names is enough, and the name that is sent is none of them.
func TestSubjectAltNames(t *testing.T) {
	ca := newAuthority(t)
	l := startLoop(t)
	cl, err := NewClient(ClientConfig{})
	must(t, err)
	const id = "spiffe://a.test/pod"
	type names = []balancer.SubjectAltName
	for _, c := range []struct {
		dns, uri string // of the certificate
		want     names
		ok       bool
	}{
		{"a.test", "", nil, true},
		{"a.test", "", names{{DNS: "a.test"}}, true},
		{"a.test", "", names{{DNS: "A.TEST"}}, true},
		{"a.test", "", names{{DNS: "b.test"}}, false},
		{"b.test", "", names{{DNS: "b.test"}}, true}, // a.test, which is sent, is not compared any more
		{"*.test", "", names{{DNS: "b.test"}}, true},
		{"*.test", "", names{{DNS: "*.test"}}, true},
		{"a.test", "", names{{DNS: "*.test"}}, false},
		{"a.test", id, names{{URI: id}}, true},
		{"", id, names{{URI: id}}, true},
		{"a.test", id, names{{URI: id + "2"}}, false},
		{"a.test", id, names{{URI: id + "2"}, {DNS: "b.test"}}, false},
		{"a.test", id, names{{URI: id + "2"}, {DNS: "a.test"}}, true},
		{"a.test", id, names{{DNS: "b.test"}, {URI: id}}, true},
		{"a.test", id, names{{}}, false},
	} {
		pod := newPod(t, &tls.Config{Certificates: []tls.Certificate{ca.named(t, c.dns, c.uri, x509.ExtKeyUsageServerAuth).TLS()}})
		want, err := balancer.NewTLS(balancer.TLSConfig{CA: ca.text, Verify: true, ServerName: "a.test", SNI: "a.test", SubjectAltNames: c.want})
		must(t, err)
		o := dialPod(t, l, cl, pod.addr, want)
		if (o.err == nil) != c.ok {
			t.Errorf("certificate of %q %q, wanted %+v: %v", c.dns, c.uri, c.want, o.err)
		}
		var e *EndpointError
		if errors.As(o.err, &e) && e.Detail() != "tls-name" {
			t.Errorf("%v is logged as %s", o.err, e.Detail())
		}
	}
}

// TestOwnCertificate: endpoints get the one of the identity, and of no other; that may be with HTTP/2 or not.
func TestOwnCertificate(t *testing.T) {
	ca, others := newAuthority(t), newAuthority(t)
	l := startLoop(t)
	cl, err := NewClient(ClientConfig{})
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	pod := newPod(t, &tls.Config{
		Certificates: []tls.Certificate{ca.named(t, "a.test", "", x509.ExtKeyUsageServerAuth).TLS()}, NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: tls.VersionTLS12, // refuses within the handshake
	})
	for _, c := range []struct {
		issuer *authority // nil = none is shown
		alpn   []protocol.Protocol
		ok     bool
	}{
		{ca, nil, true}, {ca, []protocol.Protocol{protocol.HTTP2, protocol.HTTP1}, true}, {nil, nil, false}, {others, nil, false},
	} {
		cfg := balancer.TLSConfig{CA: ca.text, Verify: true, ServerName: "a.test", SNI: "a.test", ALPN: c.alpn}
		if c.issuer != nil {
			pair := c.issuer.named(t, "", "", x509.ExtKeyUsageClientAuth)
			cfg.CertPEM, cfg.KeyPEM = pair.PEM(), pair.KeyPEM(t)
		}
		id, err := balancer.NewTLS(cfg)
		must(t, err)
		if o := dialPod(t, l, cl, pod.addr, id); (o.err == nil) != c.ok {
			t.Errorf("%+v: %v", c, o.err)
		}
	}
}

const systemRoots = "TURNOUT_TEST_SYSTEM_ROOTS"

// TestSystemRoots runs itself again with roots of the system that the test has made, because a process reads them once.
func TestSystemRoots(t *testing.T) {
	if os.Getenv(systemRoots) != "" {
		withSystemRoots(t)
		return
	}
	dir := t.TempDir()
	ca := newAuthority(t)
	pair := ca.named(t, "a.test", "", x509.ExtKeyUsageServerAuth)
	must(t, os.WriteFile(filepath.Join(dir, "ca.pem"), []byte(ca.text), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "pod.pem"), []byte(pair.PEM()+pair.KeyPEM(t)), 0o600))
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestSystemRoots$")
	cmd.Env = append(os.Environ(), systemRoots+"="+dir, "SSL_CERT_FILE="+filepath.Join(dir, "ca.pem"), "SSL_CERT_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func withSystemRoots(t *testing.T) {
	l := startLoop(t)
	cl, err := NewClient(ClientConfig{})
	must(t, err)
	file := filepath.Join(os.Getenv(systemRoots), "pod.pem")
	trusted, err := tls.LoadX509KeyPair(file, file)
	must(t, err)
	other := newAuthority(t)
	for _, c := range []struct {
		certificate tls.Certificate
		cfg         balancer.TLSConfig
		ok          bool
	}{
		{trusted, balancer.TLSConfig{System: true}, true},
		{trusted, balancer.TLSConfig{System: true, CA: other.text}, true},
		{trusted, balancer.TLSConfig{CA: other.text}, false},
		{other.named(t, "a.test", "", x509.ExtKeyUsageServerAuth).TLS(), balancer.TLSConfig{System: true}, false},
		{other.named(t, "a.test", "", x509.ExtKeyUsageServerAuth).TLS(), balancer.TLSConfig{System: true, CA: other.text}, true},
	} {
		c.cfg.Verify, c.cfg.ServerName = true, "a.test"
		id, err := balancer.NewTLS(c.cfg)
		must(t, err)
		pod := newPod(t, &tls.Config{Certificates: []tls.Certificate{c.certificate}})
		if o := dialPod(t, l, cl, pod.addr, id); (o.err == nil) != c.ok {
			t.Errorf("system %v, own roots %v: %v", c.cfg.System, c.cfg.CA != "", o.err)
		}
	}
}
