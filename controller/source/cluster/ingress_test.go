package cluster

import (
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
