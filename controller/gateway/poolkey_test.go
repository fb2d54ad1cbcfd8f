package gateway

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"turnout/balancer"
	"turnout/routing"
)

// TestPoolsDifferWhereTargetsDo checks that rules of a route share the pool of a Service, unless
// they reach its endpoints in different ways: with the client certificate of a Gateway, with that
// of another one or none, and without the BackendTLSPolicy where TLS of clients passes through.
func TestPoolsDifferWhereTargetsDo(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}, {name: pass, port: 443, protocol: TLS, tls: {mode: Passthrough}},
  {name: ends, port: 444, protocol: TLS, tls: {certificateRefs: [{name: one}]}}], tls: {backend: {clientCertificateRef: {name: one}}}}
---
kind: Gateway
metadata: {name: gw2}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}], tls: {backend: {clientCertificateRef: {name: two}}}}
---
kind: Gateway
metadata: {name: gw3}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: gw}, {name: gw2}, {name: gw3}], rules: [
  {matches: [{path: {value: /a}}, {path: {value: /b}}], backendRefs: [{name: a, port: 80}, {name: b, port: 80}]},
  {matches: [{path: {value: /c}}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: a, port: 80}}}], backendRefs: [{name: a, port: 80}]}]}
---
kind: TLSRoute
metadata: {name: s}
spec: {parentRefs: [{name: gw}], hostnames: [h.test], rules: [{backendRefs: [{name: a, port: 80}]}]}
---
kind: BackendTLSPolicy
metadata: {name: p}
spec: {targetRefs: [{group: '', kind: Service, name: a}], validation: {hostname: h.test, caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}
`)
	w.authority(namespace, "ca")
	w.certificate(namespace, "one", "one.test")
	w.certificate(namespace, "two", "two.test")
	w.service(namespace, "a", "{port: 80}", "10.0.0.1", "10.0.0.2")
	w.service(namespace, "b", "{port: 80}", "10.0.0.3")
	w.judge()
	var rules []routing.RuleSpec
	for _, r := range w.judge().Routes {
		rules = append(rules, r.Rules()...)
	}
	slices.SortFunc(rules, func(a, b routing.RuleSpec) int { return a.RouteKey.Compare(b.RouteKey) })
	table, rejected := routing.CompileRules(routing.Options{}, nil, rules)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	routing.NewStore().Publish(table)
	keys := make(map[string]*balancer.Pool)
	for p := range table.Pools {
		_, key, _ := strings.Cut(p.Key(), "#")
		if known := keys[p.Key()[:len(namespace)+2]+" "+key]; known != nil && known != p {
			t.Errorf("pool %s is there twice", p.Key())
		}
		keys[p.Key()[:len(namespace)+2]+" "+key] = p
	}
	want := []string{
		"r backend/NS/a:80", "r backend/NS/a:80 (Gateway NS/gw)", "r backend/NS/a:80 (Gateway NS/gw2)", "r backend/NS/b:80",
		"r mirror/NS/a:80", "r mirror/NS/a:80 (Gateway NS/gw)", "r mirror/NS/a:80 (Gateway NS/gw2)",
		"s backend/NS/a:80 (Gateway NS/gw)", "s backend/NS/a:80 (passthrough)",
	}
	for i := range want {
		want[i] = strings.ReplaceAll(namespace+"/"+want[i], "NS", namespace)
	}
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) {
		t.Errorf("pools\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
