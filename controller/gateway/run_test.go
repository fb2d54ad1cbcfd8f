package gateway

import (
	"maps"
	"slices"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// names are the names of objects of infra, in order.
func names(of map[source.Key]struct{}) []string {
	list := []string{}
	for key := range of {
		list = append(list, key.Name)
	}
	slices.Sort(list)
	return list
}

const runs = `
{kind: GatewayClass, metadata: {name: own}, spec: {controllerName: turnout.router/gateway, parametersRef: {group: '', kind: ConfigMap, name: class, namespace: infra}}}
---
{kind: ConfigMap, metadata: {name: class}, data: {mode: deployment, replicas: '3'}}
---
{kind: ConfigMap, metadata: {name: one}, data: {replicas: '1'}}
---
{kind: Gateway, metadata: {name: three}, spec: {gatewayClassName: own, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{kind: Gateway, metadata: {name: one}, spec: {gatewayClassName: own, infrastructure: {parametersRef: {group: '', kind: ConfigMap, name: one}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: one}], rules: [{backendRefs: [{name: a, port: 80}]}]}}
`

// TestHowGatewaysAreRun: how a Gateway is run follows from what its class says and what it says itself, as it is now; what cannot be used is said of whose it is, and
// changes nothing of what is served.
func TestHowGatewaysAreRun(t *testing.T) {
	w := newWorld(t)
	w.j.cfg.Deployments = true
	r := w.add(runs).judge()
	run := func(name string) int32 {
		p := r.Gateways[source.Key{Namespace: namespace, Name: name}].Parameters
		if p == nil || !p.Deployment {
			return 0
		}
		return *p.Replicas
	}
	if run("three") != 3 || run("one") != 1 {
		t.Fatalf("%d and %d pods", run("three"), run("one"))
	}
	if r = w.add("{kind: ConfigMap, metadata: {name: class}, data: {mode: deployment, replicas: '4'}}").judge(); run("three") != 4 || run("one") != 1 || len(r.Changes.Gateways) != 1 || len(r.Changes.Status) != 0 {
		t.Errorf("%d and %d pods, changes %+v", run("three"), run("one"), r.Changes)
	}
	if r = w.add("{kind: ConfigMap, metadata: {name: one}, data: {image: x}}").judge(); run("one") != 0 || len(r.Listeners) != 2 || len(r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules()) != 1 {
		t.Errorf("%d pods, %d listeners", run("one"), len(r.Listeners))
	}
	if got := gatewayTold(r, "one"); got != "Accepted=False InvalidParameters, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs" {
		t.Error(got)
	}
	r = w.add("{kind: ConfigMap, metadata: {name: class}, data: {mode: own}}").add("{kind: ConfigMap, metadata: {name: one}, data: {replicas: '1'}}").judge()
	if got := say(r.Classes[source.Key{Name: "own"}].Conditions, gatewayv1.GatewayClassConditionStatusAccepted); got != "False InvalidParameters" || run("one") != 0 || len(r.Listeners) != 2 {
		t.Errorf("the class: %s, %d listeners", got, len(r.Listeners))
	}
	w.j.cfg.Deployments = false
	r = w.add("{kind: ConfigMap, metadata: {name: class}, data: {mode: deployment}}").judge()
	if got := gatewayTold(r, "three"); got != "Accepted=False InvalidParameters, Programmed=False Invalid, ResolvedRefs=True ResolvedRefs" {
		t.Errorf("on a router that gives nobody pods: %s", got)
	}
}

// TestWhatAGatewayIsServedWith: each Gateway has the Secrets and ConfigMaps that it, its ListenerSets and the policies that matter to it refer to, not those of its parameters, and
// no others'.
func TestWhatAGatewayIsServedWith(t *testing.T) {
	w := newWorld(t)
	w.j.cfg.Deployments = true
	w.add(runs).add(`
{kind: Gateway, metadata: {name: tls}, spec: {gatewayClassName: turnout, allowedListeners: {namespaces: {from: Same}}, tls: {frontend: {default: {validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: clients}]}}}}, listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: pair}]}}]}}
---
{kind: ListenerSet, metadata: {name: set}, spec: {parentRef: {name: tls}, listeners: [{name: more, port: 443, hostname: more.test, protocol: HTTPS, tls: {certificateRefs: [{name: more}]}}]}}
---
{kind: BackendTLSPolicy, metadata: {name: p}, spec: {targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: pods}]}}}
---
{kind: BackendTLSPolicy, metadata: {name: q}, spec: {targetRefs: [{group: '', kind: Service, name: b}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: others}]}}}
`)
	of := func(name string) *Gateway { return w.j.result.Gateways[source.Key{Namespace: namespace, Name: name}] }
	w.judge()
	if g := of("tls"); !slices.Equal(names(g.Secrets), []string{"more", "pair"}) || !slices.Equal(names(g.ConfigMaps), []string{"clients"}) {
		t.Errorf("%v, %v", g.Secrets, g.ConfigMaps)
	}
	if g := of("one"); len(g.Secrets) != 0 || !slices.Equal(names(g.ConfigMaps), []string{"pods"}) {
		t.Errorf("%v, %v", g.Secrets, g.ConfigMaps)
	}
	// With the route goes what it needed.
	w.o.HTTPRoutes.Delete(source.Key{Namespace: namespace, Name: "r"})
	if c := w.judge().Changes.Gateways; len(of("one").ConfigMaps) != 0 || len(c) != 1 || c[0].Name != "one" {
		t.Errorf("%v, changes of %v", of("one").ConfigMaps, c)
	}
}

// TestOnlyOneGateway: a pod of a Gateway's own looks at no other, at no parameters, and refers to nothing that it may not read.
func TestOnlyOneGateway(t *testing.T) {
	w := newWorld(t)
	w.j.cfg.Only = source.Key{Namespace: namespace, Name: "one"}
	w.add(runs).add(`
{kind: BackendTLSPolicy, metadata: {name: p}, spec: {targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: pods}]}}}
---
{kind: BackendTLSPolicy, metadata: {name: q}, spec: {targetRefs: [{group: '', kind: Service, name: b}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: others}]}}}
`)
	r := w.judge()
	if len(r.Gateways) != 1 || len(r.Listeners) != 1 || !slices.Equal(names(r.ConfigMaps), []string{"pods"}) {
		t.Errorf("%d Gateways, listeners %v, refers to %v", len(r.Gateways), slices.Collect(maps.Keys(r.Listeners)), r.ConfigMaps)
	}
	w.add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: one}], rules: [{backendRefs: [{name: b, port: 80}]}]}}")
	if r = w.judge(); !slices.Equal(names(r.ConfigMaps), []string{"others"}) {
		t.Errorf("refers to %v", r.ConfigMaps)
	}
	w.authority(namespace, "others")
	if r = w.judge(); len(r.Changes.Rules) == 0 {
		t.Error("what it referred to is there, and not looked at")
	}
}
