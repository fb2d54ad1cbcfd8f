package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"turnout/test/kube/internal/router"
)

// audit is what the router's account has asked the API server so far.
func audit(t testing.TB) []auditv1.Event {
	t.Helper()
	return must[[]auditv1.Event](t)(shared.Audit(routerUser))
}

// TestPermissions does all that a router does and compares with what its role grants:
// nothing is refused, and nothing is granted that is not used.
func TestPermissions(t *testing.T) {
	start := time.Now()
	n := newNamespace(t, "a", map[string]string{"shard": "permissions"})
	n.grant(all(), "cert")
	n.service("web", pod1)
	plain := newRouter(t, "plain", "--labels", "shard!=other", "--stats-user", "somebody", "--stats-password", "secret")
	newRouter(t, "namespaces", "--namespace-labels", "shard=permissions")
	n.putSecret(newSecret("cert", issue(t, "ext.permissions.test")))
	n.create(external("ext", "ext.permissions.test", "cert"))
	n.create(newRoute("r", "permissions.test"))
	for _, name := range []string{"plain", "namespaces"} {
		n.says("ext", name, "ext.permissions.test True")
		n.says("r", name, "permissions.test True")
	}
	serves(t, plain, "https://ext.permissions.test/", at(pod1))
	n.putSecret(newSecret("cert", issue(t, "ext.permissions.test")))
	n.change("r", func(route *routev1.Route) { route.Labels = map[string]string{"shard": "other"} })
	n.says("r", "plain", "nothing")

	visits(t, plain)

	used := map[string]bool{}
	for _, e := range audit(t) {
		// A starting API server, of which other tests have some, refuses for a moment.
		if e.ObjectRef == nil || e.RequestReceivedTimestamp.Time.Before(start) {
			continue
		}
		if e.ResponseStatus != nil && e.ResponseStatus.Code == 403 {
			t.Errorf("refused: %s %s", e.Verb, e.RequestURI)
		}
		used[permission(e.Verb, e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)] = true
	}
	role := must[*rbacv1.ClusterRole](t)(shared.core.RbacV1().ClusterRoles().Get(t.Context(), routerRole, metav1.GetOptions{}))
	var granted []string
	for _, rule := range role.Rules {
		granted = append(granted, permissions(rule)...)
	}
	for _, p := range granted {
		if strings.Contains(p, "*") {
			t.Errorf("the role grants %s", p)
		}
		if !used[p] {
			t.Errorf("the role grants %s, which is not used", p)
		}
	}
	// What is used and not granted by the role comes from the Role of the namespace.
	for p := range used {
		if !slices.Contains(granted, p) && !strings.HasSuffix(p, " secrets") {
			t.Errorf("%s is used, and no rule of the role grants it", p)
		}
	}
}

// visits asks for the metrics of a router that lets only those in whom the API server does.
func visits(t *testing.T, r *router.Router) {
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"route.openshift.io"}, Resources: []string{"routers/metrics"}}}
	must[*rbacv1.ClusterRole](t)(shared.core.RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"}, Rules: rules}, metav1.CreateOptions{}))
	must[*rbacv1.ClusterRoleBinding](t)(shared.core.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: routerNamespace, Name: routerAccount}},
	}, metav1.CreateOptions{}))
	token := must[string](t)(shared.Token(t.Context(), routerNamespace, routerAccount))
	for _, c := range []struct {
		token  string
		status int
	}{{"", 403}, {"nonsense", 401}} {
		if status, text := r.AdminAs(t, "/metrics", c.token); status != c.status {
			t.Errorf("token %q: %d %s, want %d", c.token, status, text, c.status)
		}
	}
	eventually(t, "the account reads the metrics", func() error { // the API server learns of the role, and a refusal counts for 5 s
		if status, text := r.AdminAs(t, "/metrics", token); status != 200 {
			return fmt.Errorf("%d %s", status, text)
		}
		return nil
	})
}

// permission writes a permission as "verb resource.group/subresource".
func permission(verb, group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return fmt.Sprintf("%s %s", verb, resource)
}

// permissions are all that a rule grants.
func permissions(rule rbacv1.PolicyRule) []string {
	var all []string
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resource, subresource, _ := strings.Cut(resource, "/")
				all = append(all, permission(verb, group, resource, subresource))
			}
		}
	}
	return all
}
