package gatewayscale

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"turnout/test/cluster/await"
)

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

// resources are those of the kinds that the test makes.
var resources = map[string]schema.GroupVersionResource{
	"Gateway":       {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"},
	"GatewayClass":  {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gatewayclasses"},
	"HTTPRoute":     {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"},
	"Namespace":     {Version: "v1", Resource: "namespaces"},
	"Service":       {Version: "v1", Resource: "services"},
	"Pod":           {Version: "v1", Resource: "pods"},
	"EndpointSlice": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	"Deployment":    {Group: "apps", Version: "v1", Resource: "deployments"},
}

// create makes the object of a manifest.
func create(ctx context.Context, text string) error {
	o := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		return fmt.Errorf("%w in\n%s", err, text)
	}
	_, err := shared.objects.Resource(resources[o.GetKind()]).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
	return err
}

// mustCreate makes the objects of manifests.
func mustCreate(t testing.TB, manifests string) {
	t.Helper()
	for _, text := range strings.Split(manifests, "\n---\n") {
		check(t, create(t.Context(), text))
	}
}

func get(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	return shared.objects.Resource(resources[kind]).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// patch merges a patch into an object.
func patch(ctx context.Context, kind, namespace, name string, change map[string]any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = shared.objects.Resource(resources[kind]).Namespace(namespace).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

func remove(ctx context.Context, kind, namespace, name string) error {
	err := shared.objects.Resource(resources[kind]).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// aGateway is a Gateway of the class turnout whose plain listener takes routes of all namespaces.
func aGateway(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: %s, name: %s}
spec:
  gatewayClassName: turnout
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]`, namespace, name)
}

// aRoute is an HTTPRoute that leads a host at a Gateway of the namespace live to a Service.
func aRoute(namespace, name, gateway, service string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  parentRefs: [{name: %[3]s, namespace: live}]
  hostnames: ["%[2]s.scale.test"]
  rules: [{backendRefs: [{name: %[4]s, port: 8080}]}]`, namespace, name, gateway, service)
}

// to is a patch that leads a route to another Service.
func to(service string) map[string]any {
	return map[string]any{"spec": map[string]any{"rules": []any{map[string]any{"backendRefs": []any{map[string]any{"name": service, "port": 8080}}}}}}
}

// addressOf waits until a Gateway is programmed and returns its address.
func addressOf(t testing.TB, name string) (address string) {
	t.Helper()
	eventually(t, "Gateway "+name+" is programmed", func() error {
		g, err := get(t.Context(), "Gateway", "live", name)
		if err != nil {
			return err
		}
		if !isTrue(g, "Programmed") {
			return fmt.Errorf("%v", g.Object["status"])
		}
		list, _, _ := unstructured.NestedSlice(g.Object, "status", "addresses")
		address, _, _ = unstructured.NestedString(list[0].(map[string]any), "value")
		return nil
	})
	return address
}

// isTrue reports whether a condition of an object is.
func isTrue(o *unstructured.Unstructured, kind string) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["type"] == kind && m["status"] == "True" {
			return true
		}
	}
	return false
}

// attached is the number of routes of the listener of a Gateway, by its status.
func attached(g *unstructured.Unstructured) int {
	list, _, _ := unstructured.NestedSlice(g.Object, "status", "listeners")
	if len(list) == 0 {
		return -1
	}
	n, _, _ := unstructured.NestedInt64(list[0].(map[string]any), "attachedRoutes")
	return int(n)
}
