package cluster

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// aPlainRoute is a route as the API server sends it.
const aPlainRoute = `{"metadata": {"name": "r", "namespace": "ns", "managedFields": [{"manager": "x"}], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "long", "a": "b"}},
 "spec": {"parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw", "namespace": "ns"}, {"kind": "ListenerSet", "name": "s"}], "hostnames": ["a.test"], "rules": [
  {"matches": [{"path": {"type": "PathPrefix", "value": "/"}}, {"path": {"type": "Exact", "value": "/a"}}, {"method": "GET"}], "filters": [{"type": "RequestMirror"}],
   "backendRefs": [{"group": "", "kind": "Service", "name": "s", "port": 80, "weight": 1}, {"name": "s", "weight": 2}]}]},
 "status": {"parents": [{"parentRef": {"name": "gw"}, "controllerName": "x", "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "m", "lastTransitionTime": null}]}]}}`

// TestTrimGatewayAPI: a route says the same afterwards, and has no room in its lists, and what most routes say is one value for all of them.
func TestTrimGatewayAPI(t *testing.T) {
	var routes []*gatewayv1.HTTPRoute
	s := newStore(source.HTTPRoute)
	for range 2 {
		was, o := new(gatewayv1.HTTPRoute), new(gatewayv1.HTTPRoute)
		for _, into := range []*gatewayv1.HTTPRoute{was, o} {
			if err := json.Unmarshal([]byte(aPlainRoute), into); err != nil {
				t.Fatal(err)
			}
		}
		s.trim(o)
		s.trim(o)
		was.ManagedFields, was.Annotations = nil, map[string]string{"a": "b"}
		if diff := cmp.Diff(was, o); diff != "" {
			t.Error(diff)
		}
		routes = append(routes, o)
	}
	a, b := routes[0], routes[1]
	rule, other := a.Spec.Rules[0], b.Spec.Rules[0]
	if a.Spec.ParentRefs[0].Group != b.Spec.ParentRefs[0].Group || rule.BackendRefs[0].Kind != other.BackendRefs[0].Kind || rule.BackendRefs[0].Weight != other.BackendRefs[0].Weight ||
		rule.Matches[0].Path.Value != other.Matches[0].Path.Value {
		t.Error("what both say is there twice")
	}
	for what, room := range map[string]int{
		"parentRefs": cap(a.Spec.ParentRefs) - 2, "rules": cap(a.Spec.Rules) - 1, "matches": cap(rule.Matches) - 3, "backendRefs": cap(rule.BackendRefs) - 2,
		"filters": cap(rule.Filters) - 1, "parents": cap(a.Status.Parents) - 1, "conditions": cap(a.Status.Parents[0].Conditions) - 1,
	} {
		if room > 1 { // what the allocator gives anyway
			t.Errorf("room for %d more %s", room, what)
		}
	}
	for _, o := range []metav1.Object{new(gatewayv1.GRPCRoute), new(gatewayv1.TLSRoute), new(gatewayv1.TCPRoute), new(gatewayv1.UDPRoute), new(gatewayv1.Gateway)} {
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
		if trimManagedObject(o); o.GetManagedFields() != nil {
			t.Errorf("%T has fields of managers", o)
		}
	}
}
