package origin

import (
	"bytes"
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
)

// execute runs a command in a pod, through the API server, and returns what it writes.
func execute(ctx context.Context, namespace, pod string, command []string) (string, error) {
	request := shared.core.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(shared.admin, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}); err != nil {
		return "", fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), nil
}

// account makes a service account of the namespace.
func (n namespace) account(name string) {
	n.Helper()
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := shared.core.CoreV1().ServiceAccounts(n.name).Create(n.Context(), object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		n.Fatal(err)
	}
}

// token is one of a service account of the namespace.
func (n namespace) token(account string) string {
	n.Helper()
	n.account(account)
	request := must[*authenticationv1.TokenRequest](n)(shared.core.CoreV1().ServiceAccounts(n.name).
		CreateToken(n.Context(), account, new(authenticationv1.TokenRequest), metav1.CreateOptions{}))
	return request.Status.Token
}

// mayReadMetrics lets an account read the metrics of a router.
func (n namespace) mayReadMetrics(r *router, account string) {
	n.Helper()
	n.account(account)
	name := "metrics-" + n.name
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"route.openshift.io"}, Resources: []string{"routers/metrics"}, ResourceNames: []string{r.name}, Verbs: []string{"get"}},
	}}
	must[*rbacv1.ClusterRole](n)(shared.core.RbacV1().ClusterRoles().Create(n.Context(), role, metav1.CreateOptions{}))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: n.name, Name: account}},
	}
	must[*rbacv1.ClusterRoleBinding](n)(shared.core.RbacV1().ClusterRoleBindings().Create(n.Context(), binding, metav1.CreateOptions{}))
}
