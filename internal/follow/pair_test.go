package follow

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"turnout/internal/testkit/testcert"
)

func pair(t *testing.T) (cert, key []byte) {
	p := testcert.Sign(t, &x509.Certificate{}, nil)
	return []byte(p.PEM()), []byte(p.KeyPEM(t))
}

func write(t *testing.T, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPairRotates: new files are used, broken ones are not.
func TestPairRotates(t *testing.T) {
	dir := t.TempDir()
	put := func(cert, key []byte) (string, string) {
		return write(t, filepath.Join(dir, "tls.crt"), cert), write(t, filepath.Join(dir, "tls.key"), key)
	}
	failures := 0
	certFile, keyFile := put(pair(t))
	p, err := NewPair(certFile, keyFile, func(err error) {
		if failures++; err == nil {
			failures = 0
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	first := p.Current()
	put(pair(t))
	if p.Current() != first {
		t.Error("the files are read before their time")
	}
	p.when = p.when.Add(-pairPause)
	second := p.Current()
	if second == first || failures != 0 {
		t.Errorf("the new certificate is not used, %d failures", failures)
	}
	put([]byte("broken"), nil)
	p.when = p.when.Add(-pairPause)
	if p.Current() != second || failures != 1 {
		t.Errorf("a broken file replaced a good one, %d failures", failures)
	}
	put(pair(t))
	p.when = p.when.Add(-pairPause)
	if p.Current() == second || failures != 0 {
		t.Errorf("nobody is notified that the files can be used again: %d failures", failures)
	}
}
