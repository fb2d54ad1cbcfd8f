package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shards "turnout/controller/shard/api"
)

// TestNaming: turnout dns reads Routers and RouteBindings, nothing else, and of these what names are made of.
func TestNaming(t *testing.T) {
	a := newFakeAPI(t)
	a.put(routeOf("ns", "r"))
	a.put(&shards.Router{
		ObjectMeta: metaOf("", "one", "color", "red"),
		Spec:       shards.RouterSpec{DNS: &shards.RouterDNS{Domain: "one.test", TTLSeconds: 30}, RouteSelector: &metav1.LabelSelector{}, Addresses: []string{"10.0.0.1"}},
		Status:     shards.RouterStatus{Replicas: []shards.ReplicaStatus{{Name: "p", Ready: true, Addresses: []string{"10.0.0.2"}}}, Conditions: []metav1.Condition{{Type: "Valid"}}},
	})
	a.put(&shards.RouteBinding{
		ObjectMeta: metaOf("ns", "r", "color", "red"),
		Spec:       shards.RouteBindingSpec{RouteNamespace: "ns", RouteName: "r", RouteUID: "u", Router: "one", DNS: "a.test", Target: "b.test", Leaving: true},
		Status:     shards.RouteBindingStatus{Phase: shards.BindingServing, Conditions: []metav1.Condition{{Type: "Served"}}},
	})
	f, sink := start(t, a, Config{Naming: true})
	sink.wantSynced(t)
	sink.wantObjects(t, "RouteBinding ns/r", "Router one")
	for _, plural := range []string{"routes", "services", "endpointslices", "secrets"} {
		if a.count("list "+plural)+a.count("watch "+plural) > 0 {
			t.Errorf("%s are read", plural)
		}
	}
	b, _ := sink.latest["RouteBinding ns/r"].Object.(*shards.RouteBinding)
	if diff := cmp.Diff(shards.RouteBindingSpec{Router: "one", DNS: "a.test", Target: "b.test", Leaving: true}, b.Spec); diff != "" || b.Status.Phase != shards.BindingServing || b.Status.Conditions != nil || b.Labels != nil {
		t.Errorf("%s\n%+v", diff, b)
	}
	r, _ := sink.latest["Router one"].Object.(*shards.Router)
	if r.Spec.DNS.Domain != "one.test" || r.Spec.RouteSelector != nil || r.Spec.Addresses[0] != "10.0.0.1" || r.Status.Replicas[0].Addresses[0] != "10.0.0.2" || r.Status.Conditions != nil {
		t.Errorf("%+v", r)
	}
	a.remove(&shards.Router{ObjectMeta: metaOf("", "one")})
	sink.wantObjects(t, "RouteBinding ns/r")
	if f.Problems() != 0 {
		t.Errorf("%d problems", f.Problems())
	}
}
