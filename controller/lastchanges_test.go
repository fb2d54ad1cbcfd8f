package controller

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
	"turnout/internal/testkit/testcert"
)

// changed is the latest change in words.
func (r *rig) changed() string {
	var words []string
	for _, item := range r.c.Changes()[0].Changed {
		words = append(words, item.What+" "+item.Object+" by "+item.By)
	}
	return strings.Join(words, ", ")
}

// TestChanges: of each table it is remembered what it changed, who did, and since when it is live.
func TestChanges(t *testing.T) {
	r := newRig(t, Options{})
	by := func(manager string) func(*routev1.Route) {
		return func(o *routev1.Route) { o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager}} }
	}
	r.do(aRoute("a", "a.test", 0, by("kubectl")))
	if got := r.changed(); got != "added ns/a by kubectl" {
		t.Error(got)
	}
	r.do(aRoute("a", "b.test", 0), aRoute("b", "c.test", 0))
	if got := r.changed(); got != "changed ns/a by test, added ns/b by test" {
		t.Error(got)
	}
	r.do(gone(source.Route, "a"))
	if got := r.changed(); got != "deleted ns/a by test" {
		t.Error(got)
	}
	r.c.SetDefaultCertificate(pairFor(t, "x.test"))
	r.c.handle()
	if got := r.changed(); got != "changed default certificate by " {
		t.Error(got)
	}
	all := r.c.Changes()
	if len(all) != 4 || all[0].Generation != r.store.Load().Generation() || !all[0].Live.Equal(r.now) || all[1].Routes != 1 {
		t.Errorf("%+v", all)
	}
}

// TestChangesAreBounded: of many changes the last ones are remembered, of a large one the first objects.
func TestChangesAreBounded(t *testing.T) {
	r := newRig(t, Options{})
	var many []source.Event
	for i := range 20 {
		many = append(many, aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.test", i), 0))
	}
	r.do(many...)
	if c := r.c.Changes()[0]; len(c.Changed) != 16 || c.More != 4 {
		t.Errorf("%d objects and %d more", len(c.Changed), c.More)
	}
	for i := range 70 {
		r.do(aRoute("a", fmt.Sprintf("a%d.test", i), 0))
	}
	if all := r.c.Changes(); len(all) != 64 || all[0].Generation != r.store.Load().Generation() {
		t.Errorf("%d changes, the first is %d", len(all), all[0].Generation)
	}
}

// TestEffectiveSettings: each setting says what decided it, and an annotation that cannot be used decided nothing.
func TestEffectiveSettings(t *testing.T) {
	r := newRig(t, Options{})
	r.do(aRoute("a", "a.test", 0, func(o *routev1.Route) {
		o.Annotations = map[string]string{
			"haproxy.router.openshift.io/timeout": "7s", "haproxy.router.openshift.io/timeout-tunnel": "soon", "haproxy.router.openshift.io/ip_allowlist": "192.0.2.1",
			"haproxy.router.openshift.io/rate-limit-connections": "true", "haproxy.router.openshift.io/rate-limit-connections.rate-http": "9",
			"turnout.router/request-timeout": "9s", "turnout.router/attempt-timeout": "soon", "turnout.router/retry-on": "503 502", "turnout.router/retry-backoff": "1s",
			"turnout.router/cors-allow-origin": "*", "turnout.router/redirect-to": "https://b.test/x", "turnout.router/upstream-host": "in.test",
			"turnout.router/mirror": "b c:http", "turnout.router/canary": "d", "turnout.router/canary-by-cookie": "canary",
		}
	}), aRoute("p", "p.test", 0, annotated("haproxy.router.openshift.io/timeout", "8s"), func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationPassthrough}
	}), aRoute("no", "a.test", 1), aClientCA("clients", testcert.Sign(t, &x509.Certificate{}, nil).PEM()), aRoute("s", "s.test", 0, withAnnotations(clientCA, "clients"), func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: "reencrypt"}
		o.Annotations["turnout.router/backend-names"], o.Annotations["turnout.router/client-auth"] = "pod.test", "optional"
		o.Annotations["turnout.router/backend-client-certificate"] = "none"
		o.Spec.TLS.DestinationCACertificate = testcert.Sign(t, &x509.Certificate{}, nil).PEM()
	}))
	for _, tt := range []struct{ route, name, value, from string }{
		{"a", "server timeout", "7s", "annotation haproxy.router.openshift.io/timeout"},
		{"a", "tunnel timeout", "1h0m0s", "--default-tunnel-timeout"},
		{"a", "allow-list", "only the addresses of the annotation", "annotation haproxy.router.openshift.io/ip_allowlist"},
		{"a", "host", "a.test", "spec.host"},
		{"a", "slow start", "0s", "default"},
		{"a", "request timeout", "9s", "annotation turnout.router/request-timeout"},
		{"a", "timeout of an attempt", "none", "default"},
		{"a", "retries besides those of the router", "1, after a failure or 502 or 503, 1s later", "annotation turnout.router/retry-on"},
		{"a", "requests of other origins", "as its annotations say", "annotation turnout.router/cors-allow-origin"},
		{"a", "redirect", "302 to https://b.test/x", "annotation turnout.router/redirect-to"},
		{"a", "host that pods get", "in.test", "annotation turnout.router/upstream-host"},
		{"a", "copies of requests", "b, c:http", "annotation turnout.router/mirror"},
		{"a", "canary", "service d", "annotation turnout.router/canary"},
		{"a", "client certificates", "as the router asks of all", "default"},
		{"s", "client certificates", "optional, judged by Secret clients", "annotation turnout.router/client-ca"},
		{"s", "names in certificates of pods", "one of pod.test", "annotation turnout.router/backend-names"},
		{"s", "certificate shown to pods", "that of Secret none", "annotation turnout.router/backend-client-certificate"},
		{"a", "path rewriting", "none", "default"},
		{"p", "tunnel timeout", "8s", "annotation haproxy.router.openshift.io/timeout"},
	} {
		report, _ := r.c.Explain("ns", tt.route)
		found := false
		for _, s := range report.Settings {
			if s.Name == tt.name {
				if found = true; s.Value != tt.value || s.From != tt.from {
					t.Errorf("%s: %+v, want %s from %s", tt.route, s, tt.value, tt.from)
				}
			}
		}
		if !found {
			t.Errorf("%s has no %s", tt.route, tt.name)
		}
	}
	if report, _ := r.c.Explain("ns", "no"); report.Settings != nil {
		t.Errorf("a route that is not served has settings: %v", report.Settings)
	}
}
