package deploy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// grants are what rules allow, as "VERB RESOURCE.GROUP", with "/NAME" where it is about single objects.
func grants(t *testing.T, rules []rbacv1.PolicyRule) (list []string) {
	t.Helper()
	for _, rule := range rules {
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			if strings.Contains(word, "*") {
				t.Errorf("%v has a wildcard", rule)
			}
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						list = append(list, strings.TrimSuffix(fmt.Sprintf("%s %s.%s/%s", verb, resource, group, name), "/"))
					}
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// named returns the object of a type and a name in a file.
func named[T runtime.Object](t *testing.T, loaded tree, file, name string) (found T) {
	t.Helper()
	for _, o := range loaded.objects[file] {
		if object, ok := o.(T); ok && name == o.(interface{ GetName() string }).GetName() {
			return object
		}
	}
	t.Fatalf("%s has no %T %s", file, found, name)
	return found
}

// TestGatewayDeployments: with the component the routers may write what the pods of Gateways are run by, and nothing besides; these pods write nothing and read no Secret,
// ConfigMap or Gateway of all; and the routers may do all that they grant, without which the API server would not let them.
func TestGatewayDeployments(t *testing.T) {
	loaded := load(t)
	const file = "gateway-deployments/rbac.yaml"
	routers := grants(t, named[*rbacv1.ClusterRole](t, loaded, file, "turnout-gateway-deployments").Rules)
	var want []string
	for _, resource := range []string{"deployments.apps", "serviceaccounts.", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"} {
		for _, verb := range []string{"create", "delete", "get", "list", "patch"} {
			want = append(want, verb+" "+resource)
		}
	}
	want = append(want, "patch clusterrolebindings.rbac.authorization.k8s.io/turnout-gateway-pods")
	if slices.Sort(want); !slices.Equal(routers, want) {
		t.Errorf("routers may\n%q\nwant\n%q", routers, want)
	}
	if own := grants(t, named[*rbacv1.Role](t, loaded, file, "turnout-gateway-deployments").Rules); !slices.Equal(own, []string{"get pods."}) {
		t.Errorf("in their namespace routers may %q", own)
	}
	pods := grants(t, named[*rbacv1.ClusterRole](t, loaded, file, "turnout-gateway-pods").Rules)
	for _, grant := range pods {
		verb, resource, _ := strings.Cut(grant, " ")
		if verb != "list" && verb != "watch" || slices.Contains([]string{"secrets.", "configmaps.", "gateways.gateway.networking.k8s.io"}, resource) {
			t.Errorf("the pods of Gateways may %s", grant)
		}
	}
	if binding := named[*rbacv1.ClusterRoleBinding](t, loaded, file, "turnout-gateway-pods"); len(binding.Subjects) != 0 || binding.RoleRef.Name != "turnout-gateway-pods" {
		t.Errorf("%+v", binding)
	}
	all := slices.Concat(routers, grants(t, the[*rbacv1.ClusterRole](t, loaded, "base/rbac.yaml").Rules), grants(t, the[*rbacv1.ClusterRole](t, loaded, "gateway-api/rbac.yaml").Rules))
	for _, kind := range []string{"secrets.", "configmaps.", "gateways.gateway.networking.k8s.io"} { // of which single ones are granted
		for _, verb := range []string{"get", "list", "watch"} {
			pods = append(pods, verb+" "+kind)
		}
	}
	for _, grant := range pods {
		if !slices.Contains(all, grant) {
			t.Errorf("routers grant %s and may not do it", grant)
		}
	}
}
