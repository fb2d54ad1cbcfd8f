package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/server"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/testkit/testcert"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// TestEndpointsThatAskForCertificates: they get that of the target, over both protocols and from health checks, and no other target's.
func TestEndpointsThatAskForCertificates(t *testing.T) {
	w := startWeb(t, func(cfg *server.Config) { cfg.Ports = []server.Port{{Name: "web", Addr: loopback}} })
	pool := x509.NewCertPool()
	pool.AddCert(w.authority.Cert)
	pod := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(out, "%s %s", r.Proto, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	served := testcert.Sign(t, &x509.Certificate{DNSNames: []string{"pod.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, w.authority)
	pod.TLS = &tls.Config{Certificates: []tls.Certificate{served.TLS()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: tls.VersionTLS12}
	pod.EnableHTTP2 = true
	pod.StartTLS()
	defer pod.Close()
	to := func(name string, with bool, alpn ...protocol.Protocol) routing.RuleSpec {
		cfg := balancer.TLSConfig{CA: w.authority.PEM(), Verify: true, SNI: "other.test", SubjectAltNames: []balancer.SubjectAltName{{DNS: "pod.test"}}, ALPN: alpn}
		if with {
			pair := testcert.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "router"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, w.authority)
			cfg.CertPEM, cfg.KeyPEM = pair.PEM(), pair.KeyPEM(t)
		}
		id, err := balancer.NewTLS(cfg)
		if err != nil {
			t.Fatal(err)
		}
		rule := w.rule("web", name, name+".test")
		rule.Pool.Check = 10 * time.Millisecond
		for i := range 2 { // one alone is not checked
			rule.Targets[0].Addr, rule.Targets[0].TLS = testaddr.Parse(pod.Listener.Addr().String()), id
			rule.Targets = append(rule.Targets[:1], rule.Targets[0])
			rule.Targets[i].ID = fmt.Sprint(i)
		}
		return rule
	}
	w.publish([]routing.ListenerSpec{{Name: "web", Port: "web"}}, to("first", true), to("second", true, protocol.HTTP2, protocol.HTTP1), to("without", false))
	for host, want := range map[string]string{"first": "HTTP/1.1 HTTP/1.1 router", "second": "HTTP/1.1 HTTP/2.0 router", "without": "503"} {
		if got := w.ask(w.Port("web"), "http://"+host+".test/"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	waitUntil(t, "checks without a certificate have failed", func() bool { return w.Server.Health().Downs > 0 })
	if h := w.Server.Health(); h.Downs != 1 || h.Failed == h.Checks {
		t.Errorf("of three endpoints %+v", h)
	}
}
