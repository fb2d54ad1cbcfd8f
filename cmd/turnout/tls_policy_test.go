package main

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"turnout/controller"
)

func TestTLSOptions(t *testing.T) {
	o := parse(t, envOf())
	if o.tls.MinVersion != tls.VersionTLS12 || o.tls.MaxVersion != 0 || len(o.tls.CipherSuites) < 8 || o.tls.Curves != nil {
		t.Errorf("defaults: %+v", o.tls)
	}
	o, warnings, err := parseOptions(nil, envOf(
		"SSL_MIN_VERSION", "TLSv1.1", "SSL_MAX_VERSION", "TLSv1.3", "ROUTER_CIPHERS", "ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256",
		"ROUTER_CIPHERSUITES", "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256", "ROUTER_CURVES", "X25519MLKEM768:X25519:x448"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--ciphers (ROUTER_CIPHERS) names suites that Go does not have: DHE-RSA-AES128-GCM-SHA256",
		"--curves (ROUTER_CURVES) names groups that Go does not have: x448",
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
	if o.tls.MinVersion != tls.VersionTLS11 || o.tls.MaxVersion != tls.VersionTLS13 ||
		!slices.Equal(o.tls.CipherSuites, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}) ||
		!slices.Equal(o.tls.Curves, []tls.CurveID{tls.X25519MLKEM768, tls.X25519}) {
		t.Errorf("%+v", o.tls)
	}
	for _, c := range []struct {
		env  environment
		want string
	}{
		{envOf("SSL_MIN_VERSION", "TLSv2"), `SSL_MIN_VERSION="TLSv2" is not valid; allowed: TLSv1.0, TLSv1.1, TLSv1.2, TLSv1.3`},
		{envOf("SSL_MAX_VERSION", "TLSv1.1"), "--ssl-max-version (SSL_MAX_VERSION) is below --ssl-min-version (SSL_MIN_VERSION)"},
		{envOf("ROUTER_CIPHERS", "DHE-RSA-AES128-GCM-SHA256"), `ROUTER_CIPHERS="DHE-RSA-AES128-GCM-SHA256" is not valid`},
		{envOf("ROUTER_CURVES", "x448"), `ROUTER_CURVES="x448" is not valid`},
		{envOf("ROUTER_CIPHERSUITES", "TLS_AES_128_CCM_SHA256"), `ROUTER_CIPHERSUITES="TLS_AES_128_CCM_SHA256" is not valid`},
	} {
		if _, _, err := parseOptions(nil, c.env); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// TestTLSOptionsReachClients: versions, suites and groups are those of the options.
func TestTLSOptionsReachClients(t *testing.T) {
	o := parse(t, envOf("SSL_MIN_VERSION", "TLSv1.2", "SSL_MAX_VERSION", "TLSv1.2", "ROUTER_CIPHERS", "ECDHE-ECDSA-AES256-GCM-SHA384", "ROUTER_CURVES", "secp384r1"))
	plane, _ := startRooms(t, t.TempDir(), controller.Options{}, func(c *dataplaneConfig) { c.TLS = o.tls })
	for _, c := range []struct {
		name   string
		client *tls.Config
		fails  bool
	}{
		{name: "newest", client: &tls.Config{}},
		{name: "only TLS 1.3", client: &tls.Config{MinVersion: tls.VersionTLS13}, fails: true},
		{name: "another suite", client: &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}, fails: true},
		{name: "another group", client: &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := c.client.Clone()
			cfg.InsecureSkipVerify = true
			conn, err := tls.Dial("tcp", plane.HTTPS().String(), cfg)
			if err == nil {
				defer func() { _ = conn.Close() }()
				err = conn.Handshake()
			}
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			state := conn.ConnectionState()
			if state.Version != tls.VersionTLS12 || state.CipherSuite != tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 || state.CurveID != tls.CurveP384 {
				t.Errorf("version %#04x, suite %#04x, group %v", state.Version, state.CipherSuite, state.CurveID)
			}
		})
	}
}
