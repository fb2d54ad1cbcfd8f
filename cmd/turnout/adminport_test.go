package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"turnout/tlsmux"
)

// TestMetricsCurves: lists of curves of the admin port.
func TestMetricsCurves(t *testing.T) {
	for _, c := range []struct{ id, in, want string }{
		{"list secp384r1:secp521r1: both", "secp384r1:secp521r1", "[CurveP384 CurveP521]"},
		{"list X25519 , secp256r1 : secp384r1: three", "  X25519 , secp256r1 : secp384r1  ", "[X25519 CurveP256 CurveP384]"},
		{"list X25519,InvalidCurve: InvalidCurve is not supported", "X25519,InvalidCurve", "are not supported: [InvalidCurve]"},
		{"list of separators: no valid curves", "  ,  :  ", "no valid curves found"},
		{"none given", "", "[]"},
	} {
		got, err := tlsmux.ParseKnownGroups(c.in)
		if text := fmt.Sprint(got); text != c.want && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s, %v", c.id, text, err)
		}
	}
	for in, want := range map[string]string{
		"": "", "ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256": "[49199]", "TLS_AES_256_GCM_SHA384": "[]",
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "[49199]", "NULL-MD5": "are not supported: [NULL-MD5]", ":": "allowed",
	} {
		got, err := tlsmux.ParseKnownCiphers(in)
		if text := fmt.Sprint(got); want != "" && text != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %s, %v", in, text, err)
		}
	}
}

// TestAdminPortIsGuarded: with the files an operator mounts, metrics need the login and are there over TLS too.
func TestAdminPortIsGuarded(t *testing.T) {
	dir := t.TempDir()
	cert, key := pemPair(t)
	p := startRouter(t, []string{
		"STATS_USERNAME=ignored", "STATS_PASSWORD=ignored",
		"STATS_USERNAME_FILE=" + write(t, dir, "user", []byte("admin")), "STATS_PASSWORD_FILE=" + write(t, dir, "password", []byte("secret")),
		"ROUTER_METRICS_TLS_CERT_FILE=" + write(t, dir, "tls.crt", cert), "ROUTER_METRICS_TLS_KEY_FILE=" + write(t, dir, "tls.key", key),
		"ROUTER_METRICS_TLS_MIN_VERSION=VersionTLS13",
	}, "--manifests", t.TempDir())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, c := range []struct {
		path, user, password string
		status               int
	}{
		{"/metrics", "admin", "secret", 200}, {"/routes", "admin", "secret", 200}, {"/metrics", "ignored", "ignored", 401},
		{"/metrics", "", "", 401}, {"/routes", "", "", 401}, {"/healthz/ready", "", "", 200},
	} {
		for _, scheme := range []string{"http", "https"} {
			r, err := http.NewRequest(http.MethodGet, scheme+"://"+p.admin+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.user != "" {
				r.SetBasicAuth(c.user, c.password)
			}
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != c.status || scheme == "https" && answer.TLS.Version != tls.VersionTLS13 {
				t.Errorf("%s %s as %q: status %d, want %d", scheme, c.path, c.user, answer.StatusCode, c.status)
			}
		}
	}
	client.CloseIdleConnections()
}
