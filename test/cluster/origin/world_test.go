package origin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"turnout/test/cluster/await"
)

// patience is how long eventually goes on trying: pods start meanwhile, many at a time.
const patience = 90 * time.Second

// eventually tries until try returns nil, which it must within the patience.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	await.Eventually(t, patience, what, try)
}

// must fails the test for an error.
func must[T any](t testing.TB) func(T, error) T { return await.Must[T](t) }

// it runs a case of openshift/origin by the name it has there.
func it(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		body(t)
	})
}

// namespace is the namespace of a case, or one of several.
type namespace struct {
	testing.TB
	name string
}

// newNamespace makes a namespace named after the case.
func newNamespace(t testing.TB, labels map[string]string) namespace {
	t.Helper()
	sum := sha256.Sum256([]byte(t.Name() + time.Now().String()))
	name := "case-" + hex.EncodeToString(sum[:5])
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: labels, Annotations: map[string]string{"case": t.Name()},
	}}
	must[*corev1.Namespace](t)(shared.core.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}))
	n := namespace{t, name}
	t.Cleanup(n.empty)
	return n
}

// empty ends the pods of the namespace, as nodes have room for so many.
func (n namespace) empty() {
	ctx, now, everything := context.Background(), int64(0), metav1.ListOptions{}
	options := metav1.DeleteOptions{GracePeriodSeconds: &now}
	if err := shared.core.AppsV1().Deployments(n.name).DeleteCollection(ctx, options, everything); err != nil {
		n.Errorf("cannot delete deployments: %v", err)
	}
	if err := shared.core.AppsV1().ReplicaSets(n.name).DeleteCollection(ctx, options, everything); err != nil {
		n.Errorf("cannot delete replica sets: %v", err)
	}
	if err := shared.core.CoreV1().Pods(n.name).DeleteCollection(ctx, options, everything); err != nil {
		n.Errorf("cannot delete pods: %v", err)
	}
}

// host is a name below the namespace's domain, as the API server of OpenShift would choose.
func (n namespace) host(name string) string { return name + "-" + n.name + ".apps.test" }

// pod is what a pod of the image echo is made of.
type pod struct {
	name   string
	labels map[string]string // by default app: NAME
	args   []string          // of the program; by default serve
	tls    string            // Secret of its certificate, mounted at /etc/serving-cert
}

// object is the pod's manifest.
func (p pod) object() *corev1.Pod {
	labels := p.labels
	if labels == nil {
		labels = map[string]string{"app": p.name}
	}
	args := p.args
	if args == nil {
		args = []string{"serve"}
	}
	container := corev1.Container{
		Name: "echo", Image: echoImage, Args: args,
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
	}
	if args[0] == "serve" {
		container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "https", ContainerPort: 8443}}
		container.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
			PeriodSeconds: 1,
		}
	}
	grace := int64(1)
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: labels},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{container},
		},
	}
	if p.tls != "" {
		object.Spec.Volumes = []corev1.Volume{{Name: "cert", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: p.tls}}}}
		c := &object.Spec.Containers[0]
		c.Args = append(c.Args, "-tls", "/etc/serving-cert")
		c.VolumeMounts = []corev1.VolumeMount{{Name: "cert", MountPath: "/etc/serving-cert"}}
	}
	return object
}

// start makes a pod.
func (n namespace) start(p pod) {
	n.Helper()
	must[*corev1.Pod](n)(shared.core.CoreV1().Pods(n.name).Create(n.Context(), p.object(), metav1.CreateOptions{}))
}

// running waits until a pod is ready and returns it.
func (n namespace) running(name string) *corev1.Pod {
	n.Helper()
	var found *corev1.Pod
	eventually(n, "pod "+name, func() error {
		p, err := shared.core.CoreV1().Pods(n.name).Get(n.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found = p
		return isReady(p)
	})
	return found
}

// isReady says why a pod is not.
func isReady(p *corev1.Pod) error {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	var why strings.Builder
	for _, c := range p.Status.ContainerStatuses {
		fmt.Fprintf(&why, " %s: %+v", c.Name, c.State)
	}
	return fmt.Errorf("pod %s is not ready: %s%s", p.Name, p.Status.Phase, why.String())
}

// service makes a service of the pods with a label app.
func (n namespace) service(name, app string) *corev1.Service {
	n.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": app}, Ports: echoPorts()},
	}
	return must[*corev1.Service](n)(shared.core.CoreV1().Services(n.name).Create(n.Context(), service, metav1.CreateOptions{}))
}

func echoPorts() []corev1.ServicePort {
	return []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)},
		{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443)},
	}
}

