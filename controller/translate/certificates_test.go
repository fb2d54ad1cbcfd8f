package translate

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"turnout/internal/testkit/testcert"
	"turnout/routing"
	"turnout/tlsmux/clientcert"
)

// TestClientAuth: what clients have to show, and that nobody comes by plain HTTP where that is a certificate.
func TestClientAuth(t *testing.T) {
	for _, c := range []struct {
		termination, policy string
		annotations         []string
		ca                  string
		want                string // mode; "" = nothing
		insecure            routing.InsecurePolicy
		notes               int
	}{
		{"edge", "", nil, "", "", routing.InsecureNone, 0},
		{"edge", "Allow", nil, "", "", routing.InsecureAllow, 0},
		{"edge", "", []string{annotationClientCA, "c"}, "pem", "required", routing.InsecureNone, 0},
		{"reencrypt", "Redirect", []string{annotationClientCA, "c", annotationClientAuth, "required"}, "pem", "required", routing.InsecureRedirect, 0},
		{"edge", "Allow", []string{annotationClientCA, "c"}, "pem", "required", routing.InsecureNone, 1},
		{"edge", "Allow", []string{annotationClientCA, "c", annotationClientAuth, "Optional"}, "pem", "required", routing.InsecureNone, 2},
		{"edge", "Allow", []string{annotationClientCA, "c", annotationClientAuth, "optional"}, "pem", "optional", routing.InsecureAllow, 0},
		{"edge", "Allow", []string{annotationClientAuth, "required"}, "", "", routing.InsecureAllow, 1},
		{"edge", "Allow", []string{annotationClientCA, "c"}, "", "", routing.InsecureNone, 1},
	} {
		r := terminated(c.termination, c.policy, c.annotations...)
		got := translator(t, Options{}).Route(Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one, ClientCA: c.ca})
		rule, said := got.Rules()[0], ""
		if a := rule.ClientAuth; a != nil {
			said = map[clientcert.Mode]string{clientcert.Required: "required", clientcert.Optional: "optional"}[a.Mode]
			if a.CA != c.ca {
				t.Errorf("authorities %q", a.CA)
			}
		}
		if said != c.want || rule.Insecure != c.insecure || len(got.Notes) != c.notes {
			t.Errorf("%s %s %q: %q, plain %v; notes %q", c.termination, c.policy, c.annotations, said, rule.Insecure, got.Notes)
		}
	}
	r := terminated("edge", "", annotationClientCA, "c", annotationCanary, "c", annotationCanaryHeader, "x")
	for i, rule := range translator(t, Options{}).Route(Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one, ClientCA: "pem"}).Rules() {
		if rule.ClientAuth == nil {
			t.Errorf("rule %d asks for nothing", i)
		}
	}
}

// TestPodIdentity: as whom endpoints are recognised, and what they are shown. What the owner asks for and cannot be done leaves them alone.
func TestPodIdentity(t *testing.T) {
	form := &x509.Certificate{}
	testcert.Authority(form)
	ca := testcert.Sign(t, form, nil)
	pair := testcert.Sign(t, &x509.Certificate{}, ca)
	cert := routing.CertificateSpec{Certificate: pair.PEM(), Key: pair.KeyPEM(t)}
	for _, c := range []struct {
		annotations []string
		in          Input
		verified    bool // there is a destinationCACertificate
		want        string
		notes       int
	}{
		{nil, Input{}, true, "[] sni= shown=false", 0},
		{[]string{annotationPodNames, "Pod.test, *.w.test spiffe://t.test/a"}, Input{}, true, "[{pod.test } {*.w.test } { spiffe://t.test/a}] sni=pod.test shown=false", 0},
		{[]string{annotationPodNames, "*.w.test"}, Input{}, true, "[{*.w.test }] sni= shown=false", 0},
		{[]string{annotationPodNames, "pod.test pod:80 a*.b spiffe:// a/b"}, Input{}, true, "[{pod.test }] sni=pod.test shown=false", 4},
		{[]string{annotationPodNames, "a/b"}, Input{}, true, "not reached", 2},
		{[]string{annotationPodNames, "pod.test"}, Input{}, false, "[] sni= shown=false", 1},
		{[]string{annotationPodCert, "c"}, Input{PodCert: cert}, true, "[] sni= shown=true", 0},
		{[]string{annotationPodCert, "c"}, Input{PodCert: cert}, false, "[] sni= shown=true", 0},
		{[]string{annotationPodCert, "c"}, Input{PodCertProblem: "it is away"}, true, "not reached", 1},
	} {
		r := terminated("reencrypt", "", c.annotations...)
		if c.verified {
			r.Spec.TLS.DestinationCACertificate = ca.PEM()
		}
		in := c.in
		in.Route, in.Host, in.TLS, in.Service = r, "h.test", r.Spec.TLS, one
		got := translator(t, Options{}).Route(in)
		notes := slices.DeleteFunc(slices.Clone(got.Notes), func(n string) bool { return strings.HasPrefix(n, "no endpoint") })
		said := "not reached"
		if len(got.Targets) > 0 {
			id := got.Targets[0].TLS
			said = fmt.Sprintf("%v sni=%s shown=%v", id.Names, id.SNI, id.Certificate != nil)
		}
		if said != c.want || len(notes) != c.notes {
			t.Errorf("%q: %s, want %s; notes %q", c.annotations, said, c.want, notes)
		}
	}
	for _, termination := range []string{"", "edge", "passthrough"} {
		if got := translated(t, Options{}, terminated(termination, "", annotationPodCert, "c", annotationPodNames, "a.test")); len(got.Notes) != 2 {
			t.Errorf("%s: notes %q", termination, got.Notes)
		}
	}
}

// TestPodIdentitiesDiffer: routes that show endpoints different certificates, or recognise them by different names, do not share connections.
func TestPodIdentitiesDiffer(t *testing.T) {
	form := &x509.Certificate{}
	testcert.Authority(form)
	ca := testcert.Sign(t, form, nil)
	tr := translator(t, Options{})
	keys := map[string]string{}
	for i, names := range []string{"", "a.test", "b.test", "a.test b.test"} {
		for j := range 3 {
			r := terminated("reencrypt", "", annotationPodNames, names)
			r.Spec.TLS.DestinationCACertificate = ca.PEM()
			in := Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one}
			if j > 0 {
				pair := testcert.Sign(t, &x509.Certificate{}, ca)
				r.Annotations[annotationPodCert], in.PodCert = "c", routing.CertificateSpec{Certificate: pair.PEM(), Key: pair.KeyPEM(t)}
			}
			key, what := tr.Route(in).Targets[0].TLS.Key, fmt.Sprint(i, " ", j)
			if other := keys[key]; other != "" {
				t.Errorf("%s and %s are one identity", what, other)
			}
			keys[key] = what
		}
	}
}

// FuzzSecretNames: what is taken for the name of a Secret leads to no other namespace.
func FuzzSecretNames(f *testing.F) {
	for _, s := range []string{"a", "a.b-c", "ns/a", "../a", "a..b", ".a", "a.", "-a", "A", "a\x00", strings.Repeat("a", 254)} {
		f.Add(s)
	}
	model := regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\z`)
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := IsSecretName(text), model.MatchString(text) && len(text) <= 253; got != want {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	})
}
