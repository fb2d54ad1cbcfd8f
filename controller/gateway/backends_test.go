package gateway

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/internal/wire/protocol"
)

// backendsOf are the backends of the first rule of route r, as "weight:status:servers".
func backendsSeen(t *testing.T, r *Result) string {
	t.Helper()
	route := r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}]
	if route == nil || len(route.Rules()) == 0 {
		return "none"
	}
	var out []string
	for _, b := range route.Rules()[0].Backends {
		if b.Pool.Namespace != namespace {
			t.Errorf("the servers of %s are reached for namespace %q", b.Key, b.Pool.Namespace)
		}
		out = append(out, fmt.Sprintf("%d:%d:%d", b.Weight, b.Status, len(b.Targets)))
	}
	return strings.Join(out, " ")
}

func TestBackends(t *testing.T) {
	for what, c := range map[string]struct{ refs, resolved, backends string }{
		"a Service":                      {"[{name: a, port: 80}]", "True ResolvedRefs", "1:0:1"},
		"weights":                        {"[{name: a, port: 80, weight: 70}, {name: b, port: 80, weight: 30}, {name: c, port: 80, weight: 0}]", "True ResolvedRefs", "70:0:1 30:0:1 0:0:1"},
		"no reference":                   {"[]", "True ResolvedRefs", "1:500:0"},
		"missing":                        {"[{name: none, port: 80}]", "False BackendNotFound", "1:500:0"},
		"missing among others":           {"[{name: a, port: 80}, {name: none, port: 80, weight: 2}]", "False BackendNotFound", "1:0:1 2:500:0"},
		"another port":                   {"[{name: a, port: 81}]", "False BackendNotFound", "1:500:0"},
		"no port":                        {"[{name: a}]", "False BackendNotFound", "1:500:0"},
		"another kind":                   {"[{kind: Thing, name: a, port: 80}]", "False InvalidKind", "1:500:0"},
		"another group":                  {"[{group: x.org, name: a, port: 80}]", "False InvalidKind", "1:500:0"},
		"another namespace":              {"[{name: b, namespace: web, port: 80}]", "False RefNotPermitted", "1:500:0"},
		"another namespace, missing":     {"[{name: none, namespace: web, port: 80}]", "False RefNotPermitted", "1:500:0"},
		"another namespace, granted":     {"[{name: a, namespace: web, port: 80}]", "True ResolvedRefs", "1:0:1"},
		"granted to another kind":        {"[{name: c, namespace: web, port: 80}]", "False RefNotPermitted", "1:500:0"},
		"no endpoints":                   {"[{name: idle, port: 80}]", "True ResolvedRefs", "1:503:0"},
		"UDP":                            {"[{name: udp, port: 80}]", "False UnsupportedProtocol", "1:500:0"},
		"an unknown protocol":            {"[{name: odd, port: 80}]", "False UnsupportedProtocol", "1:500:0"},
		"a word of somebody's":           {"[{name: word, port: 80}]", "True ResolvedRefs", "1:0:1"},
		"WebSocket":                      {"[{name: ws, port: 80}]", "True ResolvedRefs", "1:0:1"},
		"WebSocket over TLS without one": {"[{name: wss, port: 80}]", "False UnsupportedProtocol", "1:500:0"},
		"a name of elsewhere":            {"[{name: external, port: 80}]", "False BackendNotFound", "1:500:0"},
		"one Service twice":              {"[{name: a, port: 80}, {name: a, port: 80, weight: 2}]", "True ResolvedRefs", "1:0:1 2:0:1"},
	} {
		w := newWorld(t).add(plainGateway).add(`
kind: ReferenceGrant
metadata: {name: one, namespace: web}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: infra}], to: [{group: "", kind: Service, name: a}]}
---
kind: ReferenceGrant
metadata: {name: two, namespace: web}
spec: {from: [{group: gateway.networking.k8s.io, kind: GRPCRoute, namespace: infra}], to: [{group: "", kind: Service}]}
---
kind: Service
metadata: {name: external, namespace: infra}
spec: {type: ExternalName, externalName: example.com, ports: [{port: 80}]}
---
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: ` + c.refs + `}]}
`)
		w.service(namespace, "idle", "{name: http, port: 80}")
		w.service(namespace, "udp", "{name: dns, port: 80, protocol: UDP}", "10.0.0.1")
		w.service(namespace, "odd", "{name: http, port: 80, appProtocol: kubernetes.io/odd}", "10.0.0.1")
		w.service(namespace, "word", "{name: http, port: 80, appProtocol: mine}", "10.0.0.1")
		w.service(namespace, "ws", "{name: http, port: 80, appProtocol: kubernetes.io/ws}", "10.0.0.1")
		w.service(namespace, "wss", "{name: http, port: 80, appProtocol: kubernetes.io/wss}", "10.0.0.1")
		r := w.judge()
		if got := routeTold(r, kindHTTPRoute, "r"); len(got) != 1 || got[0] != "True Accepted, "+c.resolved {
			t.Errorf("%s: %q, want %s", what, got, c.resolved)
		}
		if got := backendsSeen(t, r); got != c.backends {
			t.Errorf("%s: %s, want %s", what, got, c.backends)
		}
		keys := map[string]bool{}
		for _, b := range r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules()[0].Backends {
			if keys[b.Key] || b.Key == "" {
				t.Errorf("%s: key %q", what, b.Key)
			}
			keys[b.Key] = true
		}
	}
}