// echo makes a pod and a service of that name.
func (n namespace) echo(name string) {
	n.Helper()
	n.start(pod{name: name})
	n.service(name, name)
}

// detached makes a service without selector, whose endpoints are those of slice.
func (n namespace) detached(name string, addresses ...string) {
	n.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: echoPorts()}}
	must[*corev1.Service](n)(shared.core.CoreV1().Services(n.name).Create(n.Context(), service, metav1.CreateOptions{}))
	slice := newSlice(name, addresses...)
	must[*discoveryv1.EndpointSlice](n)(shared.core.DiscoveryV1().EndpointSlices(n.name).Create(n.Context(), slice, metav1.CreateOptions{}))
}

// endpoints replaces the endpoints of a detached service.
func (n namespace) endpoints(name string, addresses ...string) {
	n.Helper()
	slice := newSlice(name, addresses...)
	must[*discoveryv1.EndpointSlice](n)(shared.core.DiscoveryV1().EndpointSlices(n.name).Update(n.Context(), slice, metav1.UpdateOptions{}))
}

func newSlice(service string, addresses ...string) *discoveryv1.EndpointSlice {
	name, port, protocol, ready := "http", int32(8080), corev1.ProtocolTCP, true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
		Endpoints: []discoveryv1.Endpoint{},
	}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return slice
}

// newRoute is a route for a router to port http of a service of its name.
func (n namespace) newRoute(r *router, name string) *routev1.Route {
	return &routev1.Route{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{shardLabel: r.name}},
		Spec: routev1.RouteSpec{
			Host: n.host(name), To: routev1.RouteTargetReference{Kind: "Service", Name: name},
			Port: &routev1.RoutePort{TargetPort: intstr.FromString("http")},
		},
	}
}

// edge makes a route one whose TLS ends in the router.
func edge(route *routev1.Route, insecure routev1.InsecureEdgeTerminationPolicyType) *routev1.Route {
	route.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationEdge, InsecureEdgeTerminationPolicy: insecure}
	return route
}

// create makes a route.
func (n namespace) create(route *routev1.Route) *routev1.Route {
	n.Helper()
	return must[*routev1.Route](n)(shared.routes.RouteV1().Routes(n.name).Create(n.Context(), route, metav1.CreateOptions{}))
}

// get returns a route as it is now.
func (n namespace) get(name string) *routev1.Route {
	n.Helper()
	return must[*routev1.Route](n)(shared.routes.RouteV1().Routes(n.name).Get(n.Context(), name, metav1.GetOptions{}))
}

// change changes a route, and tries again if another client changed it meanwhile.
func (n namespace) change(name string, change func(*routev1.Route)) {
	n.Helper()
	eventually(n, "change of route "+name, func() error {
		route := n.get(name)
		change(route)
		_, err := shared.routes.RouteV1().Routes(n.name).Update(n.Context(), route, metav1.UpdateOptions{})
		return err
	})
}

// verdict is what a router says of a route: "True", "False REASON", or "nothing".
func verdict(route *routev1.Route, router string) string {
	for i := range route.Status.Ingress {
		if e := &route.Status.Ingress[i]; e.RouterName == router {
			for _, c := range e.Conditions {
				if c.Type == routev1.RouteAdmitted {
					return strings.TrimSpace(string(c.Status) + " " + c.Reason)
				}
			}
			return "no condition"
		}
	}
	return "nothing"
}

// says waits until a router says that of a route.
func (n namespace) says(r *router, route, want string) {
	n.Helper()
	eventually(n, "status of "+route, func() error {
		if got := verdict(n.get(route), r.name); got != want {
			return fmt.Errorf("%s says %q, want %q", r.name, got, want)
		}
		return nil
	})
}

// served makes an echo pod, a service and a route of that name, and waits until the router
// serves it. It returns the host.
func (n namespace) served(r *router, name string, changes ...func(*routev1.Route)) string {
	n.Helper()
	n.echo(name)
	route := n.newRoute(r, name)
	for _, change := range changes {
		change(route)
	}
	n.create(route)
	n.answers(r, schemeOf(route)+"://"+route.Spec.Host+"/", 200)
	return route.Spec.Host
}

// schemeOf is the scheme by which pods of a route are reached.
func schemeOf(route *routev1.Route) string {
	if route.Spec.TLS == nil {
		return "http"
	}
	return "https"
}

// logs is what a container of a pod has written.
func logs(ctx context.Context, namespace, pod, container string) (string, error) {
	text, err := shared.core.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(ctx)
	return string(text), err
}
