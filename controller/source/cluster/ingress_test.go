package cluster

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestIngressesAreReadWhenAsked: Ingresses, their classes and the ports of Services are delivered where they are served, and else not asked for.
func TestIngressesAreReadWhenAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		a := newFakeAPI(t)
		s := serviceOf("ns", "s")
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
		a.put(s)
		a.put(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}})
		a.put(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web"}})
		a.put(&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
		_, sink := start(t, a, Config{Ingresses: asked, Namespace: "ns"})
		sink.wantSynced(t)
		if !asked {
			sink.wantObjects(t, "Service ns/s")
			continue
		}
		sink.wantObjects(t, "Ingress ns/web", "IngressClass mine", "Service ns/s")
		if o := sink.latest["Service ns/s"].Object.(*corev1.Service); len(o.Spec.Ports) != 1 || o.Spec.Ports[0].Port != 80 {
			t.Errorf("ports %v", o.Spec.Ports)
		}
	}
}

// TestRoutesAreOptionalBesideIngresses: a cluster without the Route API has Ingresses to serve; one with nothing else to serve is waited for.
func TestRoutesAreOptionalBesideIngresses(t *testing.T) {
	a := newFakeAPI(t)
	a.status["routes"] = http.StatusNotFound
	a.put(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}})
	a.put(routeOf("ns", "r"))
	f, sink := start(t, a, Config{Ingresses: true})
	sink.wantSynced(t)
	sink.wantObjects(t, "Ingress ns/web")
	if n := f.Problems(); n != 0 {
		t.Errorf("%d problems", n)
	}
	a.mu.Lock()
	delete(a.status, "routes")
	a.mu.Unlock()
	sink.wantObjects(t, "Ingress ns/web", "Route ns/r")
}