// TestGrantsComeAndGo: traffic follows, without a change of the route.
func TestGrantsComeAndGo(t *testing.T) {
	w := newWorld(t).add(plainGateway).add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, namespace: web, port: 80}]}]}}")
	const grant = "{kind: ReferenceGrant, metadata: {name: g, namespace: web}, spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: infra}], to: [{group: '', kind: Service}]}}"
	for _, want := range []string{"1:500:0", "1:0:1", "1:500:0"} {
		r := w.judge()
		if got := backendsSeen(t, r); got != want || len(r.Changes.Rules) != 1 {
			t.Errorf("%s with %d changes, want %s", got, len(r.Changes.Rules), want)
		}
		if want == "1:0:1" {
			w.o.Grants.Delete(source.Key{Namespace: "web", Name: "g"})
		} else {
			w.add(grant)
		}
	}
}

// TestProtocolsOfBackends: what is spoken to endpoints follows from the Service, and from the kind of the route.
func TestProtocolsOfBackends(t *testing.T) {
	for what, c := range map[string]struct {
		kind, port string
		want       protocol.Protocol
	}{
		"HTTP":                 {kindHTTPRoute, "{name: http, port: 80}", protocol.HTTP1},
		"h2c":                  {kindHTTPRoute, "{name: http, port: 80, appProtocol: kubernetes.io/h2c}", protocol.HTTP2},
		"gRPC":                 {kindGRPCRoute, "{name: http, port: 80}", protocol.HTTP2},
		"bytes":                {kindTCPRoute, "{name: http, port: 80, appProtocol: kubernetes.io/h2c}", protocol.TCP},
		"bytes through TLS":    {kindTLSRoute, "{name: http, port: 80}", protocol.TCP},
		"WebSocket, in HTTP/1": {kindHTTPRoute, "{name: http, port: 80, appProtocol: kubernetes.io/ws}", protocol.HTTP1},
	} {
		w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}, {name: tcp, port: 81, protocol: TCP}, {name: tls, port: 82, protocol: TLS, tls: {mode: Passthrough}}]}
