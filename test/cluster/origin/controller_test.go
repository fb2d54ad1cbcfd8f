package origin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"turnout/test/cluster"
)

// The namespaces of the operator: of IngressControllers, and of ConfigMaps that they name.
const (
	operatorNamespace = "openshift-ingress-operator"
	configNamespace   = "openshift-config"
)

// ingressControllers is how the API server calls them.
var ingressControllers = schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "ingresscontrollers"}

// controlled are the settings of a router that reads an IngressController with this spec, as
// YAML. The object has the router's name and selects the routes of its shard.
func controlled(spec string, annotations ...string) settings {
	s := settings{Controller: true, Spec: spec, Annotations: map[string]string{}}
	for i := 0; i < len(annotations); i += 2 {
		s.Annotations["ingress.operator.openshift.io/"+annotations[i]] = annotations[i+1]
	}
	return s
}

// object is the IngressController of a router.
func (r *router) object(s settings) (*unstructured.Unstructured, error) {
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(s.Spec), &spec); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", s.Spec, err)
	}
	spec["domain"] = r.name + ".test"
	if spec["routeSelector"] == nil && spec["namespaceSelector"] == nil {
		spec["routeSelector"] = map[string]any{"matchLabels": map[string]any{shardLabel: r.name}}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.openshift.io/v1", "kind": "IngressController", "spec": spec}}
	o.SetName(r.name)
	o.SetAnnotations(s.Annotations)
	return o, nil
}

// put makes the IngressController of a router, or changes it.
func (r *router) put(ctx context.Context, s settings) error {
	o, err := r.object(s)
	if err != nil {
		return err
	}
	client := shared.objects.Resource(ingressControllers).Namespace(operatorNamespace)
	if before, err := client.Get(ctx, r.name, metav1.GetOptions{}); err == nil {
		o.SetResourceVersion(before.GetResourceVersion())
		_, err = client.Update(ctx, o, metav1.UpdateOptions{})
		return err
	}
	_, err = client.Create(ctx, o, metav1.CreateOptions{})
	return err
}

// change gives the router's IngressController another spec, which the router applies while it
// runs. The condition may be written at the same time.
func (r *router) change(t testing.TB, s settings) {
	t.Helper()
	eventually(t, "change of the IngressController", func() error { return r.put(t.Context(), s) })
}

// refuses says whether the API server refuses a spec of the router's IngressController.
func (r *router) refuses(t testing.TB, spec string) {
	t.Helper()
	eventually(t, "refusal of "+spec, func() error {
		err := r.put(t.Context(), controlled(spec))
		if err == nil || !strings.Contains(err.Error(), "is invalid") {
			return fmt.Errorf("the answer is %w", errors.Join(err, errors.ErrUnsupported))
		}
		return nil
	})
}

// installControllers makes what routers that read IngressControllers need of the API.
func installControllers(ctx context.Context, c *cluster.Cluster) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return fmt.Errorf("cannot find OpenShift's API: %w", err)
	}
	folder := strings.TrimSpace(string(out))
	for _, path := range []string{
		"operator/v1/zz_generated.crd-manifests/0000_50_ingress_00_ingresscontrollers.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_ingresses.crd.yaml",
		"config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_apiservers-Default.crd.yaml",
	} {
		if err := c.Apply(ctx, filepath.Join(folder, path)); err != nil {
			return err
		}
	}
	for _, name := range []string{operatorNamespace, configNamespace, "openshift-ingress"} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := shared.core.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot make a namespace: %w", err)
		}
	}
	return permitControllers(ctx)
}

// permitControllers lets routers read all IngressControllers and what these name. The manifest
// that is shipped names one of each.
func permitControllers(ctx context.Context) error {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "ingress-controllers"}, Rules: []rbacv1.PolicyRule{
		rule("operator.openshift.io", "ingresscontrollers", "list", "watch"), rule("operator.openshift.io", "ingresscontrollers/status", "patch"),
		rule("config.openshift.io", "apiservers", "list", "watch"), rule("config.openshift.io", "ingresses", "list", "watch"),
		rule("", "configmaps", "list", "watch"),
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: routerNamespace, Name: routerAccount}},
	}
	_, first := shared.core.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	_, second := shared.core.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return errors.Join(first, second)
}

// configured makes a ConfigMap where IngressControllers look for it, or replaces it.
func (n namespace) configured(name string, data map[string]string) {
	n.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	client := shared.core.CoreV1().ConfigMaps(configNamespace)
	if _, err := client.Update(n.Context(), object, metav1.UpdateOptions{}); err == nil {
		return
	}
	must[*corev1.ConfigMap](n)(client.Create(n.Context(), object, metav1.CreateOptions{}))
}

// clusterConfig gives the cluster's Ingress configuration an annotation. One case does.
func clusterConfig(t testing.TB, annotation, value string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "Ingress", "spec": map[string]any{"domain": "apps.test"}}}
	o.SetName("cluster")
	o.SetAnnotations(map[string]string{"ingress.operator.openshift.io/" + annotation: value})
	resource := schema.GroupVersionResource{Group: "config.openshift.io", Version: "v1", Resource: "ingresses"}
	must[*unstructured.Unstructured](t)(shared.objects.Resource(resource).Create(t.Context(), o, metav1.CreateOptions{}))
}

// setting waits until an option of the router has a value.
func (n namespace) setting(r *router, flag, want string) {
	n.Helper()
	eventually(n, "--"+flag, func() error {
		got, err := r.get("http://settings:1936/view/settings")
		if err != nil {
			return err
		}
		var options []struct{ Flag, Value, From string }
		if err := json.Unmarshal([]byte(got.Body), &options); err != nil {
			return fmt.Errorf("%d, %w: %.200s", got.Code, err, got.Body)
		}
		for _, o := range options {
			if o.Flag == flag && o.Value != want {
				return fmt.Errorf("%q from %s, want %q", o.Value, o.From, want)
			} else if o.Flag == flag {
				return nil
			}
		}
		return errors.New("it is not there")
	})
}
