package gateway

import (
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/tlsmux/clientcert"
)

// listenerOf is the words of all conditions of a listener of a Gateway.
func listenerOf(t *testing.T, w *world, gateway, name string) string {
	t.Helper()
	g := w.judge().Gateways[source.Key{Namespace: namespace, Name: gateway}]
	if g == nil {
		t.Fatalf("no Gateway %s", gateway)
	}
	for _, l := range g.Status.Listeners {
		if string(l.Name) == name {
			return sayAll(l.Conditions)
		}
	}
	t.Fatalf("no listener %s", name)
	return ""
}

// What is said of a listener with nothing wrong, and with wrong references.
const (
	listenerGood = "Accepted=True Accepted, Programmed=True Programmed, Conflicted=False NoConflicts, ResolvedRefs=True ResolvedRefs"
	listenerRefs = "Accepted=True Accepted, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=False "
	listenerCAs  = "Accepted=False NoValidCACertificate, Programmed=False Invalid, Conflicted=False NoConflicts, ResolvedRefs=False "
)

func TestCertificatesOfListeners(t *testing.T) {
	for what, c := range map[string]struct{ refs, want string }{
		"a good one":             {`[{name: good}]`, listenerGood},
		"missing":                {`[{name: none}]`, listenerRefs + "InvalidCertificateRef"},
		"wrong group":            {`[{name: good, group: x.org}]`, listenerRefs + "InvalidCertificateRef"},
		"wrong kind":             {`[{name: good, kind: ConfigMap}]`, listenerRefs + "InvalidCertificateRef"},
		"malformed":              {`[{name: bad}]`, listenerRefs + "InvalidCertificateRef"},
		"none at all":            {`[]`, listenerRefs + "InvalidCertificateRef"},
		"granted":                {`[{name: granted, namespace: web}]`, listenerGood},
		"granted to nobody":      {`[{name: kept, namespace: web}]`, listenerRefs + "RefNotPermitted"},
		"missing, without grant": {`[{name: none, namespace: web}]`, listenerRefs + "RefNotPermitted"},
		"one of two is good": {`[{name: none}, {name: good}]`,
			"Accepted=True Accepted, Programmed=True Programmed, Conflicted=False NoConflicts, ResolvedRefs=False InvalidCertificateRef"},
	} {
		w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: ` + c.refs + `}}]
---
kind: ReferenceGrant
metadata: {name: grant, namespace: web}
spec:
  from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: infra}]
  to: [{group: "", kind: Secret, name: granted}]
---
kind: Secret
metadata: {name: bad}
data: {tls.crt: aGVsbG8=, tls.key: aGVsbG8=}
`)
		w.certificate(namespace, "good", "a.test")
		w.certificate("web", "granted", "a.test")
		w.certificate("web", "kept", "a.test")
		if got := listenerOf(t, w, "gw", "tls"); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", what, got, c.want)
		}
		served := w.j.result.Listeners["Gateway/infra/gw/tls"]
		if programmed := c.want != "" && say(w.j.result.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Conditions, gatewayv1.GatewayConditionProgrammed) == "True Programmed"; programmed != (served != nil) {
			t.Errorf("%s: programmed: %t, in the table: %t", what, programmed, served != nil)
		}
	}
}

func TestClientCertificatesOfListeners(t *testing.T) {
	for what, c := range map[string]struct {
		frontend, want string
		mode           clientcert.Mode
		insecure       string
	}{
		"nothing asked": {`{default: {}}`, listenerGood, clientcert.None, ""},
		"valid only":    {`{default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}`, listenerGood, clientcert.Required, ""},
		"anything": {`{default: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}`,
			listenerGood, clientcert.Unverified, "True ConfigurationChanged"},
		"the port says nothing": {`{default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}, perPort: [{port: 443, tls: {}}]}`, listenerGood, clientcert.None, ""},
		"another port says it":  {`{default: {}, perPort: [{port: 444, tls: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: none}]}}}]}`, listenerGood, clientcert.None, ""},
		"missing":               {`{default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: none}]}}}`, listenerCAs + "InvalidCACertificateRef", 0, ""},
		"nothing in it":         {`{default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: empty}]}}}`, listenerCAs + "InvalidCACertificateRef", 0, ""},
		"wrong kind":            {`{default: {validation: {caCertificateRefs: [{group: "", kind: Secret, name: ca}]}}}`, listenerCAs + "InvalidCACertificateKind", 0, ""},
		"in another namespace":  {`{default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca, namespace: web}]}}}`, listenerCAs + "RefNotPermitted", 0, ""},
		"one of two can be used": {`{default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: none}, {group: "", kind: ConfigMap, name: ca}]}}}`,
			"Accepted=True Accepted, Programmed=True Programmed, Conflicted=False NoConflicts, ResolvedRefs=False InvalidCACertificateRef", clientcert.Required, ""},
	} {
		w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  listeners:
  - {name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: good}]}}
  - {name: http, port: 80, protocol: HTTP}
  tls: {frontend: ` + c.frontend + `}
---
kind: ConfigMap
metadata: {name: empty}
`)
		w.certificate(namespace, "good", "a.test")
		w.authority(namespace, "ca")
		w.authority("web", "ca")
		if got := listenerOf(t, w, "gw", "tls"); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", what, got, c.want)
		}
		if got := listenerOf(t, w, "gw", "http"); got != listenerGood {
			t.Errorf("%s: without TLS: %s", what, got)
		}
		g := w.j.result.Gateways[source.Key{Namespace: namespace, Name: "gw"}]
		if got := say(g.Status.Conditions, gatewayv1.GatewayConditionInsecureFrontendValidationMode); got != c.insecure {
			t.Errorf("%s: the Gateway says %q", what, got)
		}
		mode := clientcert.None
		if l := w.j.result.Listeners["Gateway/infra/gw/tls"]; l != nil && l.ClientAuth != nil {
			mode = l.ClientAuth.Mode
		}
		if mode != c.mode {
			t.Errorf("%s: mode %d", what, mode)
		}
	}
}
