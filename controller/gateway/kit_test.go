package gateway

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"turnout/controller/endpoints"
	"turnout/controller/source"
	"turnout/internal/target"
	"turnout/internal/testkit/testcert"
)

// ours is the name of the controller in tests, and of its class.
const (
	ours      = "turnout.router/gateway"
	namespace = "infra"
)

// world is objects, and the judge of them.
type world struct {
	t   testing.TB
	o   Objects
	j   *Judge
	age int // objects that were made; each is a second younger than the one before
}

// newWorld has a class of ours, namespaces, and Services "a", "b", "c" with ports 80 and pods in infra and in web.
func newWorld(t testing.TB) *world {
	w := &world{t: t, j: New(Config{Controller: ours, Targets: target.NewPolicy(false, nil)})}
	w.add(`{kind: GatewayClass, metadata: {name: turnout}, spec: {controllerName: turnout.router/gateway}}`)
	for _, name := range []string{namespace, "web", "other"} {
		w.o.Namespaces.Set(source.Key{Name: name}, labels.Set{"team": name})
	}
	for _, ns := range []string{namespace, "web"} {
		for i, name := range []string{"a", "b", "c"} {
			w.service(ns, name, "{name: http, port: 80, targetPort: 8080}", fmt.Sprintf("10.0.%d.%d", len(ns), i+1))
		}
	}
	return w
}

// service adds a Service with one port, and a pod at each address; ports of pods are 8080.
func (w *world) service(ns, name, port string, addresses ...string) {
	w.t.Helper()
	var p corev1.ServicePort
	if err := yaml.UnmarshalStrict([]byte(port), &p); err != nil {
		w.t.Fatal(err)
	}
	number := int32(8080)
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "-1"}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: &p.Name, Port: &number, Protocol: &p.Protocol}},
	}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	packed, err := endpoints.Pack(&slice)
	if err != nil {
		w.t.Fatal(err)
	}
	object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{p}}}
	w.o.Services.Set(source.Key{Namespace: ns, Name: name}, &Service{Object: object, Slices: []endpoints.Slice{packed}})
}

// add adds or replaces the objects of manifests. Those without a namespace are in infra. Gateways get an address.
func (w *world) add(manifests string) *world {
	w.t.Helper()
	for _, text := range strings.Split(manifests, "\n---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var head struct {
			Kind     string
			Metadata metav1.ObjectMeta
		}
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			w.t.Fatalf("%v in\n%s", err, text)
		}
		w.addObject(head.Kind, text)
	}
	return w
}

// addObject adds an object of a kind.
func (w *world) addObject(kind, text string) {
	w.t.Helper()
	switch kind {
	case kindClass:
		put(w, &w.o.Classes, text, &gatewayv1.GatewayClass{})
	case kindGateway:
		put(w, &w.o.Gateways, text, &gatewayv1.Gateway{})
	case kindListenerSet:
		put(w, &w.o.ListenerSets, text, &gatewayv1.ListenerSet{})
	case kindHTTPRoute:
		put(w, &w.o.HTTPRoutes, text, &gatewayv1.HTTPRoute{})
	case kindGRPCRoute:
		put(w, &w.o.GRPCRoutes, text, &gatewayv1.GRPCRoute{})
	case kindTLSRoute:
		put(w, &w.o.TLSRoutes, text, &gatewayv1.TLSRoute{})
	case kindTCPRoute:
		put(w, &w.o.TCPRoutes, text, &gatewayv1.TCPRoute{})
	case kindUDPRoute:
		put(w, &w.o.UDPRoutes, text, &gatewayv1.UDPRoute{})
	case "ReferenceGrant":
		put(w, &w.o.Grants, text, &gatewayv1.ReferenceGrant{})
	case kindPolicy:
		put(w, &w.o.Policies, text, &gatewayv1.BackendTLSPolicy{})
	case "Secret":
		put(w, &w.o.Secrets, text, &corev1.Secret{})
	case "ConfigMap":
		put(w, &w.o.ConfigMaps, text, &corev1.ConfigMap{})
	case "Namespace":
		var n corev1.Namespace
		w.decode(text, &n)
		w.o.Namespaces.Set(source.Key{Name: n.Name}, n.Labels)
	case "Service":
		var s corev1.Service
		w.decode(text, &s)
		w.o.Services.Set(source.Key{Namespace: s.Namespace, Name: s.Name}, &Service{Object: &s})
	}
}

func (w *world) decode(text string, into any) {
	w.t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		w.t.Fatalf("%v in\n%s", err, text)
	}
}

// put decodes an object into a table, as the API server would have made it.
func put[T metav1.Object](w *world, table *Table[T], text string, object T) {
	w.t.Helper()
	w.decode(text, object)
	if _, class := any(object).(*gatewayv1.GatewayClass); !class && object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	key := source.Key{Namespace: object.GetNamespace(), Name: object.GetName()}
	if created := object.GetCreationTimestamp(); created.IsZero() {
		w.age++
		object.SetCreationTimestamp(metav1.Time{Time: time.Unix(1e9+int64(w.age), 0)})
	}
	object.SetUID(types.UID("uid-of-" + key.Name))
	if object.GetGeneration() == 0 {
		object.SetGeneration(1)
	}
	table.Set(key, object)
	if g, ok := any(object).(*gatewayv1.Gateway); ok && w.o.Assigned.Get(key) == nil && len(g.Spec.Addresses) == 0 {
		w.assign(key.Namespace, key.Name)
	}
}

// assign gives a Gateway an address.
func (w *world) assign(ns, name string) {
	kind := gatewayv1.IPAddressType
	w.o.Assigned.Set(source.Key{Namespace: ns, Name: name}, &Assigned{Addresses: []gatewayv1.GatewayStatusAddress{{Type: &kind, Value: "192.0.2.1"}}})
}

// certificate adds a Secret with a certificate for names.
func (w *world) certificate(ns, name string, names ...string) {
	w.t.Helper()
	pair := testcert.Sign(w.t, &x509.Certificate{DNSNames: names}, nil)
	w.o.Secrets.Set(source.Key{Namespace: ns, Name: name}, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte(pair.PEM()), corev1.TLSPrivateKeyKey: []byte(pair.KeyPEM(w.t))},
	})
}

// authority adds a ConfigMap with an authority.
func (w *world) authority(ns, name string) {
	w.t.Helper()
	form := &x509.Certificate{}
	testcert.Authority(form)
	pair := testcert.Sign(w.t, form, nil)
	w.o.ConfigMaps.Set(source.Key{Namespace: ns, Name: name}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{caKey: pair.PEM()}})
}

// judge judges.
func (w *world) judge() *Result { return w.j.Judge(&w.o) }

// say writes a condition as "Status Reason", "" if there is none.
func say[T ~string](list []metav1.Condition, kind T) string {
	for _, c := range list {
		if c.Type == string(kind) {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// sayAll writes conditions as "Type=Status Reason", in their order.
func sayAll(list []metav1.Condition) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	return strings.Join(out, ", ")
}
