package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"turnout/controller"
	"turnout/internal/testkit/testcert"
)

// authority signs certificates for a test.
type authority struct {
	*testcert.Pair

	pem string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	pair := testcert.Sign(t, serverForm(name, true), nil)
	return &authority{pair, pair.PEM()}
}

// sign makes a certificate for name, or several with blanks between them, signed by ca or, without one, an authority.
func sign(t *testing.T, ca *authority, name string) (*x509.Certificate, *ecdsa.PrivateKey, string) {
	t.Helper()
	var issuer *testcert.Pair
	if ca != nil {
		issuer = ca.Pair
	}
	pair := testcert.Sign(t, serverForm(name, ca == nil), issuer)
	return pair.Cert, pair.Key, pair.PEM()
}

// serverForm is a server's certificate for names with blanks between them, which may be an authority as well.
func serverForm(names string, authority bool) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: names}, DNSNames: strings.Fields(names), BasicConstraintsValid: true, IsCA: authority,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

// indent puts PEM text into a YAML block.
func indent(s string) string {
	return "|\n      " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n      ") + "\n"
}

func tlsRoute(name, termination string, fields ...string) string {
	s := fmt.Sprintf("apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: %s}\nspec:\n  host: %s.test\n  to: {kind: Service, name: secure}\n  tls:\n    termination: %s\n", name, name, termination)
	for i := 0; i < len(fields); i += 2 {
		s += "    " + fields[i] + ": " + indent(fields[i+1])
	}
	return s + "---\n"
}

// slice is a service with one pod.
func slice(service string, addr net.Addr) string {
	a := addr.(*net.TCPAddr)
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %[1]s}\nspec: {ports: [{name: p, port: 80}]}\n---\n"+
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %[1]s-1, labels: {kubernetes.io/service-name: %[1]s}}\naddressType: IPv4\nports: [{name: p, port: %[2]d, protocol: TCP}]\nendpoints: [{addresses: [%[3]q], conditions: {ready: true}}]\n---\n",
		service, a.Port, a.IP)
}

// pemPair makes a certificate and its key as PEM text.
func pemPair(t *testing.T) (cert, key []byte) {
	t.Helper()
	_, k, text := sign(t, nil, "apps.example.com")
	return []byte(text), []byte(keyPEM(t, k))
}

// write puts text into the file name of dir, at once for readers of the file, and returns its path.
func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	replace(t, path, text)
	return path
}

// TestTLSRoutes serves every kind of TLS route in front of one TLS pod, and checks
// whose certificate the client sees and what becomes of the pod's.
func TestTLSRoutes(t *testing.T) {
	ca, other := newAuthority(t, "pods"), newAuthority(t, "strangers")
	podCert, podKey, _ := sign(t, ca, "secure.default.svc")
	pod := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") }))
	pod.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{podCert.Raw}, PrivateKey: podKey}}}
	pod.Config.ErrorLog = nil
	pod.StartTLS()
	defer pod.Close()
	_, ownKey, ownPEM := sign(t, ca, "own.test")

	manifests := tlsRoute("own", "reencrypt", "certificate", ownPEM, "key", keyPEM(t, ownKey), "destinationCACertificate", ca.pem) +
		tlsRoute("stranger", "reencrypt", "destinationCACertificate", other.pem) +
		tlsRoute("service", "reencrypt") + tlsRoute("through", "passthrough") +
		slice("secure", pod.Listener.Addr())
	dir := t.TempDir()
	write(t, dir, "all.yaml", []byte(manifests))
	for _, tc := range []struct {
		name, host string
		defaultCA  string // authority of pods without destinationCACertificate
		status     int
		shows      string // common name of the certificate the client sees
	}{
		{"own certificate, pod verified", "own.test", "", 200, "own.test"},
		{"pod of another authority", "stranger.test", "", 503, "openshift-router"},
		{"pod not verified", "service.test", "", 200, "openshift-router"},
		{"pod verified by service name", "service.test", ca.pem, 200, "openshift-router"},
		{"pod of another authority than the default", "service.test", other.pem, 503, "openshift-router"},
		{"passed through", "through.test", "", 200, "secure.default.svc"},
		{"unknown host", "unknown.test", "", 503, "openshift-router"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plane, _ := startInProcess(t, dir, controller.Options{DefaultDestinationCA: []byte(tc.defaultCA)})
			shown := ""
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true,
				DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					d := tls.Dialer{Config: &tls.Config{ServerName: tc.host, InsecureSkipVerify: true}}
					c, err := d.DialContext(ctx, network, plane.HTTPS().String())
					if err == nil {
						shown = c.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
					}
					return c, err
				},
			}}
			resp, err := client.Get("https://" + tc.host + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.status || shown != tc.shows || (string(body) == "secret") != (tc.status == 200) {
				t.Errorf("status %d (want %d), certificate %q (want %q), body %.20q, %v", resp.StatusCode, tc.status, shown, tc.shows, body, err)
			}
		})
	}
}
