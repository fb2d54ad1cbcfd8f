package controller

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/internal/keypair"
)

// pairFor is a certificate that a TLS server can use.
func pairFor(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	cert, key := keyPair(t, name)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// TestExplainCertificate: of every route it is said which certificate its clients see, until when, and what is wrong with it.
func TestExplainCertificate(t *testing.T) {
	def := pairFor(t, "*.apps.test")
	r := newRig(t, Options{AllowWildcard: true}, func(c *Config) { c.Routing.DefaultCertificate = def })
	own, external, wild := edge(keyPair(t, "own.test")), edge("", ""), edge(keyPair(t, "*.wild.test"))
	wildcard := func(o *routev1.Route) { o.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain }
	path := func(o *routev1.Route) { o.Spec.Path = "/below" }
	cert, key := keyPair(t, "secret.test")
	r.do(
		aRoute("own", "own.test", 0, own), aRoute("below", "own.test", 1, external, path), aRoute("zother", "shared.test", 1, edge(keyPair(t, "shared.test")), path),
		aRoute("shared", "shared.test", 0, edge(keyPair(t, "shared.test"))),
		aRoute("foreign", "foreign.test", 0, own), aRoute("secret", "secret.test", 0, external, func(o *routev1.Route) {
			o.Spec.TLS.ExternalCertificate = &routev1.LocalObjectReference{Name: "c"}
		}),
		aRoute("default", "a.apps.test", 0, external), aRoute("uncovered", "a.b.test", 0, external),
		aRoute("wild", "x.wild.test", 0, wild, wildcard), aRoute("narrow", "y.narrow.test", 0, edge(keyPair(t, "y.narrow.test")), wildcard),
		aRoute("plain", "plain.test", 0), aRoute("through", "through.test", 0, func(o *routev1.Route) {
			o.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}
		}),
		aRoute("bad", "bad.test", 0, edge("nonsense", "")),
		aSecret("c", corev1.SecretTypeTLS, cert, key),
	)
	r.now = def.Leaf.NotAfter.Add(-30 * time.Hour)
	const host, another = "certificate is not valid for the host of the route", "another route of the same host decides about its certificate"
	for _, tt := range []struct {
		route, source, name string // name is the first of the certificate
		warnings            []string
	}{
		{"own", "spec.tls.certificate", "own.test", nil},
		{"below", "another route", "own.test", []string{another}},
		{"zother", "spec.tls.certificate", "shared.test", nil},
		{"shared", "another route", "shared.test", []string{another}},
		{"foreign", "spec.tls.certificate", "own.test", []string{host}},
		{"secret", `secret "c"`, "secret.test", nil},
		{"default", "default certificate", "*.apps.test", nil},
		{"uncovered", "default certificate", "*.apps.test", []string{host}},
		{"wild", "spec.tls.certificate", "*.wild.test", nil},
		{"narrow", "spec.tls.certificate", "y.narrow.test", []string{host}},
	} {
		e, ok := r.c.Explain("ns", tt.route)
		if !ok || e.Certificate == nil || !e.Admitted {
			t.Errorf("%s: %+v, %v", tt.route, e, ok)
			continue
		}
		c := e.Certificate
		tt.warnings = append(tt.warnings, "certificate expires on "+c.NotAfter.Format(time.RFC3339))
		slices.Sort(tt.warnings)
		slices.Sort(c.Warnings)
		if c.Source != tt.source || len(c.Names) != 1 || c.Names[0] != tt.name || !slices.Equal(c.Warnings, tt.warnings) {
			t.Errorf("%s: %+v, want %s for %s with the warnings %q", tt.route, c, tt.source, tt.name, tt.warnings)
		}
		ours := tt.source != "another route" && tt.source != "default certificate"
		if got := slices.Contains(r.c.Notes("ns", tt.route), host); got != (ours && slices.Contains(tt.warnings, host)) {
			t.Errorf("%s: notes %q", tt.route, r.c.Notes("ns", tt.route))
		}
	}
	for _, name := range []string{"plain", "through", "bad"} {
		if e, ok := r.c.Explain("ns", name); !ok || e.Certificate != nil || e.Admitted != (name != "bad") {
			t.Errorf("%s: %+v, %v", name, e, ok)
		}
	}
	if _, ok := r.c.Explain("ns", "none"); ok {
		t.Error("a route that is not there is explained")
	}
	e, _ := r.c.Explain("ns", "secret")
	text, err := json.Marshal(e)
	if err != nil || strings.Contains(string(text), "PRIVATE") || !strings.Contains(string(text), `"daysLeft":1,`) || !strings.Contains(string(text), `"host":"secret.test"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestDaysLeft: days are whole, and count on when the certificate is over.
func TestDaysLeft(t *testing.T) {
	def := pairFor(t, "*.apps.test")
	until := def.Leaf.NotAfter
	for after, want := range map[time.Duration]int{-48 * time.Hour: 2, -47 * time.Hour: 1, -time.Second: 0, 0: 0, time.Second: -1, 25 * time.Hour: -2} {
		if got := describeCertificate(def, until.Add(after)); got.DaysLeft != want || !got.NotAfter.Equal(until) || got.Serial == "" {
			t.Errorf("%v after the end: %+v, want %d days", after, got, want)
		}
	}
}

// TestCovers: the common name does not count, and for a wildcard route only a wildcard will do.
func TestCovers(t *testing.T) {
	certificate := &x509.Certificate{DNSNames: []string{"a.test", "*.B.test"}}
	certificate.Subject.CommonName = "common.test"
	leaf := keypair.LeafOf(certificate)
	for host, want := range map[string][2]bool{
		"a.test": {true, false}, "x.b.test": {true, true}, "b.test": {false, false}, "x.y.b.test": {false, false}, "common.test": {false, false},
	} {
		if exact, wild := covers(leaf, host, false), covers(leaf, host, true); exact != want[0] || wild != want[1] {
			t.Errorf("%s: %v, as wildcard %v", host, exact, wild)
		}
	}
	if got := validityOf(nil, "a.test", false); got != nil {
		t.Errorf("no certificate is %+v", got)
	}
}

// TestShortKeyIsNoted: it is served, and many clients refuse it.
func TestShortKeyIsNoted(t *testing.T) {
	for bits, note := range map[int]string{1024: "certificate has an RSA key of 1024 bits, and many clients refuse less than 2048", 2048: ""} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		leaf := &x509.Certificate{PublicKey: key.Public(), DNSNames: []string{"a.test"}, NotAfter: time.Now().Add(90 * 24 * time.Hour)}
		v := validityOf(keypair.LeafOf(leaf), "a.test", false)
		if got := strings.Join(v.notes(time.Now()), ", "); got != note {
			t.Errorf("%d bits: %q", bits, got)
		}
	}
}
