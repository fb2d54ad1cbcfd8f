package controller

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// TestNameChains: a name leads to the Routers that stay; to those that leave while there is none else.
func TestNameChains(t *testing.T) {
	router := func(name string, addresses ...string) source.Event {
		return event(source.Router, &shards.Router{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: shards.RouterStatus{Addresses: addresses}})
	}
	binding := func(route, router string, leaving bool) source.Event {
		return event(source.RouteBinding, &shards.RouteBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: route + "." + router}, Spec: shards.RouteBindingSpec{
			RouteNamespace: "ns", RouteName: route, Router: router, DNS: route + ".test", Target: "ns-" + route + ".test", Leaving: leaving,
		}})
	}
	chains := NameChains([]source.Event{
		binding("a", "two", false), binding("a", "one", false), binding("a", "gone", true), binding("b", "one", true), router("one", "10.0.0.1", "10.0.0.2"), aRoute("a", "a.test", 0),
	})
	want := map[source.Key]*NameChain{
		{Namespace: "ns", Name: "a"}: {"a.test", "ns-a.test", []NameRouter{{"one", []string{"10.0.0.1", "10.0.0.2"}}, {"two", nil}}},
		{Namespace: "ns", Name: "b"}: {"b.test", "ns-b.test", []NameRouter{{"one", []string{"10.0.0.1", "10.0.0.2"}}}},
	}
	if !reflect.DeepEqual(chains, want) {
		t.Errorf("%+v", chains)
	}
}
