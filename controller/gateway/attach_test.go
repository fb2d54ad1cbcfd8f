package gateway

import (
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/routing"
)

// routeTold is the words of the conditions of each own parent of a route of infra.
func routeTold(r *Result, kind, name string) []string {
	route := r.Routes[Ref{kind, source.Key{Namespace: namespace, Name: name}}]
	if route == nil {
		return nil
	}
	var out []string
	for _, p := range route.Status.Parents {
		out = append(out, say(p.Conditions, gatewayv1.RouteConditionAccepted)+", "+say(p.Conditions, gatewayv1.RouteConditionResolvedRefs))
	}
	return out
}

// hostsOf are the listener sections and host names that the rules of a route are on, in order.
func hostsOf(r *Result, kind, name string) []string {
	var out []string
	route := r.Routes[Ref{kind, source.Key{Namespace: namespace, Name: name}}]
	for i := range route.Rules() {
		out = append(out, route.Rules()[i].Listener[strings.LastIndex(route.Rules()[i].Listener, "/")+1:]+" "+route.Rules()[i].Host)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestAttachment goes by the order of the checks, and holds the rules to the status: none where it says that there is no attachment.
func TestAttachment(t *testing.T) {
	const gateways = `
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: any, port: 80, protocol: HTTP}
  - {name: stars, port: 80, protocol: HTTP, hostname: "*.example.com"}
  - {name: one, port: 8080, protocol: HTTP, hostname: one.example.com}
  - {name: grpc, port: 8081, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}
  - {name: web, port: 8082, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {team: web}}}}}
  - {name: ours, port: 8083, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: infra}}}}}
  - {name: nobody, port: 8084, protocol: HTTP, allowedRoutes: {namespaces: {from: None}}}
  - {name: tcp, port: 9000, protocol: TCP}
---
kind: Gateway
metadata: {name: closed, namespace: web}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}, {name: open, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}
---
kind: Gateway
metadata: {name: theirs}
spec: {gatewayClassName: theirs, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: ListenerSet
metadata: {name: set}
spec: {parentRef: {name: gw}, listeners: [{name: of-set, port: 80, protocol: HTTP, hostname: set.test}]}
`
	const good, refs = "True Accepted, True ResolvedRefs", ", True ResolvedRefs"
	for what, c := range map[string]struct {
		parents, hostnames string
		want, hosts        []string
	}{
		"a section":                       {"{name: gw, sectionName: any}", "[]", []string{good}, []string{"any *"}},
		"the host names of the listener":  {"{name: gw, sectionName: stars}", "[]", []string{good}, []string{"stars *.example.com"}},
		"all listeners that fit":          {"{name: gw}", "[]", []string{good}, []string{"any *", "one one.example.com", "ours *", "stars *.example.com"}},
		"a port":                          {"{name: gw, port: 80}", "[]", []string{good}, []string{"any *", "stars *.example.com"}},
		"a section and a port":            {"{name: gw, sectionName: one, port: 8080}", "[]", []string{good}, []string{"one one.example.com"}},
		"a section on another port":       {"{name: gw, sectionName: one, port: 80}", "[]", []string{"False NoMatchingParent" + refs}, nil},
		"no such section":                 {"{name: gw, sectionName: none}", "[]", []string{"False NoMatchingParent" + refs}, nil},
		"no such port":                    {"{name: gw, port: 1}", "[]", []string{"False NoMatchingParent" + refs}, nil},
		"a section of a ListenerSet":      {"{name: gw, sectionName: of-set}", "[]", []string{"False NoMatchingParent" + refs}, nil},
		"a section of a Gateway":          {"{kind: ListenerSet, name: set, sectionName: any}", "[]", []string{"False NoMatchingParent" + refs}, nil},
		"a ListenerSet":                   {"{kind: ListenerSet, name: set}", "[]", []string{good}, []string{"of-set set.test"}},
		"another kind":                    {"{name: gw, sectionName: grpc}", "[]", []string{"False NotAllowedByListeners" + refs}, nil},
		"another protocol":                {"{name: gw, sectionName: tcp}", "[]", []string{"False NotAllowedByListeners" + refs}, nil},
		"another namespace by label":      {"{name: gw, sectionName: web}", "[]", []string{"False NotAllowedByListeners" + refs}, nil},
		"its namespace by label":          {"{name: gw, sectionName: ours}", "[]", []string{good}, []string{"ours *"}},
		"no namespace":                    {"{name: gw, sectionName: nobody}", "[]", []string{"False NotAllowedByListeners" + refs}, nil},
		"a Gateway for its own namespace": {"{name: closed, namespace: web, sectionName: http}", "[]", []string{"False NotAllowedByListeners" + refs}, nil},
		"a Gateway for all namespaces":    {"{name: closed, namespace: web}", "[]", []string{good}, []string{"open *"}},
		"another host name":               {"{name: gw, sectionName: stars}", "[example.com, other.test]", []string{"False NoMatchingListenerHostname" + refs}, nil},
		"kind before host name":           {"{name: gw, sectionName: grpc}", "[other.test]", []string{"False NotAllowedByListeners" + refs}, nil},
		"some host names":                 {"{name: gw, sectionName: stars}", "[A.example.com, b.c.example.com, example.com, '*.c.example.com', '*.com']", []string{good}, []string{"stars *.c.example.com", "stars *.example.com", "stars a.example.com", "stars b.c.example.com"}},
		"a wider host name":               {"{name: gw, sectionName: one}", "['*.example.com', '*.com']", []string{good}, []string{"one one.example.com"}},
		"two parents":                     {"{name: gw, sectionName: any}, {kind: ListenerSet, name: set}, {name: gw, sectionName: none}", "[]", []string{good, good, "False NoMatchingParent" + refs}, []string{"any *", "of-set set.test"}},
		"a parent twice":                  {"{name: gw, sectionName: any}, {name: gw, port: 80}", "[a.test]", []string{good, good}, []string{"any a.test"}},
		"no such Gateway":                 {"{name: none}", "[]", nil, nil},
		"somebody else's":                 {"{name: theirs}, {name: gw, sectionName: any}, {kind: Service, group: '', name: a}", "[]", []string{good}, []string{"any *"}},
	} {
		w := newWorld(t).add("{kind: GatewayClass, metadata: {name: theirs}, spec: {controllerName: x.org/theirs}}").add(gateways).add(`
kind: HTTPRoute
metadata: {name: r, generation: 3}
spec: {parentRefs: [` + c.parents + `], hostnames: ` + c.hostnames + `, rules: [{backendRefs: [{name: a, port: 80}]}]}
`)
		r := w.judge()
		if got := routeTold(r, kindHTTPRoute, "r"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
			continue
		}
		if c.want == nil {
			continue
		}
		if got := hostsOf(r, kindHTTPRoute, "r"); !slices.Equal(got, c.hosts) {
			t.Errorf("%s: rules on %q, want %q", what, got, c.hosts)
		}
		counted := 0
		for _, g := range r.Gateways {
			for _, l := range g.Status.Listeners {
				counted += int(l.AttachedRoutes)
			}
		}
		for _, s := range r.ListenerSets {
			counted += int(s.Listeners[0].AttachedRoutes)
		}
		listeners := map[string]bool{}
		for _, host := range c.hosts {
			listeners[strings.Fields(host)[0]] = true
		}
		if counted != len(listeners) {
			t.Errorf("%s: %d listeners count it, rules are on %d", what, counted, len(listeners))
		}
		for _, p := range r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Status.Parents {
			if p.ControllerName != ours || p.Conditions[0].ObservedGeneration != 3 || p.ParentRef.Name == "theirs" {
				t.Errorf("%s: %+v", what, p)
			}
		}
	}
}

// TestAttachedWithoutHealth: a listener that is not served has its routes, who are told nothing of it.
func TestAttachedWithoutHealth(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: turnout, listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}]}
---
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: none, port: 80}]}]}
`)
	r := w.judge()
	if got := routeTold(r, kindHTTPRoute, "r"); got[0] != "True Accepted, False BackendNotFound" || r.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Listeners[0].AttachedRoutes != 1 {
		t.Errorf("%q", got)
	}
	if rules := r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules(); len(rules) != 0 {
		t.Errorf("rules on a listener that is not there: %v", rules)
	}
	w.certificate(namespace, "none", "a.test")
	if r = w.judge(); len(r.Changes.Rules) != 1 || len(r.Changes.Listeners) != 1 {
		t.Errorf("after the certificate came: %+v", r.Changes)
	}
}

// TestKindsShareAListener: of an HTTPRoute and a GRPCRoute with a host name in common the older one stays.
func TestKindsShareAListener(t *testing.T) {
	route := func(kind, name, hosts string) string {
		return "{kind: " + kind + ", metadata: {name: " + name + "}, spec: {parentRefs: [{name: gw}], hostnames: " + hosts + ", rules: [{backendRefs: [{name: a, port: 80}]}]}}"
	}
	const good, lost = "True Accepted, True ResolvedRefs", "False NotAllowedByListeners, True ResolvedRefs"
	w := newWorld(t).add(plainGateway)
	w.add(route(kindHTTPRoute, "old", "[a.test]")).add(route(kindGRPCRoute, "young", "[a.test, b.test]")).add(route(kindGRPCRoute, "free", "[c.test]")).add(route(kindHTTPRoute, "after", "[b.test]"))
	check := func(when string, want map[Ref]string, attached int32) {
		t.Helper()
		r := w.judge()
		for ref, text := range want {
			if got := routeTold(r, ref.Kind, ref.Name); len(got) != 1 || got[0] != text {
				t.Errorf("%s: %s %s: %q, want %s", when, ref.Kind, ref.Name, got, text)
			}
			if rules := r.Routes[Ref{ref.Kind, source.Key{Namespace: namespace, Name: ref.Name}}].Rules(); (len(rules) > 0) != (text == good) {
				t.Errorf("%s: %s %s has %d rules", when, ref.Kind, ref.Name, len(rules))
			}
		}
		if got := r.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Listeners[0].AttachedRoutes; got != attached {
			t.Errorf("%s: %d routes attached, want %d", when, got, attached)
		}
	}
	of := func(kind, name string) Ref { return Ref{kind, source.Key{Name: name}} }
	check("at first", map[Ref]string{of(kindHTTPRoute, "old"): good, of(kindGRPCRoute, "young"): lost, of(kindGRPCRoute, "free"): good, of(kindHTTPRoute, "after"): good}, 3)
	w.o.HTTPRoutes.Delete(source.Key{Namespace: namespace, Name: "old"})
	check("without the oldest", map[Ref]string{of(kindGRPCRoute, "young"): good, of(kindGRPCRoute, "free"): good, of(kindHTTPRoute, "after"): lost}, 2)
	w.o.GRPCRoutes.Delete(source.Key{Namespace: namespace, Name: "young"})
	w.o.GRPCRoutes.Delete(source.Key{Namespace: namespace, Name: "free"})
	check("with one kind", map[Ref]string{of(kindHTTPRoute, "after"): good}, 1)
}

// TestRoutesShareAPort: of several routes of a TCP or UDP listener all are attached, and the oldest has the traffic.
func TestRoutesShareAPort(t *testing.T) {
	for kind, protocol := range map[string]string{kindTCPRoute: "TCP", kindUDPRoute: "UDP"} {
		w := newWorld(t).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, listeners: [{name: l, port: 9000, protocol: " + protocol + "}]}}")
		w.service(namespace, "d", "{name: d, port: 53, protocol: "+protocol+"}", "10.0.0.1")
		for _, name := range []string{"old", "young"} {
			w.add("{kind: " + kind + ", metadata: {name: " + name + "}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: d, port: 53}]}]}}")
		}
		rules := func(r *Result, name string) int {
			return len(r.Routes[Ref{kind, source.Key{Namespace: namespace, Name: name}}].Rules())
		}
		r := w.judge()
		if got := append(routeTold(r, kind, "old"), routeTold(r, kind, "young")...); got[0] != "True Accepted, True ResolvedRefs" || got[0] != got[1] {
			t.Errorf("%s: %q", kind, got)
		}
		g := r.Gateways[source.Key{Namespace: namespace, Name: "gw"}]
		if g.Status.Listeners[0].AttachedRoutes != 2 || rules(r, "old") != 1 || rules(r, "young") != 0 {
			t.Errorf("%s: %d attached, %d and %d rules", kind, g.Status.Listeners[0].AttachedRoutes, rules(r, "old"), rules(r, "young"))
		}
		l := r.Listeners["Gateway/infra/gw/l"]
		if l == nil || l.Port != g.Ports[0].Name || !l.Stream || l.TLS || l.Hostname != "" || string(g.Ports[0].Protocol) != protocol {
			t.Errorf("%s: %+v, ports %+v", kind, l, g.Ports)
		}
		s := r.Routes[Ref{kind, source.Key{Namespace: namespace, Name: "old"}}].Rules()[0]
		if s.Listener != l.Name || s.Host != "*" || s.Termination != routing.TermStream || len(s.Backends) != 1 || len(s.Backends[0].Targets) != 1 {
			t.Errorf("%s: %+v", kind, s)
		}
		if kind == kindTCPRoute {
			w.o.TCPRoutes.Delete(source.Key{Namespace: namespace, Name: "old"})
		} else {
			w.o.UDPRoutes.Delete(source.Key{Namespace: namespace, Name: "old"})
		}
		if r = w.judge(); rules(r, "young") != 1 {
			t.Errorf("%s: the other route has not got the port", kind)
		}
	}
}

// TestTLSRoutes: where TLS passes through a route has rules, where it ends here too, which say so.
func TestTLSRoutes(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: turnout
  listeners:
  - {name: through, port: 443, protocol: TLS, hostname: "*.test", tls: {mode: Passthrough}}
  - {name: ends, port: 443, protocol: TLS, hostname: x.ends.test, tls: {mode: Terminate, certificateRefs: [{name: good}]}}
---
kind: TLSRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}], hostnames: [a.test, "*.ends.test"], rules: [{backendRefs: [{name: a, port: 80}, {name: none, port: 80, weight: 3}]}]}
`)
	w.certificate(namespace, "good", "x.ends.test")
	w.authority(namespace, "ca")
	w.add("{kind: BackendTLSPolicy, metadata: {name: p}, spec: {targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}}")
	r := w.judge()
	route := r.Routes[Ref{kindTLSRoute, source.Key{Namespace: namespace, Name: "r"}}]
	if got := hostsOf(r, kindTLSRoute, "r"); !slices.Equal(got, []string{"ends x.ends.test", "through *.ends.test", "through a.test"}) {
		t.Fatalf("rules on %q", got)
	}
	for i := range route.Rules() {
		s := &route.Rules()[i]
		want := routing.TermPassthrough
		if s.Host == "x.ends.test" {
			want = routing.TermStream
		}
		if secured := s.Backends[0].Targets[0].TLS != nil; secured != (want == routing.TermStream) {
			t.Errorf("%s: TLS to endpoints: %t", s.Host, secured)
		}
		if s.Termination != want || len(s.Backends) != 2 || s.Backends[1].Status != 500 || s.Backends[1].Weight != 3 {
			t.Errorf("rule %+v", s)
		}
	}
	if l := r.Listeners["Gateway/infra/gw/ends"]; !l.TLS || !l.Stream || len(l.Certificates) != 1 {
		t.Errorf("listener %+v", l)
	}
	if l := r.Listeners["Gateway/infra/gw/through"]; !l.TLS || !l.Stream || len(l.Certificates) != 0 {
		t.Errorf("listener %+v", l)
	}
}
