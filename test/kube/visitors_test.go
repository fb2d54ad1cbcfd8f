package kube

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/test/kube/internal/router"
)

// TestVisitors: an API server says who may see what of the admin port; a token of a real account is reviewed once in a while, not per request.
func TestVisitors(t *testing.T) {
	r := newRouter(t, "visited", "--stats-user", "somebody", "--stats-password", "secret")
	nobody := visitor(t, "nobody")
	reader := visitor(t, "reader", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"route.openshift.io"}, Resources: []string{"routers/metrics"}, ResourceNames: []string{"visited"}})
	debugger := visitor(t, "debugger", rbacv1.PolicyRule{Verbs: []string{"get", "update"}, APIGroups: []string{"route.openshift.io"}, Resources: []string{"routers", "routers/debug"}})
	ask := func(method, path, token string) (int, string) {
		return adminAs(t, r, method, path, token, "")
	}
	// The API server learns of the roles.
	for path, token := range map[string]string{"/metrics": reader, "/routes": debugger} {
		eventually(t, "accounts are let in", func() error {
			if status, text := ask("GET", path, token); status != 200 {
				return fmt.Errorf("%s: %d %s", path, status, text)
			}
			return nil
		})
	}
	for _, c := range []struct {
		method, path, who, token string
		status                   int
	}{
		{"GET", "/healthz/ready", "nobody", "", 200},
		{"GET", "/metrics", "nobody", "", 403},
		{"GET", "/metrics", "an account without rights", nobody, 403},
		{"GET", "/metrics", "the reader", reader, 200},
		{"GET", "/routes", "the reader", reader, 403},
		{"GET", "/debug/pprof/goroutine", "the reader", reader, 403},
		{"PUT", "/debug/log-level", "the reader", reader, 403},
		{"GET", "/debug/pprof/goroutine", "the debugger", debugger, 200},
		{"PUT", "/debug/log-level", "the debugger", debugger, 200},
		{"GET", "/metrics", "the debugger", debugger, 403},
		{"GET", "/routes", "somebody whose token is made up", strings.TrimSuffix(debugger, debugger[len(debugger)-8:]) + "AAAAAAAA", 401},
	} {
		eventually(t, c.who+" asks for "+c.path, func() error { // there may be too many reviews at once
			status, text := ask(c.method, c.path, c.token)
			if status == http.StatusTooManyRequests {
				return fmt.Errorf("%d %s", status, text)
			}
			if status != c.status {
				t.Errorf("%s %s as %s: %d %s, want %d", c.method, c.path, c.who, status, text, c.status)
			}
			return nil
		})
	}
	// A login is enough under any name, and its lack under none but the own ones.
	if status, text := adminAs(t, r, "GET", "/metrics", reader, "evil.example.com"); status != 200 {
		t.Errorf("by another name with a token: %d %s", status, text)
	}
	start := time.Now()
	for range 200 {
		if status, text := ask("GET", "/metrics", reader); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
	}
	reviews := 0
	for _, e := range audit(t) {
		if e.ObjectRef != nil && (e.ObjectRef.Resource == "tokenreviews" || e.ObjectRef.Resource == "subjectaccessreviews") && e.RequestReceivedTimestamp.Time.After(start) {
			reviews++
		}
	}
	if most := 2 + 2*int(time.Since(start)/(10*time.Second)); reviews > most {
		t.Errorf("%d reviews for 200 requests of one account, want at most %d", reviews, most)
	}
}

// visitor makes an account with rights in the whole cluster and returns a token of it.
func visitor(t *testing.T, name string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	name = "visitor-" + name
	must[*corev1.ServiceAccount](t)(shared.core.CoreV1().ServiceAccounts(routerNamespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	must[*rbacv1.ClusterRole](t)(shared.core.RbacV1().ClusterRoles().Create(t.Context(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}))
	must[*rbacv1.ClusterRoleBinding](t)(shared.core.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: routerNamespace, Name: name}},
	}, metav1.CreateOptions{}))
	return must[string](t)(shared.Token(t.Context(), routerNamespace, name))
}

// adminAs asks the admin port of a router; host = "": by its address.
func adminAs(t *testing.T, r *router.Router, method, path, token, host string) (int, string) {
	t.Helper()
	body := ""
	if method == http.MethodPut {
		body = "info"
	}
	return r.AdminWith(t, method, path, body, func(q *http.Request) {
		if token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
		if host != "" {
			q.Host = host
		}
	})
}
