package identity

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const haproxyConfig = `
global
  stats socket STATS
defaults
  mode http
  timeout client 10s
  timeout connect 10s
  timeout server 10s
frontend f
  bind unix@SOCKET ssl crt SERVER ca-file CLIENTS verify optional
  http-request return status 200 content-type text/plain lf-string "x-ssl: %[ssl_fc]\nx-ssl-client-verify: %[ssl_c_verify]\nx-ssl-client-serial: %[ssl_c_serial,hex]\nx-ssl-client-version: %[ssl_c_version]\nx-ssl-client-sha1: %[ssl_c_sha1,hex]\nx-ssl-client-dn: %[ssl_c_s_dn]\nx-ssl-client-cn: %[ssl_c_s_dn(cn)]\nx-ssl-issuer: %[ssl_c_i_dn]\nx-ssl-client-notbefore: %[ssl_c_notbefore]\nx-ssl-client-notafter: %[ssl_c_notafter]\nx-ssl-client-der: %[ssl_c_der,base64]\n"
`

// TestAsHAProxy compares every field with what HAProxy makes of the same certificate.
func TestAsHAProxy(t *testing.T) {
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("needs haproxy, which .ci/run installs")
	}
	type client struct {
		what string
		cert *x509.Certificate
		key  *ecdsa.PrivateKey
	}
	var clients []client
	add := func(what string, subject []byte, change func(*x509.Certificate)) {
		cert, key := certificate(t, subject, change)
		clients = append(clients, client{what, cert, key})
	}
	for _, s := range subjects(t) {
		if !s.ours {
			add(s.what, s.der, nil)
		}
	}
	x := func(s string) []byte { return name(t, value(t, oidCN, asn1.TagUTF8String, s)) }
	add("until 2060", x("1"), func(c *x509.Certificate) { c.NotAfter = time.Date(2060, 1, 2, 3, 4, 5, 0, time.UTC) })
	add("until 9999", x("2"), func(c *x509.Certificate) { c.NotAfter = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) })
	add("serial with the highest bit", x("3"), func(c *x509.Certificate) { c.SerialNumber.SetString("ffeeddccbbaa99", 16) })

	dir := t.TempDir()
	server, key := certificate(t, x("server"), nil)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Raw})
	must(t, os.WriteFile(filepath.Join(dir, "server.pem"), append(crt, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), 0o600))
	var bundle []byte
	for _, c := range clients {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})...)
	}
	must(t, os.WriteFile(filepath.Join(dir, "clients.pem"), bundle, 0o600))
	socket := filepath.Join(dir, "tls.sock")
	config := strings.NewReplacer("STATS", filepath.Join(dir, "stats.sock"), "SOCKET", socket, "SERVER", filepath.Join(dir, "server.pem"),
		"CLIENTS", filepath.Join(dir, "clients.pem")).Replace(haproxyConfig)
	must(t, os.WriteFile(filepath.Join(dir, "haproxy.cfg"), []byte(config), 0o600))
	out, err := exec.Command(binary, "-c", "-f", filepath.Join(dir, "haproxy.cfg")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(binary, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })

	ask := func(cfg *tls.Config) string {
		var raw net.Conn
		for deadline := time.Now().Add(20 * time.Second); ; {
			if raw, err = net.Dial("unix", socket); err == nil || time.Now().After(deadline) {
				break
			}
		}
		must(t, err)
		defer raw.Close()
		must(t, raw.SetDeadline(time.Now().Add(20*time.Second)))
		cfg.InsecureSkipVerify = true
		c := tls.Client(raw, cfg)
		_, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
		must(t, err)
		all, err := io.ReadAll(bufio.NewReader(c))
		if len(all) == 0 {
			return err.Error()
		}
		_, body, _ := strings.Cut(string(all), "\r\n\r\n")
		return body
	}
	if got, want := lines(new(Rules).Of(nil)), ask(&tls.Config{}); got != want {
		t.Errorf("without a certificate: %q, haproxy %q", got, want)
	}
	for _, c := range clients {
		got := lines(new(Rules).Of(c.cert))
		want := ask(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{c.cert.Raw}, PrivateKey: c.key}}})
		if got != want {
			t.Errorf("%s:\n%s\nhaproxy\n%s", c.what, got, want)
		}
	}
}
