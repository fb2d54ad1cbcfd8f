package cluster

import (
	"net/http"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// TestOneGatewayIsRead: a pod of one Gateway reads that one, what routes are made of, and Secrets that it may read, without asking whether it may: it has no other
// permissions. One that it may not read yet is asked for again soon.
func TestOneGatewayIsRead(t *testing.T) {
	a := newFakeAPI(t)
	a.allowed = func(*authorizationv1.SubjectAccessReviewSpec) int { return http.StatusForbidden }
	a.status["routes"] = http.StatusForbidden
	for _, kind := range []string{"listenersets", "grpcroutes", "tlsroutes", "tcproutes", "udproutes", "referencegrants", "backendtlspolicies", "gatewayclasses"} {
		a.status[kind] = http.StatusNotFound
	}
	for _, at := range [][2]string{{"ns", "gw"}, {"ns", "other"}, {"far", "gw"}} {
		a.put(&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: at[0], Name: at[1]}})
	}
	a.put(&gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "far", Name: "r"}})
	a.put(routeOf("ns", "r"))
	a.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pair"}})
	f, sink := start(t, a, Config{GatewayAPI: true, Gateway: source.Key{Namespace: "ns", Name: "gw"}})
	sink.wantSynced(t)
	all := []string{"Gateway ns/gw", "HTTPRoute far/r"}
	for _, kind := range []string{"BackendTLSPolicy", "GRPCRoute", "GatewayClass", "ListenerSet", "ReferenceGrant", "TCPRoute", "TLSRoute", "UDPRoute"} {
		all = append(all, "UnknownKind "+kind)
	}
	sink.wantObjects(t, all...)
	a.set(func(a *fakeAPI) { a.status["secrets"] = http.StatusForbidden })
	f.Secrets().Watch(source.Key{Namespace: "ns", Name: "pair"})
	a.asked(t, 2, "list secrets")
	a.set(func(a *fakeAPI) { delete(a.status, "secrets") })
	sink.wantObjects(t, append(all, "Secret ns/pair")...)
	if n := a.count("list routes") + a.count("watch routes") + a.count("create subjectaccessreviews"); n != 0 {
		t.Errorf("%d requests that are not permitted", n)
	}
	if last := f.secrets.refuse.last; last > time.Minute {
		t.Errorf("a Secret is asked for after %v", last)
	}
}
