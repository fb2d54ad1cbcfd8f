package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestTrim(t *testing.T) {
	created := metav1.NewTime(time.Unix(1000, 0))
	yes, no, text, number := true, false, "text", int32(8080)
	full := func(annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "5", CreationTimestamp: created, GenerateName: "g", Generation: 3,
			Labels: map[string]string{"a": "b"}, Annotations: annotations, Finalizers: []string{"f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		}
	}
	kept := func(annotations map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "5", CreationTimestamp: created, Annotations: annotations}
	}
	written := func(annotations map[string]string) metav1.ObjectMeta {
		m := kept(annotations)
		m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		return m
	}
	mixed := map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "long", "example.com/x": "y", "notopenshift.io/x": "y", "plain": "y",
		"haproxy.router.openshift.io/timeout": "5s", "router.openshift.io/cookie_name": "c", "openshift.io/host.generated": "true",
		"haproxy.router.openshift.io/unknown": "y", "turnout.router/health-check-path": "/",
	}
	ours := map[string]string{
		"haproxy.router.openshift.io/unknown": "",
		"haproxy.router.openshift.io/timeout": "5s", "router.openshift.io/cookie_name": "c", "turnout.router/health-check-path": "/",
	}
	idled := map[string]string{"idling.alpha.openshift.io/idled-at": "2026"}
	ports := []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}
	spec := routev1.RouteSpec{Host: "h", TLS: &routev1.TLSConfig{Key: "k"}}
	status := routev1.RouteStatus{Ingress: []routev1.RouteIngress{{RouterName: "r"}}}
	kind := metav1.TypeMeta{Kind: "Route", APIVersion: "route.openshift.io/v1"}
	slice := full(nil)
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "s", "more": "x"}
	keptSlice := kept(nil)
	keptSlice.Labels = map[string]string{discoveryv1.LabelServiceName: "s"}
	withClass := map[string]string{"kubernetes.io/ingress.class": "c", "nginx.ingress.kubernetes.io/auth-url": "x", "nginx.ingress.kubernetes.io/other": "x", "haproxy.router.openshift.io/timeout": "5s", "plain": "y"}
	managed := func(m metav1.ObjectMeta) metav1.ObjectMeta {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: "other", Subresource: "status"}, metav1.ManagedFieldsEntry{Manager: "turnout-ingress", Subresource: "status", Operation: "Update"})
		return m
	}
	ingressKept := kept(map[string]string{"kubernetes.io/ingress.class": "c", "nginx.ingress.kubernetes.io/auth-url": "", "haproxy.router.openshift.io/timeout": "5s"})
	ingressKept.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "turnout-ingress", Subresource: "status"}, {Manager: "m"}}
	ingressSpec := networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "h"}}}
	ingressStatus := networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "10.0.0.1"}}}}
	nodePorts := []corev1.ServicePort{{Port: 80, NodePort: 30080}}
	balanced := corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.2"}}}
	byDefault := map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true", "plain": "y"}
	for name, c := range map[string]struct {
		in, want runtime.Object
		ports    bool
	}{
		"route":                  {&routev1.Route{ObjectMeta: full(mixed), Spec: spec, Status: status}, &routev1.Route{TypeMeta: kind, ObjectMeta: written(ours), Spec: spec, Status: status}, false},
		"route, ours only":       {&routev1.Route{ObjectMeta: full(ours)}, &routev1.Route{TypeMeta: kind, ObjectMeta: written(ours)}, false},
		"route, no annotations":  {&routev1.Route{ObjectMeta: full(nil)}, &routev1.Route{TypeMeta: kind, ObjectMeta: written(nil)}, false},
		"route, none that count": {&routev1.Route{ObjectMeta: full(map[string]string{"a": "b"})}, &routev1.Route{TypeMeta: kind, ObjectMeta: written(nil)}, false},
		"idled service": {
			&corev1.Service{ObjectMeta: full(idled), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: ports, Selector: map[string]string{"a": "b"}}},
			&corev1.Service{ObjectMeta: kept(idled), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: ports}}, false,
		},
		"service": {
			&corev1.Service{ObjectMeta: full(ours), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: ports}}, &corev1.Service{ObjectMeta: kept(nil)}, false,
		},
		"service with a cluster IP": {
			&corev1.Service{ObjectMeta: full(ours), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1", "fd00::1"}, Ports: ports}},
			&corev1.Service{ObjectMeta: kept(nil), Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.0.0.1", "fd00::1"}}}, false,
		},
		"headless service": {
			&corev1.Service{ObjectMeta: full(ours), Spec: corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}, Ports: ports}}, &corev1.Service{ObjectMeta: kept(nil)}, false,
		},
		"service with other addresses": {
			&corev1.Service{
				ObjectMeta: full(ours), Spec: corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}, Ports: nodePorts},
				Status: corev1.ServiceStatus{LoadBalancer: balanced, Conditions: []metav1.Condition{{Type: "c"}}},
			},
			&corev1.Service{ObjectMeta: kept(nil), Spec: corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}, Ports: nodePorts}, Status: corev1.ServiceStatus{LoadBalancer: balanced}}, false,
		},
		"service with its ports": {
			&corev1.Service{ObjectMeta: full(ours), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: ports, Type: "NodePort"}},
			&corev1.Service{ObjectMeta: kept(nil), Spec: corev1.ServiceSpec{Ports: ports, Type: "NodePort"}}, true,
		},
		"ingress": {
			&networkingv1.Ingress{ObjectMeta: managed(full(withClass)), Spec: ingressSpec, Status: ingressStatus},
			&networkingv1.Ingress{ObjectMeta: ingressKept, Spec: ingressSpec, Status: ingressStatus}, true,
		},
		"ingress class": {
			&networkingv1.IngressClass{ObjectMeta: full(byDefault), Spec: networkingv1.IngressClassSpec{Controller: "c.test/x", Parameters: &networkingv1.IngressClassParametersReference{}}},
			&networkingv1.IngressClass{ObjectMeta: kept(map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}), Spec: networkingv1.IngressClassSpec{Controller: "c.test/x"}}, true,
		},
		"slice": {
			&discoveryv1.EndpointSlice{
				ObjectMeta: slice, AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: &text, Port: &number}},
				Endpoints: []discoveryv1.Endpoint{
					{
						Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
						Hostname: &text, NodeName: &text, Zone: &text, Hints: &discoveryv1.EndpointHints{}, DeprecatedTopology: map[string]string{"a": "b"},
						TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "ns", UID: "u", ResourceVersion: "3"},
					},
					{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &no, Terminating: &yes}, TargetRef: &corev1.ObjectReference{Kind: "Node"}},
				},
			},
			&discoveryv1.EndpointSlice{
				ObjectMeta: keptSlice, AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: &text, Port: &number}},
				Endpoints: []discoveryv1.Endpoint{
					{Addresses: []string{"10.0.0.1"}, Hostname: &text, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}},
					{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: &no, Terminating: &yes}},
				},
			}, false,
		},
		"namespace": {
			&corev1.Namespace{ObjectMeta: full(idled), Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"f"}}}, &corev1.Namespace{ObjectMeta: kept(nil)}, false,
		},
		"secret": {
			&corev1.Secret{ObjectMeta: full(mixed), Immutable: &yes, Type: "t", Data: map[string][]byte{"tls.crt": []byte("c"), "x": nil}},
			&corev1.Secret{ObjectMeta: kept(nil), Type: "t", Data: map[string][]byte{"tls.crt": []byte("c")}}, false,
		},
	} {
		trim(c.in, c.ports)
		if diff := cmp.Diff(c.want, c.in); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		trim(c.in, c.ports)
		if diff := cmp.Diff(c.want, c.in); diff != "" {
			t.Errorf("%s, twice (-want +got):\n%s", name, diff)
		}
	}
}

// TestServicesThatAreNotIdled checks that Services without an address are reported as one and the
// same object: only their existence matters.
func TestServicesThatAreNotIdled(t *testing.T) {
	a := newFakeAPI(t)
	a.put(serviceOf("ns", "a"))
	idled := serviceOf("ns", "b")
	idled.Annotations = map[string]string{idledAt: "2026"}
	a.put(idled)
	_, sink := start(t, a, Config{})
	sink.wantSynced(t)
	a.put(serviceOf("ns", "c"))
	sink.wantObjects(t, "Service ns/a", "Service ns/b", "Service ns/c")
	same := func(a, b string) bool {
		return sink.latest["Service ns/"+a].Object == sink.latest["Service ns/"+b].Object
	}
	if !same("a", "c") || same("a", "b") {
		t.Errorf("each has an object, or the idled one has none: %v", sink.latest)
	}
	a.put(serviceOf("ns", "b"))
	sink.until(t, "awake", func() bool { return same("a", "b") })
	idled.Name = "a"
	a.put(idled)
	sink.until(t, "idled", func() bool { return !same("a", "b") })
	a.remove(serviceOf("ns", "c"))
	sink.wantObjects(t, "Service ns/a", "Service ns/b")
}
