package gateway

import (
	"fmt"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// crowd is a world with routes on 50 Gateways, and Services of their own.
func crowd(t testing.TB, routes int) *world {
	w := newWorld(t)
	for i := range 50 {
		w.add(fmt.Sprintf(`{kind: Gateway, metadata: {name: gw%d}, spec: {gatewayClassName: turnout, listeners: [{name: http, port: 80, protocol: HTTP}]}}`, i))
	}
	for i := range routes {
		w.service(namespace, fmt.Sprint("s", i), "{name: http, port: 80}", fmt.Sprintf("10.1.%d.%d", i>>8, i&255), fmt.Sprintf("10.2.%d.%d", i>>8, i&255))
		w.add(fmt.Sprintf(`{kind: HTTPRoute, metadata: {name: r%d}, spec: {parentRefs: [{name: gw%d}], hostnames: [h%d.example.com],
 rules: [{matches: [{path: {type: PathPrefix, value: /a}}, {path: {type: PathPrefix, value: /b}, headers: [{name: x, value: y}]}], backendRefs: [{name: s%d, port: 80}]}]}}`, i, i%50, i, i))
	}
	return w
}

// BenchmarkJudge is what a change of one of 5,000 routes costs: of the route, of its endpoints, and of the Gateway that it is one of 100 of.
func BenchmarkJudge(b *testing.B) {
	w := crowd(b, 5000)
	w.judge()
	change := func(key source.Key) {
		r := w.o.HTTPRoutes.Get(key).DeepCopy()
		r.Generation++
		r.Spec.Hostnames[0] = gatewayv1.Hostname(fmt.Sprintf("g%d.example.com", r.Generation))
		w.o.HTTPRoutes.Set(key, r)
	}
	b.Run("nothing", func(b *testing.B) {
		for b.Loop() {
			w.judge()
		}
	})
	b.Run("route", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			change(source.Key{Namespace: namespace, Name: fmt.Sprint("r", n%5000)})
			if r := w.judge(); len(r.Changes.Rules) != 2 {
				b.Fatalf("%d rules changed", len(r.Changes.Rules))
			}
		}
	})
	b.Run("endpoints", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			w.service(namespace, "s7", "{name: http, port: 80}", fmt.Sprintf("10.3.%d.%d", n>>8&255, n&255))
			if r := w.judge(); len(r.Changes.Rules) != 2 {
				b.Fatalf("%d rules changed", len(r.Changes.Rules))
			}
		}
	})
	b.Run("Gateway", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			key := source.Key{Namespace: namespace, Name: "gw7"}
			g := w.o.Gateways.Get(key).DeepCopy()
			g.Generation++
			w.o.Gateways.Set(key, g)
			if r := w.judge(); len(r.Changes.Status) != 1 {
				b.Fatalf("%d statuses changed", len(r.Changes.Status))
			}
		}
	})
}

// BenchmarkListenerSets is what a change of a route, and of a ListenerSet, costs at a Gateway with 2,500 of these.
func BenchmarkListenerSets(b *testing.B) {
	w := newWorld(b).add("{kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: turnout, allowedListeners: {namespaces: {from: Same}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}")
	for i := range 2500 {
		w.add(fmt.Sprintf("{kind: ListenerSet, metadata: {name: s%d}, spec: {parentRef: {name: gw}, listeners: [{name: l, port: 80, protocol: HTTP, hostname: h%d.test}]}}", i, i))
		w.add(fmt.Sprintf("{kind: HTTPRoute, metadata: {name: r%d}, spec: {parentRefs: [{kind: ListenerSet, name: s%d}], rules: [{backendRefs: [{name: a, port: 80}]}]}}", i, i))
	}
	w.judge()
	b.Run("route", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			key := source.Key{Namespace: namespace, Name: fmt.Sprint("r", n%2500)}
			route := w.o.HTTPRoutes.Get(key)
			w.o.HTTPRoutes.Delete(key)
			w.judge()
			w.o.HTTPRoutes.Set(key, route)
			if r := w.judge(); len(r.Changes.Rules) != 1 || len(r.Changes.Status) != 2 {
				b.Fatalf("%d rules and %d statuses changed", len(r.Changes.Rules), len(r.Changes.Status))
			}
		}
	})
	b.Run("ListenerSet", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			key := source.Key{Namespace: namespace, Name: fmt.Sprint("s", n%2500)}
			set := w.o.ListenerSets.Get(key).DeepCopy()
			set.Generation++
			w.o.ListenerSets.Set(key, set)
			if r := w.judge(); len(r.Changes.Status) != 1 {
				b.Fatalf("%d statuses changed", len(r.Changes.Status))
			}
		}
	})
}
