package size

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/cluster/await"
)

// What clients ask for: routes of namespace live, to either of two services with pods on each node.
const (
	live      = "live"
	liveCount = 20
	podsEach  = 9
)

// many is the namespace of the routes that are only there.
const many = "many"

// patience is how long anything may take on a machine with more to do.
const patience = 4 * time.Minute

// eventually tries until try returns nil, which it must within the patience.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	await.Eventually(t, patience, what, try)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func inNamespace(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}
}

// fill makes everything but routers.
func fill(t *testing.T) {
	for _, name := range []string{live, many} {
		_, err := shared.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		check(t, err)
	}
	for _, name := range []string{"a", "b"} {
		makePods(t, name)
	}
	for i := range liveCount {
		makeRoute(t, live, fmt.Sprintf("live-%d", i), "a")
	}
	begin := time.Now()
	await.InParallel(t, 0, *routes, func(ctx context.Context, i int) error { return makeOne(ctx, fmt.Sprintf("r%d", i), i) })
	t.Logf("%d routes with a service and three endpoints each were made in %s", *routes, time.Since(begin).Round(time.Second))
	for _, name := range []string{"a", "b"} {
		eventually(t, "pods of "+name, func() error {
			d, err := shared.core.AppsV1().Deployments(live).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && d.Status.ReadyReplicas < podsEach {
				err = fmt.Errorf("%d of %d are ready", d.Status.ReadyReplicas, podsEach)
			}
			return err
		})
	}
}

// makePods makes a service and its pods, a third of them on each node.
func makePods(t *testing.T, name string) {
	replicas := int32(podsEach)
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{ObjectMeta: inNamespace(live, name), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "echo", Image: "echo", Args: []string{"serve"},
				Env:            []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
			}},
		}},
	}}
	_, err := shared.core.AppsV1().Deployments(live).Create(t.Context(), deployment, metav1.CreateOptions{})
	check(t, err)
	service := &corev1.Service{ObjectMeta: inNamespace(live, name), Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
	}}
	_, err = shared.core.CoreV1().Services(live).Create(t.Context(), service, metav1.CreateOptions{})
	check(t, err)
}

func makeRoute(t *testing.T, namespace, name, service string) {
	_, err := shared.routes.RouteV1().Routes(namespace).Create(t.Context(), aRoute(namespace, name, service), metav1.CreateOptions{})
	check(t, err)
}

func aRoute(namespace, name, service string) *routev1.Route {
	return &routev1.Route{ObjectMeta: inNamespace(namespace, name), Spec: routev1.RouteSpec{
		Host: name + ".size.test", To: routev1.RouteTargetReference{Kind: "Service", Name: service},
	}}
}

// makeOne makes a route with a service of its own; every second one has TLS. Its endpoints are addresses at which nobody listens.
func makeOne(ctx context.Context, name string, i int) error {
	service := &corev1.Service{ObjectMeta: inNamespace(many, name), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
	}}
	_, made := shared.core.CoreV1().Services(many).Create(ctx, service, metav1.CreateOptions{})
	_, sliced := shared.core.DiscoveryV1().EndpointSlices(many).Create(ctx, aSlice(name, i), metav1.CreateOptions{})
	route := aRoute(many, name, name)
	if i%2 == 1 {
		route.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: routev1.InsecureEdgeTerminationPolicyRedirect}
	}
	_, routed := shared.routes.RouteV1().Routes(many).Create(ctx, route, metav1.CreateOptions{})
	return errors.Join(made, sliced, routed)
}

// aSlice holds the endpoints of service number i, of a network that documentation may use (RFC 2544).
func aSlice(name string, i int) *discoveryv1.EndpointSlice {
	port, portName, ready, node := int32(8080), "http", true, nodes[i%len(nodes)]
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: inNamespace(many, name), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	for k := range 3 {
		n := 3*i + k
		address := netip.AddrFrom4([4]byte{198, byte(18 + n>>16), byte(n >> 8), byte(n)})
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address.String()}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: many, Name: fmt.Sprintf("%s-5d8c9f7b6d-%05d", name, k), UID: "0a1b2c3d-0000-4000-8000-000000000000"},
		})
	}
	return slice
}
