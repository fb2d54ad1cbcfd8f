package kube

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/test/cluster/pki"
	"turnout/test/kube/internal/router"
)

// grant lets the router's account read secrets of a namespace, as the owner of a route
// with an external certificate does.
func (n namespace) grant(verbs []string, secrets ...string) {
	n.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "read-certificates"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: verbs},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read-certificates"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: routerNamespace, Name: routerAccount}},
	}
	must[*rbacv1.Role](n)(shared.core.RbacV1().Roles(n.name).Create(n.Context(), role, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](n)(shared.core.RbacV1().RoleBindings(n.name).Create(n.Context(), binding, metav1.CreateOptions{}))
}

// regrant changes what grant allows.
func (n namespace) regrant(verbs []string, secrets ...string) {
	n.Helper()
	roles := shared.core.RbacV1().Roles(n.name)
	role := must[*rbacv1.Role](n)(roles.Get(n.Context(), "read-certificates", metav1.GetOptions{}))
	role.Rules[0].Verbs, role.Rules[0].ResourceNames = verbs, secrets
	must[*rbacv1.Role](n)(roles.Update(n.Context(), role, metav1.UpdateOptions{}))
}

// all is what the router needs of a secret.
func all() []string { return []string{"get", "list", "watch"} }

// newSecret is a TLS secret.
func newSecret(name string, pair pki.Pair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte(pair.Cert), corev1.TLSPrivateKeyKey: []byte(pair.Key)},
	}
}

// putSecret creates or replaces a secret.
func (n namespace) putSecret(secret *corev1.Secret) {
	n.Helper()
	secrets := shared.core.CoreV1().Secrets(n.name)
	_, err := secrets.Update(n.Context(), secret, metav1.UpdateOptions{})
	if err != nil {
		_, err = secrets.Create(n.Context(), secret, metav1.CreateOptions{})
	}
	if err != nil {
		n.Fatal(err)
	}
}

// removeSecret deletes a secret.
func (n namespace) removeSecret(name string) {
	n.Helper()
	if err := shared.core.CoreV1().Secrets(n.name).Delete(n.Context(), name, metav1.DeleteOptions{}); err != nil {
		n.Fatal(err)
	}
}

// external is an edge route with the certificate of a secret.
func external(name, host, secret string) *routev1.Route {
	route := edge(newRoute(name, host), "")
	route.Spec.TLS.ExternalCertificate = &routev1.LocalObjectReference{Name: secret}
	return route
}

// serial is the serial number of a certificate.
func serial(t testing.TB, pair pki.Pair) string {
	t.Helper()
	cert := must[tls.Certificate](t)(tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key)))
	return cert.Leaf.SerialNumber.String()
}

// shows waits until a host is served with a certificate.
func shows(t testing.TB, r *router.Router, host string, pair pki.Pair) {
	t.Helper()
	want := serial(t, pair)
	eventually(t, "certificate of "+host, func() error {
		got, err := r.Get("https://" + host + "/")
		if err != nil {
			return err
		}
		if got.Serial != want || got.Code != 200 {
			return fmt.Errorf("%d with certificate %s of %s, want %s", got.Code, got.Serial, got.Cert, want)
		}
		return nil
	})
}

