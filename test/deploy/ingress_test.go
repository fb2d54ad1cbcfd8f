package deploy

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"turnout/controller/ingress"
	"turnout/controller/ingress/converter"
)

// TestIngressPermissions: what is served besides by --ingress takes these permissions and no more, and reading the Secrets of everybody is a file of its
// own.
func TestIngressPermissions(t *testing.T) {
	loaded := load(t)
	account := the[*corev1.ServiceAccount](t, loaded, "base/serviceaccount.yaml")
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	for file, want := range map[string][]rbacv1.PolicyRule{
		"ingress/rbac.yaml": {
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses/status"}, Verbs: []string{"patch"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		},
		"optional/ingress-secrets.yaml": {{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}}},
	} {
		role, binding := the[*rbacv1.ClusterRole](t, loaded, file), the[*rbacv1.ClusterRoleBinding](t, loaded, file)
		if !reflect.DeepEqual(role.Rules, want) {
			t.Errorf("%s: %v", file, role.Rules)
		}
		if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "ClusterRole" || !reflect.DeepEqual(binding.Subjects, subjects) {
			t.Errorf("%s: the binding is of %v to %v", file, binding.RoleRef, binding.Subjects)
		}
	}
}

// TestIngressClass: the class of the manifests is one that the program serves, and the patch switches that on.
func TestIngressClass(t *testing.T) {
	loaded, known := load(t), options(t)
	if c := the[*networkingv1.IngressClass](t, loaded, "ingress/ingressclass.yaml"); c.Spec.Controller != ingress.Controller {
		t.Errorf("the class is that of %s", c.Spec.Controller)
	}
	patch, of := the[*appsv1.Deployment](t, loaded, "ingress/ingress.yaml"), the[*appsv1.Deployment](t, loaded, "deployment/deployment.yaml")
	env := map[string]string{}
	for _, e := range patch.Spec.Template.Spec.Containers[0].Env {
		if !known[e.Name] {
			t.Errorf("the patch sets %s, which has no effect", e.Name)
		}
		env[e.Name] = e.Value
	}
	if env["TURNOUT_INGRESS"] != "true" || patch.Name != of.Name || patch.Spec.Template.Spec.Containers[0].Name != of.Spec.Template.Spec.Containers[0].Name {
		t.Errorf("the patch is %v for %s", env, patch.Name)
	}
}

// TestConversionPermissions: what makes Routes of Ingresses may do that and no more, as the account of its pods.
func TestConversionPermissions(t *testing.T) {
	loaded := load(t)
	const file = "ingress-to-route/rbac.yaml"
	rule := func(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	want := []rbacv1.PolicyRule{
		rule("networking.k8s.io", []string{"ingresses", "ingressclasses"}, "list", "watch"),
		rule("networking.k8s.io", []string{"ingresses/status"}, "patch"),
		rule("", []string{"services"}, "list", "watch"),
		rule("", []string{"secrets"}, "get", "list", "watch"),
		rule("route.openshift.io", []string{"routes"}, "list", "watch", "create", "patch", "delete"),
		rule("route.openshift.io", []string{"routes/custom-host"}, "create", "update"),
		rule("", []string{"events"}, "create"),
		rule("authorization.k8s.io", []string{"subjectaccessreviews"}, "create"),
		rule("authentication.k8s.io", []string{"tokenreviews"}, "create"),
	}
	if role := the[*rbacv1.ClusterRole](t, loaded, file); !reflect.DeepEqual(role.Rules, want) {
		t.Errorf("the role has %v", role.Rules)
	}
	leases := the[*rbacv1.Role](t, loaded, file)
	if len(leases.Rules) != 2 || !reflect.DeepEqual(leases.Rules[1].ResourceNames, []string{converter.LeaseName}) {
		t.Errorf("leases: %v", leases.Rules)
	}
	account := the[*corev1.ServiceAccount](t, loaded, file)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	if got := the[*rbacv1.ClusterRoleBinding](t, loaded, file).Subjects; !reflect.DeepEqual(got, subjects) {
		t.Errorf("the role is bound to %v", got)
	}
	if got := the[*rbacv1.RoleBinding](t, loaded, file).Subjects; !reflect.DeepEqual(got, subjects) {
		t.Errorf("the role of leases is bound to %v", got)
	}
	pod := the[*appsv1.Deployment](t, loaded, "ingress-to-route/deployment.yaml").Spec.Template.Spec
	if pod.ServiceAccountName != account.Name || !reflect.DeepEqual(pod.Containers[0].Args, []string{"ingress-to-route"}) {
		t.Errorf("pods run %v as %s", pod.Containers[0].Args, pod.ServiceAccountName)
	}
	own := the[*appsv1.Deployment](t, loaded, "sharding/scheduler.yaml").Spec.Template.Spec
	if !reflect.DeepEqual(pod.SecurityContext, own.SecurityContext) || !reflect.DeepEqual(pod.Containers[0].SecurityContext, own.Containers[0].SecurityContext) {
		t.Errorf("securityContext %v, %v", pod.SecurityContext, pod.Containers[0].SecurityContext)
	}
}
