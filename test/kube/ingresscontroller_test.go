package kube

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// installIngressController makes the API of IngressControllers and the permissions to follow the one called default, as they are shipped.
func installIngressController(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	module := string(must[[]byte](t)(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()))
	for _, name := range []string{"openshift-ingress-operator", "openshift-config", "openshift-ingress"} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := shared.core.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		filepath.Join(strings.TrimSpace(module), "operator", "v1", "zz_generated.crd-manifests", "0000_50_ingress_00_ingresscontrollers.crd.yaml"),
		filepath.Join("..", "..", "deploy", "manifests", "optional", "ingress-controller.yaml"),
	} {
		if err := shared.Apply(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	clients := must[*dynamic.DynamicClient](t)(dynamic.NewForConfig(shared.Admin))
	return clients.Resource(schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "ingresscontrollers"}).Namespace("openshift-ingress-operator")
}

// TestIngressController: a router under the shipped permissions follows an IngressController of the real API: wildcard policies change at run
// time and back, in the traffic and in the status of routes, and the condition says what has no effect, besides those of others.
func TestIngressController(t *testing.T) {
	api := installIngressController(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.openshift.io/v1", "kind": "IngressController", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{"routeAdmission": map[string]any{"wildcardPolicy": "WildcardsAllowed"}},
	}}
	eventually(t, "an IngressController", func() error { // once the API is served
		_, err := api.Create(t.Context(), object, metav1.CreateOptions{})
		return err
	})
	change := func(subresource string, change func(*unstructured.Unstructured)) {
		t.Helper()
		eventually(t, "a change", func() error {
			o, err := api.Get(t.Context(), "default", metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(o)
			if subresource != "" {
				_, err = api.UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
				return err
			}
			_, err = api.Update(t.Context(), o, metav1.UpdateOptions{})
			return err
		})
	}
	set := func(value any, fields ...string) {
		t.Helper()
		change("", func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, value, fields...) })
	}
	change("status", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}}, "status", "conditions")
	})

	r := newRouter(t, "default", "--ingress-controller", "openshift-ingress-operator/default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("none", "none.policy.test"))
	n.create(wildcardRoute("all", "www.policy.test"))
	n.says("all", "default", "www.policy.test True")
	serves(t, r, "http://any.policy.test/", at(pod1))
	set("WildcardsDisallowed", "spec", "routeAdmission", "wildcardPolicy")
	n.says("all", "default", "www.policy.test False RouteNotAdmitted: wildcard routes are not allowed")
	answers(t, r, "http://any.policy.test/", 503)
	serves(t, r, "http://none.policy.test/", at(pod1))
	set("WildcardsAllowed", "spec", "routeAdmission", "wildcardPolicy")
	n.says("all", "default", "www.policy.test True")
	serves(t, r, "http://any.policy.test/", at(pod1))

	says := func(want string) {
		t.Helper()
		eventually(t, "the condition", func() error {
			o, err := api.Get(t.Context(), "default", metav1.GetOptions{})
			if err != nil {
				return err
			}
			var got []string
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, c := range conditions {
				of := c.(map[string]any)
				got = append(got, fmt.Sprint(of["type"], " ", of["status"], " ", of["message"]))
			}
			if text := strings.Join(got, "; "); !strings.HasPrefix(text, "Available True") || !strings.Contains(text, want) {
				return errors.New(text)
			}
			return nil
		})
	}
	set(int64(3), "spec", "tuningOptions", "threadCount")
	says("TurnoutFieldsHonored False spec.tuningOptions.threadCount: ")
	change("", func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "tuningOptions") })
	says("TurnoutFieldsHonored True")
}