---
{kind: ` + c.kind + `, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: p, port: 80}]}]}}
`)
		w.service(namespace, "p", c.port, "10.0.0.1")
		route := w.judge().Routes[Ref{c.kind, source.Key{Namespace: namespace, Name: "r"}}]
		if got := route.Rules()[0].Backends[0].Targets[0].Protocol; got != c.want {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// policyTold is the words of the conditions of a policy of infra for each Gateway.
func policyTold(r *Result, name string) string {
	p := r.Policies[source.Key{Namespace: namespace, Name: name}]
	if p == nil {
		return ""
	}
	var out []string
	for _, a := range p.Ancestors {
		out = append(out, string(a.AncestorRef.Name)+": "+say(a.Conditions, gatewayv1.PolicyConditionAccepted)+", "+say(a.Conditions, gatewayv1.BackendTLSPolicyConditionResolvedRefs))
	}
	return strings.Join(out, "; ")
}

func TestPolicies(t *testing.T) {
	const ca = "caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]"
	for what, c := range map[string]struct{ target, validation, want, backends, tls string }{
		"a Service":             {"{group: '', kind: Service, name: a}", ca, "gw: True Accepted, True ResolvedRefs", "1:0:1", "h.test h.test"},
		"a port":                {"{group: '', kind: Service, name: a, sectionName: http}", ca, "gw: True Accepted, True ResolvedRefs", "1:0:1", "h.test h.test"},
		"another Service":       {"{group: '', kind: Service, name: b}", ca, "", "1:0:1", ""},
		"another port":          {"{group: '', kind: Service, name: a, sectionName: x}", ca, "", "1:0:1", ""},
		"another kind":          {"{group: x.org, kind: Service, name: a}", ca, "", "1:0:1", ""},
		"no authority":          {"{group: '', kind: Service, name: a}", "caCertificateRefs: [{group: '', kind: ConfigMap, name: none}]", "gw: False NoValidCACertificate, False InvalidCACertificateRef", "1:500:0", ""},
		"an empty authority":    {"{group: '', kind: Service, name: a}", "caCertificateRefs: [{group: '', kind: ConfigMap, name: empty}]", "gw: False NoValidCACertificate, False InvalidCACertificateRef", "1:500:0", ""},
		"authority of a kind":   {"{group: '', kind: Service, name: a}", "caCertificateRefs: [{group: x.org, kind: Y, name: ca}]", "gw: False NoValidCACertificate, False InvalidKind", "1:500:0", ""},
		"one of two is good":    {"{group: '', kind: Service, name: a}", "caCertificateRefs: [{group: '', kind: ConfigMap, name: none}, {group: '', kind: ConfigMap, name: ca}]", "gw: True Accepted, False InvalidCACertificateRef", "1:0:1", "h.test h.test"},
		"of the system":         {"{group: '', kind: Service, name: a}", "wellKnownCACertificates: System", "gw: True Accepted, True ResolvedRefs", "1:0:1", "h.test h.test"},
		"of somebody's system":  {"{group: '', kind: Service, name: a}", "wellKnownCACertificates: x.org/mine", "gw: False Invalid, True ResolvedRefs", "1:500:0", ""},
		"alternative names":     {"{group: '', kind: Service, name: a}", ca + ", subjectAltNames: [{type: URI, uri: 'spiffe://a'}, {type: Hostname, hostname: b.test}]", "gw: True Accepted, True ResolvedRefs", "1:0:1", "h.test  {DNS: URI:spiffe://a} {DNS:b.test URI:}"},
		"names of unknown kind": {"{group: '', kind: Service, name: a}", ca + ", subjectAltNames: [{type: X, hostname: b.test}]", "gw: False Invalid, True ResolvedRefs", "1:500:0", ""},
	} {
		w := newWorld(t).add(plainGateway).add(`
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, port: 80}]}]}
---
kind: ConfigMap
metadata: {name: empty}
---
kind: BackendTLSPolicy
metadata: {name: p}
spec: {targetRefs: [` + c.target + `], validation: {hostname: h.test, ` + c.validation + `}}
`)
		w.authority(namespace, "ca")
		r := w.judge()
		if got := policyTold(r, "p"); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		if got := backendsSeen(t, r); got != c.backends {
			t.Errorf("%s: %s, want %s", what, got, c.backends)
		}
		seen := ""
		for _, target := range r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules()[0].Backends[0].Targets {
			if target.TLS != nil {
				seen = strings.TrimSpace(target.TLS.SNI + " " + target.TLS.ServerName + " " + strings.Trim(fmt.Sprintf("%+v", target.TLS.Names), "[]"))
			}
		}
		if seen != c.tls {
			t.Errorf("%s: TLS %q, want %q", what, seen, c.tls)
		}
	}
}

// TestPoliciesOfOneService: the oldest has it, one for a port comes before one for all, and all of it moves on when a policy goes.
func TestPoliciesOfOneService(t *testing.T) {
	w := newWorld(t).add(plainGateway).add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, port: 80}]}]}}")
	w.authority(namespace, "ca")
	for _, p := range []string{"first", "second"} {
		w.add("{kind: BackendTLSPolicy, metadata: {name: " + p + "}, spec: {targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: " + p + ".test, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}}")
	}
	check := func(when, sni string, want map[string]string) {
		t.Helper()
		r := w.judge()
		for name, text := range want {
			if got := policyTold(r, name); got != text {
				t.Errorf("%s: %s: %q, want %q", when, name, got, text)
			}
		}
		if tls := r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules()[0].Backends[0].Targets[0].TLS; tls == nil || tls.SNI != sni {
			t.Errorf("%s: TLS %+v, want %s", when, tls, sni)
		}
	}
	const good, lost = "gw: True Accepted, True ResolvedRefs", "gw: False Conflicted, True ResolvedRefs"
	check("two for all", "first.test", map[string]string{"first": good, "second": lost})
	w.add("{kind: BackendTLSPolicy, metadata: {name: port}, spec: {targetRefs: [{group: '', kind: Service, name: a, sectionName: http}], validation: {hostname: port.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}}")
	check("one for the port", "port.test", map[string]string{"first": good, "second": lost, "port": good})
	w.o.Policies.Delete(source.Key{Namespace: namespace, Name: "port"})
	w.o.Policies.Delete(source.Key{Namespace: namespace, Name: "first"})
	check("the second alone", "second.test", map[string]string{"first": "", "second": good, "port": ""})
	w.add("{kind: ConfigMap, metadata: {name: ca}}")
	if r := w.judge(); policyTold(r, "second") != "gw: False NoValidCACertificate, False InvalidCACertificateRef" || backendsSeen(t, r) != "1:500:0" {
		t.Errorf("with an empty authority: %s, %s", policyTold(r, "second"), backendsSeen(t, r))
	}
	w.authority(namespace, "ca")
	check("with the authority", "second.test", map[string]string{"second": good})
}

// TestCertificatesForEndpoints: the Gateway's certificate is shown to endpoints with a policy, and to no others.
func TestCertificatesForEndpoints(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}], tls: {backend: {clientCertificateRef: {name: shown}}}}
---
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, port: 80}, {name: b, port: 80}]}]}
---
kind: BackendTLSPolicy
metadata: {name: p}
spec: {targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}
`)
	w.authority(namespace, "ca")
	w.certificate(namespace, "shown", "gw.test")
	backends := w.judge().Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules()[0].Backends
	if tls := backends[0].Targets[0].TLS; tls == nil || tls.Certificate == nil || backends[1].Targets[0].TLS != nil {
		t.Errorf("%+v", backends)
	}
}

