//go:build testssl

package testssl

import (
	"bufio"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const host = "shop.test"

// authority signs what the router shows, so that what is found is about the router.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // in PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newECDSA(t)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(720 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	file := filepath.Join(t.TempDir(), "authority.pem")
	must(t, os.WriteFile(file, encode("CERTIFICATE", der), 0o600))
	return &authority{cert, key, file}
}

// issue returns the certificate of host and its key in PEM, as a good authority would make them.
func (a *authority) issue(t *testing.T, key crypto.Signer) (cert, private string) {
	t.Helper()
	now := time.Now()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63))
	must(t, err)
	usage := x509.KeyUsageDigitalSignature
	if _, ok := key.(*rsa.PrivateKey); ok {
		usage |= x509.KeyUsageKeyEncipherment // the set "old" has suites that encrypt with it
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(90 * 24 * time.Hour),
		KeyUsage: usage, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		CRLDistributionPoints: []string{"http://authority.test/list.crl"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(encode("CERTIFICATE", der)), string(encode("PRIVATE KEY", pkcs8))
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newECDSA(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func newRSA(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return key
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startPod is an endpoint that answers everything with 200, and with the fields that are an application's to send.
func startPod(t *testing.T) netip.AddrPort {
	t.Helper()
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = io.WriteString(w, "hello\n")
	}))
	t.Cleanup(pod.Close)
	return netip.MustParseAddrPort(pod.Listener.Addr().String())
}

// manifests writes the edge route of host, with its certificate, service and endpoint.
func manifests(t *testing.T, cert, key string, pod netip.AddrPort) string {
	t.Helper()
	dir := t.TempDir()
	for name, object := range map[string]any{
		"route.json": map[string]any{
			"apiVersion": "route.openshift.io/v1", "kind": "Route",
			"metadata": map[string]any{"name": "shop", "namespace": "shop", "annotations": map[string]string{"haproxy.router.openshift.io/hsts_header": "max-age=31536000"}},
			"spec": map[string]any{
				"host": host, "to": map[string]any{"kind": "Service", "name": "shop"},
				"tls": map[string]any{"termination": "edge", "certificate": cert, "key": key},
			},
		},
		"service.json": map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "shop", "namespace": "shop"},
			"spec": map[string]any{"ports": []any{map[string]any{"name": "http", "port": 80, "targetPort": pod.Port()}}},
		},
		"endpoints.json": map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
			"metadata":  map[string]any{"name": "shop-1", "namespace": "shop", "labels": map[string]string{"kubernetes.io/service-name": "shop"}},
			"ports":     []any{map[string]any{"name": "http", "port": pod.Port(), "protocol": "TCP"}},
			"endpoints": []any{map[string]any{"addresses": []string{pod.Addr().String()}, "conditions": map[string]bool{"ready": true}}},
		},
	} {
		text, err := json.Marshal(object)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}

// startRouter runs the program until the test ends, and returns the port of TLS once the route is served.
func startRouter(t *testing.T, dir string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.CommandContext(ctx, program, "run", "--manifests", dir, "--http-addr", "127.0.0.1:0", "--https-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0")
	c.Env = append(c.Env, env...)
	logs, err := c.StdoutPipe()
	must(t, err)
	c.Stderr = c.Stdout
	must(t, c.Start())
	t.Cleanup(func() { cancel(); _ = c.Wait() }) // it was killed
	port := ""
	var seen strings.Builder
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		seen.Write(append(lines.Bytes(), '\n'))
		var line struct {
			Msg    string
			HTTPS  string
			Routes int
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch line.Msg {
		case "listening":
			addr, err := netip.ParseAddrPort(line.HTTPS)
			must(t, err)
			port = strconv.Itoa(int(addr.Port()))
		case "ready":
			if line.Routes != 1 {
				t.Fatalf("%d routes are served\n%s", line.Routes, seen.String())
			}
			go drain(logs)
			return port
		}
	}
	t.Fatalf("the router does not get ready:\n%s", seen.String())
	return ""
}

// drain reads what the router goes on to say, until it ends.
func drain(logs io.Reader) { _, _ = io.Copy(io.Discard, logs) }

// program is the router under test.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if _, err := exec.LookPath("testssl"); err != nil {
			fmt.Fprintln(os.Stderr, "test/testssl: needs testssl; on Debian: apt-get install testssl.sh")
			return 1
		}
		dir, err := os.MkdirTemp("", "turnout-testssl-")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }()
			program = filepath.Join(dir, "turnout")
			var text []byte
			if text, err = exec.CommandContext(context.Background(), "go", "build", "-o", program, "turnout/cmd/turnout").CombinedOutput(); err != nil {
				err = fmt.Errorf("go build: %w\n%s", err, text)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "test/testssl:", err)
			return 1
		}
		return m.Run()
	}())
}
