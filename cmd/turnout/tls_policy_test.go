package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnout/controller"
	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/server"
)

func TestTLSOptions(t *testing.T) {
	o := parse(t, envOf())
	if o.server.TLS.MinVersion != tls.VersionTLS12 || o.server.TLS.MaxVersion != 0 || len(o.server.TLS.CipherSuites) < 8 || o.server.TLS.Curves != nil {
		t.Errorf("defaults: %+v", o.server.TLS)
	}
	o, warnings, err := parseOptions(nil, envOf(
		"SSL_MIN_VERSION", "TLSv1.1", "SSL_MAX_VERSION", "TLSv1.3", "ROUTER_CIPHERS", "ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256",
		"ROUTER_CIPHERSUITES", "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256", "ROUTER_CURVES", "X25519MLKEM768:X25519:x448"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--ciphers (ROUTER_CIPHERS) names what Go does not have: DHE-RSA-AES128-GCM-SHA256",
		"--curves (ROUTER_CURVES) names groups that Go does not have: x448",
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
	if o.server.TLS.MinVersion != tls.VersionTLS11 || o.server.TLS.MaxVersion != tls.VersionTLS13 ||
		!slices.Equal(o.server.TLS.CipherSuites, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}) ||
		!slices.Equal(o.server.TLS.Curves, []tls.CurveID{tls.X25519MLKEM768, tls.X25519}) {
		t.Errorf("%+v", o.server.TLS)
	}
	for _, c := range []struct {
		env  option.Environment
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
	plane, _ := startInProcess(t, t.TempDir(), controller.Options{}, func(c *server.Config) { c.TLS = o.server.TLS })
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

// TestPoliciesOfVariables: every variable about TLS does to clients what it says, alone and as the ingress operator sets them
// together.
func TestPoliciesOfVariables(t *testing.T) {
	t.Parallel()
	rsaCert, rsaKey := rsaPair(t, "rsa.test")
	dir := t.TempDir()
	write(t, dir, "rsa.yaml", []byte(tlsRoute("rsa", "edge", "certificate", rsaCert, "key", rsaKey)))
	suites := func(ids ...uint16) *tls.Config { return &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: ids} }
	versions := func(from, to uint16) *tls.Config { return &tls.Config{MinVersion: from, MaxVersion: to} }
	groups := func(ids ...tls.CurveID) *tls.Config { return &tls.Config{CurvePreferences: ids} }
	anything := &tls.Config{}
	const refused = "handshake failure"
	type visit struct {
		client *tls.Config
		want   string // what is agreed on, or the alert
	}
	old, modern := []string{"SSL_MIN_VERSION", "TLSv1.1", "ROUTER_CIPHERS", "old"}, []string{"SSL_MIN_VERSION", "TLSv1.3", "ROUTER_CIPHERS", ""}
	for _, c := range []struct {
		env    []string
		visits []visit
	}{
		{nil, []visit{
			{anything, "TLS 1.3 X25519MLKEM768"},
			{versions(tls.VersionTLS12, tls.VersionTLS12), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
			{versions(tls.VersionTLS10, tls.VersionTLS11), "protocol version"},
			{suites(tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA), "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"},
			{suites(tls.TLS_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA), refused},
			{groups(tls.CurveP521), "TLS 1.3 CurveP521"},
		}},
		{[]string{"ROUTER_CIPHERS", "modern"}, []visit{
			{suites(tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256), "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"},
			{suites(tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA), refused},
		}},
		{old, []visit{
			{versions(tls.VersionTLS10, tls.VersionTLS11), "TLS 1.1"},
			{versions(tls.VersionTLS10, tls.VersionTLS10), "protocol version"},
			{suites(tls.TLS_RSA_WITH_AES_128_GCM_SHA256), "TLS_RSA_WITH_AES_128_GCM_SHA256"},
			{suites(tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA), "TLS_RSA_WITH_3DES_EDE_CBC_SHA"},
			{suites(tls.TLS_RSA_WITH_RC4_128_SHA), refused},
		}},
		{modern, []visit{{versions(tls.VersionTLS12, tls.VersionTLS12), "protocol version"}, {anything, "TLS 1.3"}}},
		{[]string{"ROUTER_CIPHERS", "AES128-SHA:DHE-RSA-AES128-GCM-SHA256"}, []visit{
			{versions(tls.VersionTLS12, tls.VersionTLS12), refused}, // crypto/tls offers no key exchange by RSA
			{suites(tls.TLS_RSA_WITH_AES_128_CBC_SHA), "TLS_RSA_WITH_AES_128_CBC_SHA"},
			{anything, "TLS 1.3"},
		}},
		{[]string{"ROUTER_CURVES", "X25519MLKEM768:X25519:secp256r1:secp384r1"}, []visit{
			{anything, "TLS 1.3 X25519MLKEM768"}, {groups(tls.X25519), "TLS 1.3 X25519"}, {groups(tls.CurveP521), refused},
		}},
		{[]string{"ROUTER_CURVES", "secp256r1:secp384r1:secp521r1"}, []visit{{anything, "TLS 1.3 CurveP256"}, {groups(tls.X25519MLKEM768, tls.X25519), refused}}},
		{[]string{"SSL_MAX_VERSION", "TLSv1.2"}, []visit{{anything, "TLS 1.2 X25519"}, {versions(tls.VersionTLS13, 0), "protocol version"}}},
		{[]string{"SSL_MIN_VERSION", "TLSv1.0"}, []visit{{versions(tls.VersionTLS10, tls.VersionTLS10), "TLS 1.0"}}},
		{[]string{"ROUTER_CIPHERSUITES", "TLS_AES_256_GCM_SHA384"}, []visit{{anything, "TLS_AES_128_GCM_SHA256"}}}, // a warning says so
	} {
		o, _, err := parseOptions(nil, envOf(c.env...))
		if err != nil {
			t.Fatal(err)
		}
		plane, _ := startInProcess(t, dir, controller.Options{}, func(d *server.Config) { d.TLS = o.server.TLS })
		for i, v := range c.visits {
			cfg := v.client.Clone()
			cfg.ServerName, cfg.InsecureSkipVerify = "rsa.test", true
			var got string
			conn, err := tls.Dial("tcp", plane.HTTPS().String(), cfg)
			if err == nil {
				state := conn.ConnectionState()
				got = tls.VersionName(state.Version) + " " + state.CurveID.String() + " " + tls.CipherSuiteName(state.CipherSuite)
				_ = conn.Close()
			} else {
				got = err.Error()
			}
			if !strings.Contains(got, v.want) || (err != nil) != (v.want == refused || v.want == "protocol version") {
				t.Errorf("%q, client %d: %s, want %s", c.env, i, got, v.want)
			}
		}
	}
}

// TestPolicyIsLogged: what clients get stands in the log, and what of a set they do not.
func TestPolicyIsLogged(t *testing.T) {
	for ciphers, want := range map[string][2]string{ // one that is there, one that is not
		"":             {"ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"},
		"modern":       {"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-AES256-SHA384"},
		"intermediate": {"ECDHE-RSA-AES256-SHA", "DES-CBC3-SHA"},
		"old":          {"DES-CBC3-SHA", "EDH-RSA-DES-CBC3-SHA"},
		"AES128-SHA":   {"AES128-SHA", ""},
	} {
		core, logs := observer.New(zap.InfoLevel)
		o := parse(t, envOf("ROUTER_CIPHERS", ciphers, "SSL_MAX_VERSION", "TLSv1.2", "ROUTER_CURVES", "secp384r1"))
		logging.TLS(zap.New(core), &o.server, o.suitesLeftOut)
		fields := logs.All()[0].ContextMap()
		there, missing := fmt.Sprint(fields["ciphers"]), fmt.Sprint(fields["left_out"])
		if !strings.Contains(there, want[0]) || !strings.Contains(missing, want[1]) || (missing == "[]") != (want[1] == "") ||
			fields["min_version"] != "TLS 1.2" || fields["max_version"] != "TLS 1.2" || fmt.Sprint(fields["curves"]) != "[CurveP384]" {
			t.Errorf("%q: %v", ciphers, fields)
		}
	}
}

// rsaPair is a certificate with an RSA key, as PEM text.
func rsaPair(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
}
