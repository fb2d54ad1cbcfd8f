package main

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// served is the certificate a client gets for a name that no route has.
func served(t *testing.T, addr string) []byte {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: "nobody.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].Raw
}

func isServed(t *testing.T, addr string, text []byte) {
	t.Helper()
	block, _ := pem.Decode(text)
	if !bytes.Equal(served(t, addr), block.Bytes) {
		t.Error("another certificate is served")
	}
}

// TestDefaultCertificateRotates changes the folder of the default certificate as the kubelet does. A pair that does not
// match leaves the one before in place.
func TestDefaultCertificateRotates(t *testing.T) {
	dir := t.TempDir()
	version := func(name string, cert, key []byte) {
		t.Helper()
		folder := filepath.Join(dir, ".."+name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, folder, "tls.crt", cert)
		write(t, folder, "tls.key", key)
		if err := os.Symlink(".."+name, filepath.Join(dir, "..next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	firstCert, firstKey := pemPair(t)
	secondCert, secondKey := pemPair(t)
	version("first", firstCert, firstKey)
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := startRouter(t, []string{"DEFAULT_CERTIFICATE_DIR=" + dir}, "run", "--manifests", t.TempDir())
	isServed(t, p.https, firstCert)
	version("torn", secondCert, firstKey)
	p.line("default certificate stays as it was")
	isServed(t, p.https, firstCert)
	version("second", secondCert, secondKey)
	p.line("default certificate changed")
	isServed(t, p.https, secondCert)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}