// TestExternalCertificate goes through the life of a secret: granted, rotated, torn,
// deleted, made again.
func TestExternalCertificate(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	host := "ext.secrets.test"
	one, two, three := issue(t, host), issue(t, host), issue(t, host)
	n.grant(all(), "cert")
	n.putSecret(newSecret("cert", one))
	n.create(external("ext", host, "cert"))
	n.says("ext", "default", host+" True")
	shows(t, r, host, one)

	// Rotation, without a gap: no request between sees anything but one or two.
	seen := make(chan error, 1)
	stop := make(chan struct{})
	go watchCertificates(r, host, []string{serial(t, one), serial(t, two)}, stop, seen)
	n.putSecret(newSecret("cert", two))
	shows(t, r, host, two)
	close(stop)
	if err := <-seen; err != nil {
		t.Error(err)
	}

	// Torn: the key of another certificate. The last good one stays, and status says why.
	torn := newSecret("cert", pki.Pair{Cert: three.Cert, Key: one.Key})
	n.putSecret(torn)
	n.saysLike("ext", "default", host+" True ExternalCertificateValidationFailed: ")
	shows(t, r, host, two)
	n.putSecret(newSecret("cert", three))
	n.says("ext", "default", host+" True")
	shows(t, r, host, three)

	// Deleted, and made again.
	n.removeSecret("cert")
	n.saysLike("ext", "default", host+" False ExternalCertificateValidationFailed: ")
	answers(t, r, "https://"+host+"/", 503)
	n.putSecret(newSecret("cert", one))
	n.says("ext", "default", host+" True")
	shows(t, r, host, one)

	// Another secret, then none.
	n.regrant(all(), "cert", "second")
	n.putSecret(newSecret("second", two))
	n.change("ext", func(route *routev1.Route) { route.Spec.TLS.ExternalCertificate.Name = "second" })
	shows(t, r, host, two)
	n.change("ext", func(route *routev1.Route) { route.Spec.TLS.ExternalCertificate = nil })
	eventually(t, "default certificate", func() error {
		got, err := r.Get("https://" + host + "/")
		if err == nil && got.Serial == serial(t, two) {
			err = fmt.Errorf("still the certificate of the secret")
		}
		return err
	})
}

// watchCertificates asks until stop, and sends the first answer with a certificate that
// is not among those allowed, or a nil.
func watchCertificates(r *router.Router, host string, allowed []string, stop <-chan struct{}, seen chan<- error) {
	for {
		select {
		case <-stop:
			seen <- nil
			return
		default:
		}
		got, err := r.Get("https://" + host + "/")
		ok := false
		for _, s := range allowed {
			ok = ok || got.Serial == s
		}
		if err != nil || !ok || got.Code != 200 {
			seen <- fmt.Errorf("during the rotation: %d with certificate %s (%s), error %v", got.Code, got.Serial, got.Cert, err)
			return
		}
	}
}

// TestExternalCertificatePermissions: without permission, without the secret, and with a
// secret of another type the route is rejected and says why.
func TestExternalCertificatePermissions(t *testing.T) {
	r := newRouter(t, "default")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	host := "denied.secrets.test"
	pair := issue(t, host)
	n.putSecret(newSecret("cert", pair))
	n.create(external("denied", host, "cert"))
	rejected := n.saysLike("denied", "default", host+" False ExternalCertificateValidationFailed: ")
	for _, verb := range all() {
		want := "router serviceaccount does not have permission to " + verb + " this secret"
		if got := verdict(rejected, "default"); !strings.Contains(got, want) {
			t.Errorf("verdict %q does not hold %q", got, want)
		}
	}
	n.create(newRoute("witness", "witness.secrets.test"))
	n.says("witness", "default", "witness.secrets.test True")
	answers(t, r, "https://"+host+"/", 503)

	// Permission comes later.
	n.grant(all(), "cert", "opaque", "missing")
	n.says("denied", "default", host+" True")
	shows(t, r, host, pair)

	opaque := newSecret("opaque", pair)
	opaque.Type = corev1.SecretTypeOpaque
	n.putSecret(opaque)
	n.create(external("opaque", "opaque.secrets.test", "opaque"))
	n.saysLike("opaque", "default", "opaque.secrets.test False ExternalCertificateValidationFailed: ")
	n.create(external("missing", "missing.secrets.test", "missing"))
	n.saysLike("missing", "default", "missing.secrets.test False ExternalCertificateValidationFailed: ")
	n.putSecret(newSecret("missing", issue(t, "missing.secrets.test")))
	n.says("missing", "default", "missing.secrets.test True")
	serves(t, r, "https://missing.secrets.test/", at(pod1))
}

// TestExternalCertificateOff: the switch turns the field off.
func TestExternalCertificateOff(t *testing.T) {
	r := newRouter(t, "default", "--allow-external-certificates=false")
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(external("ext", "off.secrets.test", "cert"))
	n.says("ext", "default", "off.secrets.test True")
	serves(t, r, "https://off.secrets.test/", at(pod1))
}
