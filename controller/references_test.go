package controller

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/source"
	"turnout/internal/testkit/testcert"
	"turnout/tlsmux/clientcert"
)

const clientCA = "turnout.router/client-ca"

// aClientCA is a secret with authorities.
func aClientCA(name, content string) source.Event {
	e := aSecret(name, corev1.SecretTypeOpaque, "", "")
	e.Object.(*corev1.Secret).Data = map[string][]byte{"ca.crt": []byte(content)}
	return e
}

// withAnnotations gives a route those that are named, each followed by its value.
func withAnnotations(pairs ...string) func(*routev1.Route) {
	return func(o *routev1.Route) {
		o.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			o.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// asked is what clients who name a host have to show, "" for nothing.
func (r *rig) asked(host string) string {
	at := r.store.Load().SNI(host).Arrival
	switch {
	case at == nil || at.Auth == nil:
		return ""
	case at.Auth.Mode() == clientcert.Required:
		return "required"
	case at.Auth.Mode() == clientcert.Optional:
		return "optional"
	}
	return "something else"
}

// TestClientCA: what a route that names authorities becomes with what is known about their Secret. Nobody is let in without what the owner asks for.
func TestClientCA(t *testing.T) {
	form := &x509.Certificate{}
	testcert.Authority(form)
	text := testcert.Sign(t, form, nil).PEM()
	good, torn, long := aClientCA("c", text), aClientCA("c", strings.TrimSuffix(text, "-----END CERTIFICATE-----\n")), aClientCA("c", text+strings.Repeat("\n", maxClientCA))
	route := func(pairs ...string) source.Event {
		return aRoute("e", "h.test", 0, referring(""), withAnnotations(pairs...))
	}
	const rejected = "False InvalidClientAuth: annotation turnout.router/client-ca: "
	const noTLS = rejected + "clients can be asked for a certificate only where TLS ends at the router: with termination edge or reencrypt"
	for _, c := range []struct {
		id        string
		steps     []source.Event
		condition string
		want      string // what is asked of clients; "-" = the route is not served
		secrets   string // that were asked for
	}{
		{"good", []source.Event{route(clientCA, "c"), good}, "True", "required", "+c"},
		{"optional", []source.Event{route(clientCA, "c", "turnout.router/client-auth", "optional"), good}, "True", "optional", "+c"},
		{"a mode that is none", []source.Event{route(clientCA, "c", "turnout.router/client-auth", "none"), good}, "True", "required", "+c"},
		{"empty", []source.Event{route(clientCA, "")}, "True", "", ""},
		{"not known yet", []source.Event{route(clientCA, "c")}, "", "-", "+c"},
		{"added to a route that is served, not known yet", []source.Event{route(), route(clientCA, "c")}, "True", "", "+c"},
		{"denied", []source.Event{route(clientCA, "c"), failed("c", errDenied)}, rejected + `the router's service account may not get, watch, list secret "c"`, "-", "+c"},
		{"missing", []source.Event{route(clientCA, "c"), gone(source.Secret, "c")}, rejected + `secret "c" does not exist`, "-", "+c"},
		{"added to a route that is served, missing", []source.Event{route(), route(clientCA, "c"), gone(source.Secret, "c")}, rejected + `secret "c" does not exist`, "-", "+c"},
		{"deleted", []source.Event{route(clientCA, "c"), good, gone(source.Secret, "c")}, rejected + `secret "c" does not exist`, "-", "+c"},
		{"without authorities", []source.Event{route(clientCA, "c"), aClientCA("c", "")}, rejected + `secret "c": ca.crt: no CERTIFICATE block in it`, "-", "+c"},
		{"too long", []source.Event{route(clientCA, "c"), long}, rejected + `secret "c": ca.crt is longer than 262144 bytes`, "-", "+c"},
		{"torn later", []source.Event{route(clientCA, "c"), good, torn}, "True", "required", "+c"},
		{"a failure later", []source.Event{route(clientCA, "c"), good, failed("c", errors.New("x"))}, "True", "required", "+c"},
		{"a failure at first", []source.Event{route(clientCA, "c"), failed("c", errors.New("x"))}, rejected + `secret "c": x`, "-", "+c"},
		{"torn after it was gone", []source.Event{route(clientCA, "c"), good, gone(source.Secret, "c"), aClientCA("c", "x")}, rejected + `secret "c": ca.crt: no CERTIFICATE block in it`, "-", "+c"},
		{"another secret", []source.Event{route(clientCA, "b"), aClientCA("b", text), route(clientCA, "c"), aClientCA("c", "x")}, rejected + `secret "c": ca.crt: no CERTIFICATE block in it`, "-", "+b +c -b"},
		{"removed", []source.Event{route(clientCA, "c"), good, route()}, "True", "", "+c -c"},
		{"route gone", []source.Event{route(clientCA, "c"), good, gone(source.Route, "e")}, "no route", "-", "+c -c"},
		{"a name of another namespace", []source.Event{route(clientCA, "ns/c")}, rejected + `"ns/c" is not the name of a Secret of the namespace`, "-", ""},
		{"plain HTTP", []source.Event{aRoute("e", "h.test", 0, withAnnotations(clientCA, "c")), good}, noTLS, "-", "+c"},
		{"passthrough", []source.Event{aRoute("e", "h.test", 0, withAnnotations(clientCA, "c"), func(o *routev1.Route) { o.Spec.TLS = &routev1.TLSConfig{Termination: "passthrough"} }), good}, noTLS, "-", "+c"},
		{"of a certificate too", []source.Event{aRoute("e", "h.test", 0, referring("c"), withAnnotations(clientCA, "c")), gone(source.Secret, "c"), aRoute("e", "h.test", 0, referring("c"))}, rejectedBy + missingWords, "-", "+c"},
	} {
		r, v := safe(t, Options{})
		r.do()
		for _, e := range c.steps {
			r.do(e)
		}
		if c.condition != "" {
			if got := r.condition("e"); got != c.condition {
				t.Errorf("%s: condition %q, want %q", c.id, got, c.condition)
			}
		}
		got := r.asked("h.test")
		if r.store.Load().Len() == 0 {
			got = "-"
		}
		if got != c.want {
			t.Errorf("%s: clients are asked for %q, want %q", c.id, got, c.want)
		}
		if got := v.taken(); got != c.secrets {
			t.Errorf("%s: secrets asked for: %q, want %q", c.id, got, c.secrets)
		}
	}
}

// TestClientCAWhereTheRouterAsks: what the router asks of all clients no route weakens, also when the router begins to ask.
func TestClientCAWhereTheRouterAsks(t *testing.T) {
	form := &x509.Certificate{}
	testcert.Authority(form)
	r := newRig(t, Options{})
	r.do(aClientCA("c", testcert.Sign(t, form, nil).PEM()), aRoute("e", "h.test", 0, referring(""), withAnnotations(clientCA, "c")))
	r.wantCondition("e", "True")
	for _, asks := range []bool{true, false} {
		if err := r.c.Configure(Options{AsksClients: asks}); err != nil {
			t.Fatal(err)
		}
		r.do()
		if served := r.asked("h.test") == "required"; served == asks {
			t.Errorf("the router asks: %v, the route is served: %v", asks, served)
		}
		if got := r.condition("e"); strings.HasPrefix(got, "False InvalidClientAuth: annotation turnout.router/client-ca: the router asks clients of all hosts") != asks {
			t.Errorf("the router asks: %v, condition %q", asks, got)
		}
	}
}

// TestClientCAWithoutSecrets: where Secrets are not at hand, as validate has it, the rest of a route is judged.
func TestClientCAWithoutSecrets(t *testing.T) {
	r := newRig(t, Options{KeepWithoutSecret: true})
	r.do(aRoute("e", "h.test", 0, referring(""), withAnnotations(clientCA, "c")))
	if got := r.condition("e"); got != "True" {
		t.Errorf("condition %q", got)
	}
	if notes := r.c.Notes("ns", "e"); len(notes) == 0 || !strings.Contains(notes[0], `secret "c" cannot be read`) {
		t.Errorf("notes %q", notes)
	}
}

// TestPodCertificate: without the certificate for endpoints these are not reached, and the route stays.
func TestPodCertificate(t *testing.T) {
	cert, key := keyPair(t, "client")
	good := aSecret("c", corev1.SecretTypeTLS, cert, key)
	route := aRoute("e", "h.test", 0, withAnnotations("turnout.router/backend-client-certificate", "c"), func(o *routev1.Route) {
		o.Spec.TLS = &routev1.TLSConfig{Termination: "reencrypt"}
	})
	for _, c := range []struct {
		id      string
		steps   []source.Event
		servers int
		shown   bool
		note    string
	}{
		{"good", []source.Event{route, good}, 1, true, ""},
		{"missing", []source.Event{route, gone(source.Secret, "c")}, 0, false, `annotation turnout.router/backend-client-certificate: secret "c" does not exist; endpoints are not reached`},
		{"of another type", []source.Event{route, aSecret("c", corev1.SecretTypeOpaque, cert, key)}, 0, false,
			`annotation turnout.router/backend-client-certificate: secret "c": it is of type Opaque, and not kubernetes.io/tls; endpoints are not reached`},
		{"torn later", []source.Event{route, good, aSecret("c", corev1.SecretTypeTLS, cert, "")}, 1, true, `what was last good is used: secret "c": `},
	} {
		r, _ := safe(t, Options{})
		r.do()
		r.do(aSlice("s-1", "s", "10.0.0.1"))
		for _, e := range c.steps {
			r.do(e)
		}
		if got := r.condition("e"); got != "True" {
			t.Errorf("%s: condition %q", c.id, got)
		}
		servers := 0
		for in := range r.store.Load().Routes {
			for _, s := range in.Pool().Servers() {
				servers++
				if shown := s.Endpoint().TLS() != nil && s.Endpoint().TLS().Certificate != nil; shown != c.shown {
					t.Errorf("%s: a certificate is shown: %v", c.id, shown)
				}
			}
		}
		notes := strings.Join(r.c.Notes("ns", "e"), "; ")
		if servers != c.servers || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %d servers, notes %q", c.id, servers, notes)
		}
	}
}
