package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/cluster/await"
	"turnout/test/kube/internal/pods"
)

// patience is how long eventually goes on trying.
const patience = 60 * time.Second

// eventually tries until try returns nil, which it must within the patience.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	await.Eventually(t, patience, what, try)
}

// must fails the test for an error.
func must[T any](t testing.TB) func(T, error) T { return await.Must[T](t) }

// namespace is a namespace of one test. What is in it is
// deleted after the test.
type namespace struct {
	testing.TB
	name string
}

// newNamespace makes a namespace called after the test.
func newNamespace(t testing.TB, suffix string, labels map[string]string) namespace {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	n := namespace{t, fmt.Sprintf("%.40s-%s", name, suffix)}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}}
	if _, err := shared.core.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(n.empty)
	return n
}

// empty deletes what the test has made.
func (n namespace) empty() {
	ctx, everything := context.Background(), metav1.ListOptions{}
	for what, deleteAll := range map[string]func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		"routes":       shared.routes.RouteV1().Routes(n.name).DeleteCollection,
		"slices":       shared.core.DiscoveryV1().EndpointSlices(n.name).DeleteCollection,
		"secrets":      shared.core.CoreV1().Secrets(n.name).DeleteCollection,
		"rolebindings": shared.core.RbacV1().RoleBindings(n.name).DeleteCollection,
		"roles":        shared.core.RbacV1().Roles(n.name).DeleteCollection,
	} {
		if err := deleteAll(ctx, metav1.DeleteOptions{}, everything); err != nil {
			n.Errorf("cannot delete the %s of namespace %s: %v", what, n.name, err)
		}
	}
	services := shared.core.CoreV1().Services(n.name)
	list, err := services.List(ctx, everything)
	for i := range list.Items {
		err = errors.Join(err, services.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}))
	}
	if err != nil {
		n.Errorf("cannot delete the services of namespace %s: %v", n.name, err)
	}
}

// service makes a service with the ports http and https, and an endpoint at each address.
func (n namespace) service(name string, addresses ...string) *corev1.Service {
	n.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromInt32(pods.HTTP)},
		{Name: "https", Port: 443, TargetPort: intstr.FromInt32(pods.HTTPS)},
	}}}
	service = must[*corev1.Service](n)(shared.core.CoreV1().Services(n.name).Create(n.Context(), service, metav1.CreateOptions{}))
	n.endpoints(name, addresses...)
	return service
}

// endpoints makes the endpoints of a service be these addresses, all ready.
func (n namespace) endpoints(service string, addresses ...string) {
	n.Helper()
	slice := newSlice(service, addresses...)
	slices := shared.core.DiscoveryV1().EndpointSlices(n.name)
	_, err := slices.Update(n.Context(), slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = slices.Create(n.Context(), slice, metav1.CreateOptions{})
	}
	if err != nil {
		n.Fatal(err)
	}
}

// newSlice is an EndpointSlice with ready endpoints.
func newSlice(service string, addresses ...string) *discoveryv1.EndpointSlice {
	ready := true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{},
		Ports:       []discoveryv1.EndpointPort{slicePort("http", pods.HTTP), slicePort("https", pods.HTTPS)},
	}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return slice
}

func slicePort(name string, port int32) discoveryv1.EndpointPort {
	protocol := corev1.ProtocolTCP
	return discoveryv1.EndpointPort{Name: &name, Port: &port, Protocol: &protocol}
}

// newRoute is a route for a host to port http of the service web.
func newRoute(name, host string) *routev1.Route {
	return &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: routev1.RouteSpec{
			Host: host, To: routev1.RouteTargetReference{Kind: "Service", Name: "web"},
			Port: &routev1.RoutePort{TargetPort: intstr.FromString("http")},
		},
	}
}

// create makes a route in the namespace.
func (n namespace) create(route *routev1.Route) *routev1.Route {
	n.Helper()
	return must[*routev1.Route](n)(shared.routes.RouteV1().Routes(n.name).Create(n.Context(), route, metav1.CreateOptions{}))
}

// older waits until what is made from now on is younger than a route: the API keeps
// whole seconds.
func (n namespace) older(route *routev1.Route) {
	n.Helper()
	<-time.After(time.Until(route.CreationTimestamp.Add(time.Second)))
}

// get returns a route as it is now.
func (n namespace) get(name string) *routev1.Route {
	n.Helper()
	return must[*routev1.Route](n)(shared.routes.RouteV1().Routes(n.name).Get(n.Context(), name, metav1.GetOptions{}))
}

// change changes a route, whatever else changes it too.
func (n namespace) change(name string, change func(*routev1.Route)) *routev1.Route {
	n.Helper()
	var changed *routev1.Route
	eventually(n, "change of route "+name, func() error {
		route := n.get(name)
		change(route)
		var err error
		changed, err = shared.routes.RouteV1().Routes(n.name).Update(n.Context(), route, metav1.UpdateOptions{})
		return err
	})
	return changed
}

// remove deletes a route.
func (n namespace) remove(name string) {
	n.Helper()
	if err := shared.routes.RouteV1().Routes(n.name).Delete(n.Context(), name, metav1.DeleteOptions{}); err != nil {
		n.Fatal(err)
	}
}