// TestTargetsAreShared: routes to a port of a Service have one list of its servers, until others come.
func TestTargetsAreShared(t *testing.T) {
	w := newWorld(t).add(plainGateway).add(`
kind: HTTPRoute
metadata: {name: r, namespace: infra}
spec: {parentRefs: [{name: gw}], hostnames: [one.test], rules: [{backendRefs: [{name: a, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: s, namespace: infra}
spec: {parentRefs: [{name: gw}], hostnames: [two.test], rules: [{backendRefs: [{name: a, port: 80}]}]}
`)
	const port = "{port: 80}"
	w.service(namespace, "a", port, "10.0.0.1", "10.0.0.2")
	one := func(name string) []balancer.Target {
		return w.judge().Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: name}}].Rules()[0].Backends[0].Targets
	}
	before := one("r")
	if len(before) != 2 || &one("s")[0] != &before[0] {
		t.Errorf("%v and %v", before, one("s"))
	}
	w.service(namespace, "a", port, "10.0.0.3")
	if after := one("s"); len(after) != 1 || &one("r")[0] != &after[0] || len(before) != 2 {
		t.Errorf("%v and %v after %v", after, one("r"), before)
	}
}

// TestTargetsAreMadeOnce checks that all rules that reach a Service through one BackendTLSPolicy
// share one list of targets. Policies with the same authorities share it too.
func TestTargetsAreMadeOnce(t *testing.T) {
	w := newWorld(t).add(wide(1, 4, 4, "r", "s"))
	w.authority(namespace, "ca")
	for _, name := range []string{"a", "b"} {
		w.add(fmt.Sprintf(`{kind: BackendTLSPolicy, metadata: {name: %[1]s}, spec: {targetRefs: [{group: "", kind: Service, name: %[1]s}],
 validation: {hostname: %[1]s.test, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}`, name))
	}
	w.add(`{kind: HTTPRoute, metadata: {name: other}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: b, port: 80}]}]}}`)
	w.judge()
	r := w.judge()
	first := func(name string) []balancer.Target {
		return r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: name}}].Rules()[0].Backends[0].Targets
	}
	a, b := first("r"), first("other")
	if len(a) == 0 || len(b) == 0 || a[0].TLS == nil || b[0].TLS == nil {
		t.Fatalf("targets %v, %v", a, b)
	}
	if &a[0] != &first("s")[0] {
		t.Error("two routes have targets of their own")
	}
	if a[0].TLS == b[0].TLS || a[0].TLS.Roots != b[0].TLS.Roots {
		t.Error("two policies do not share their authorities")
	}
}
