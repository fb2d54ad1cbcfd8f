package cluster

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestUnknownKindsOfTheGatewayAPI: a cluster whose release of the Gateway API lacks kinds is served without them, says which they are, and comes to know them.
func TestUnknownKindsOfTheGatewayAPI(t *testing.T) {
	a := newFakeAPI(t)
	gatewayKinds := []string{"gatewayclasses", "gateways", "listenersets", "httproutes", "grpcroutes", "tlsroutes", "udproutes", "referencegrants", "backendtlspolicies"}
	for _, plural := range append(gatewayKinds, "tcproutes", "routes") {
		a.status[plural] = http.StatusNotFound
	}
	a.put(&gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tcp"}})
	f, sink := start(t, a, Config{GatewayAPI: true})
	sink.wantSynced(t)
	all := []string{
		"UnknownKind GatewayClass", "UnknownKind Gateway", "UnknownKind ListenerSet", "UnknownKind HTTPRoute", "UnknownKind GRPCRoute", "UnknownKind TLSRoute",
		"UnknownKind UDPRoute", "UnknownKind ReferenceGrant", "UnknownKind BackendTLSPolicy",
	}
	sink.wantObjects(t, append(all, "UnknownKind TCPRoute")...)
	if n := f.Problems(); n != 0 {
		t.Errorf("%d problems", n)
	}
	a.set(func(a *fakeAPI) { delete(a.status, "tcproutes") })
	sink.wantObjects(t, append(all, "TCPRoute ns/tcp")...)
}
