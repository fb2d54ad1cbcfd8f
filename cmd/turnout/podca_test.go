package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDefaultDestinationCARotates changes the file that says whom pods have to be certified by as the kubelet changes a ConfigMap.
// A version that holds no certificate leaves the one before in place.
func TestDefaultDestinationCARotates(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "pods"), newAuthority(t, "strangers")
	pod := startSecurePod(t, ca, "secure.default.svc", "h2", "http/1.1")
	own := startSecurePod(t, other, "any.name", "h2", "http/1.1")
	site := t.TempDir()
	write(t, site, "all.yaml", []byte(tlsRoute("app", "reencrypt")+slice("secure", pod.Listener.Addr())))
	ownRoute := strings.Replace(tlsRoute("own", "reencrypt", "destinationCACertificate", other.pem), "name: secure", "name: mine", 1)
	write(t, site, "own.yaml", []byte(ownRoute+slice("mine", own.Listener.Addr())))

	dir := t.TempDir()
	version := func(name, text string) {
		t.Helper()
		folder := filepath.Join(dir, ".."+name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, folder, "service-ca.crt", []byte(text))
		if err := os.Symlink(".."+name, filepath.Join(dir, "..next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version("first", other.pem)
	path := filepath.Join(dir, "service-ca.crt")
	if err := os.Symlink(filepath.Join("..data", "service-ca.crt"), path); err != nil {
		t.Fatal(err)
	}
	p := startRouter(t, []string{"DEFAULT_DESTINATION_CA_PATH=" + path}, "run", "--manifests", site)
	want := func(host string, status int) {
		t.Helper()
		resp, err := browser(t, p.https, "http/1.1").Get("https://" + host + "/")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: status %d, want %d", host, resp.StatusCode, status)
		}
	}
	want("app.test", http.StatusServiceUnavailable)
	version("second", other.pem+ca.pem)
	p.line("default destination CA changed")
	want("app.test", http.StatusOK)
	version("torn", other.pem+ca.pem[:len(ca.pem)/2]) // the first is whole
	p.line("default destination CA stays as it was")
	want("app.test", http.StatusOK)
	version("third", ca.pem)
	p.line("default destination CA changed")
	want("app.test", http.StatusOK)
	version("fourth", other.pem)
	p.line("default destination CA changed")
	want("app.test", http.StatusServiceUnavailable)
	want("own.test", http.StatusOK)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}
