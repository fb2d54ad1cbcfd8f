//go:build testssl

package testssl

import (
	"context"
	"crypto"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// finding is one of testssl's.
type finding struct{ ID, Severity, Finding string }

// counts says whether a finding is of severity MEDIUM or worse. WARN is what testssl could not find out.
func (f *finding) counts() bool {
	return slices.Contains([]string{"WARN", "MEDIUM", "HIGH", "CRITICAL", "FATAL"}, f.Severity)
}

// demanded are findings that a profile stands for: identifier and reason.
type demanded map[string]string

// TestProfiles: testssl finds nothing of severity MEDIUM or worse but what the profile demands, and what is said to be
// demanded it does find.
func TestProfiles(t *testing.T) {
	t.Parallel()
	ca, pod := newAuthority(t), startPod(t)
	for _, p := range []struct {
		name string
		key  crypto.Signer
		env  []string
		want demanded
	}{
		{"default, ECDSA", newECDSA(t), nil, nil},
		{"default, RSA", newRSA(t), nil, nil},
		{"modern ciphers", newRSA(t), []string{"ROUTER_CIPHERS=modern"}, nil},
		// What the ingress operator sets for its profiles Modern and Old.
		{"Modern", newECDSA(t), []string{"SSL_MIN_VERSION=TLSv1.3", "ROUTER_CIPHERSUITES=TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"}, nil},
		{"Old", newRSA(t), []string{"SSL_MIN_VERSION=TLSv1.1", "ROUTER_CIPHERS=old"}, demanded{"cipherlist_3DES_IDEA": "the set old has 3DES, for clients that have nothing else"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			cert, key := ca.issue(t, p.key)
			port := startRouter(t, manifests(t, cert, key, pod), p.env...)
			found := map[string]bool{}
			for _, f := range scan(t, ca, port) {
				switch _, ok := p.want[f.ID]; {
				case !f.counts():
					t.Logf("%s %s: %s", f.Severity, f.ID, f.Finding)
				case !ok:
					t.Errorf("%s %s: %s", f.Severity, f.ID, f.Finding)
				default:
					found[f.ID] = true
				}
			}
			for id, reason := range p.want {
				if !found[id] {
					t.Errorf("%s is not found, so it is not true any more that %s", id, reason)
				}
			}
		})
	}
}

// scan returns what testssl finds of severity LOW or worse, and fails if it did not look at everything.
func scan(t *testing.T, ca *authority, port string) (relevant []finding) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "findings.json")
	c := exec.CommandContext(ctx, "testssl", "--protocols", "--standard", "--pfs", "--server-preference", "--server-defaults", "--headers", "--vulnerable", "--grease",
		"--quiet", "--warnings", "off", "--color", "0", "--connect-timeout", "10", "--openssl-timeout", "10",
		"--nodns", "none", "--ip", "127.0.0.1", "--add-ca", ca.file, "--jsonfile", file, host+":"+port)
	c.Env = append(c.Environ(), "NO_ENGINE=true") // it warns, with some versions of openssl, that GOST is not there
	out, err := c.CombinedOutput()                // its exit status is the number of findings
	text, readErr := os.ReadFile(file)
	if readErr != nil || ctx.Err() != nil {
		t.Fatalf("testssl: %v, %v\n%s", err, readErr, out)
	}
	var all []finding
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := map[string]bool{}
	for _, f := range all {
		id, _, _ := strings.Cut(f.ID, " ")
		seen[id] = true
		if f.Severity != "OK" && f.Severity != "INFO" {
			relevant = append(relevant, f)
		}
	}
	var unseen []string
	for _, id := range []string{"SSLv3", "TLS1_2", "cipherlist_NULL", "PFS", "cert_chain_of_trust", "HTTP_status_code", "heartbleed", "CCS", "ticketbleed",
		"ROBOT", "secure_renego", "secure_client_renego", "CRIME_TLS", "BREACH", "POODLE_SSL", "fallback_SCSV", "cipherlist_3DES_IDEA", "FREAK", "DROWN", "LOGJAM", "BEAST", "LUCKY13", "RC4", "GREASE", "scanTime"} {
		if !seen[id] {
			unseen = append(unseen, id)
		}
	}
	if len(unseen) > 0 {
		t.Errorf("testssl did not look at %q:\n%s", unseen, out)
	}
	return relevant
}
