package origin

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// externalCase is the setup of a case about certificates in Secrets: six routes of one namespace
// that share one, which the router may read.
type externalCase struct {
	namespace
	r     *router
	ca    identity
	first identity // in the Secret at the beginning
	hosts []string
}

// The names of the Secrets.
const (
	oneSecret = "my-tls-secret"
	newSecret = "new-ext-crt"
)

// newExternal makes the setup without routes.
func newExternal(t *testing.T) *externalCase {
	t.Helper()
	e := &externalCase{namespace: newNamespace(t, nil), r: with(t, settings{}), ca: issue(t, "RouteExternalCertificate Root CA", nil, true)}
	e.echo("hello-openshift")
	for i := range 6 {
		e.hosts = append(e.hosts, e.host(fmt.Sprintf("route-%d", i)))
	}
	e.first = e.certificate()
	return e
}

// validSetup makes it with the Secret, the permission and the routes, and waits until they are
// admitted.
func validSetup(t *testing.T) *externalCase {
	t.Helper()
	e := newExternal(t)
	tlsSecret(t, e.name, oneSecret, e.first)
	e.permit(oneSecret)
	for i := range e.hosts {
		e.create(e.route(fmt.Sprintf("route-%d", i), oneSecret))
	}
	e.all("True", "")
	e.reachable(e.first)
	return e
}

// certificate makes one for all hosts.
func (e *externalCase) certificate() identity {
	e.Helper()
	return issueFor(e, e.ca, e.hosts...)
}

// route is an edge route with the certificate of a Secret.
func (e *externalCase) route(name, secret string) *routev1.Route {
	route := edge(e.newRoute(e.r, name), "")
	route.Spec.To.Name = "hello-openshift"
	route.Spec.TLS.ExternalCertificate = &routev1.LocalObjectReference{Name: secret}
	return route
}

// permit lets the router's account read these Secrets of the namespace.
func (e *externalCase) permit(secrets ...string) {
	e.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "secret-reader-role"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get", "list", "watch"}},
	}}
	// An update of a role that is not there makes it.
	must[*rbacv1.Role](e)(shared.core.RbacV1().Roles(e.name).Update(e.Context(), role, metav1.UpdateOptions{}))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "secret-reader-role-binding"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: routerNamespace, Name: routerAccount}},
	}
	must[*rbacv1.RoleBinding](e)(shared.core.RbacV1().RoleBindings(e.name).Update(e.Context(), binding, metav1.UpdateOptions{}))
}

// forbid takes the permission away.
func (e *externalCase) forbid() {
	e.Helper()
	if err := shared.core.RbacV1().RoleBindings(e.name).Delete(e.Context(), "secret-reader-role-binding", metav1.DeleteOptions{}); err != nil {
		e.Fatal(err)
	}
}

// remove deletes the Secret.
func (e *externalCase) remove() {
	e.Helper()
	if err := shared.core.CoreV1().Secrets(e.name).Delete(e.Context(), oneSecret, metav1.DeleteOptions{}); err != nil {
		e.Fatal(err)
	}
}

// all waits until the router says that of all routes.
func (e *externalCase) all(status, reason string) {
	e.Helper()
	for i := range e.hosts {
		e.says(e.r, fmt.Sprintf("route-%d", i), strings.TrimSpace(status+" "+reason))
	}
}

// refused is what a route without a usable Secret is.
const refused = "ExternalCertificateValidationFailed"

// rejected waits until a route is rejected, with words of the message, and is not served.
func (e *externalCase) rejected(name, words string) {
	e.Helper()
	e.says(e.r, name, "False "+refused)
	route := e.get(name)
	for _, i := range route.Status.Ingress {
		if i.RouterName == e.r.name && !strings.Contains(i.Conditions[0].Message, words) {
			e.Errorf("message %q, want words %q", i.Conditions[0].Message, words)
		}
	}
	e.answers(e.r, "https://"+route.Spec.Host+"/", 503)
}

// reachable waits until the routes are served with a certificate, which clients verify.
func (e *externalCase) reachable(want identity, hosts ...string) {
	e.Helper()
	if hosts == nil {
		hosts = e.hosts
	}
	roots := x509.NewCertPool()
	roots.AddCert(e.ca.cert)
	for _, host := range hosts {
		eventually(e, "https://"+host, func() error {
			got, err := e.r.client(dials{fresh: true, roots: roots}).get("https://" + host + "/")
			if err == nil && (got.Code != 200 || !got.Cert.Equal(want.cert)) {
				err = fmt.Errorf("%d with certificate %v", got.Code, got.Cert.SerialNumber)
			}
			return err
		})
	}
}

// use makes route-0 use another Secret, or none.
func (e *externalCase) use(secret string) {
	e.Helper()
	e.change("route-0", func(route *routev1.Route) {
		if route.Spec.TLS.ExternalCertificate = nil; secret != "" {
			route.Spec.TLS.ExternalCertificate = &routev1.LocalObjectReference{Name: secret}
		}
	})
}

// opaque makes a Secret of the wrong type.
func (e *externalCase) opaque(name string) {
	e.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{
		corev1.TLSCertKey: []byte(e.first.pem()), corev1.TLSPrivateKeyKey: []byte(e.first.keyPEM(e)),
	}}
	must[*corev1.Secret](e)(shared.core.CoreV1().Secrets(e.name).Create(e.Context(), secret, metav1.CreateOptions{}))
}

// TestRouteExternalCertificateInvalid is the context "with invalid setup" of
// test/extended/router/external_certificate.go of origin. There OpenShift's API server refuses
// such routes; here the API server knows nothing of them, and the router rejects them.
func TestRouteExternalCertificateInvalid(t *testing.T) {
	t.Parallel()
	// without permission for the Secret.
	it(t, "should not support external certificate without proper permissions", func(t *testing.T) {
		e := newExternal(t)
		tlsSecret(t, e.name, oneSecret, e.first)
		e.create(e.route("route-0", oneSecret))
		e.rejected("route-0", "permission")
	})
	// the Secret is that of another namespace.
	it(t, "should not support external certificate if the secret is in a different namespace", func(t *testing.T) {
		e := newExternal(t)
		other := newNamespace(t, nil)
		tlsSecret(t, other.name, oneSecret, e.first)
		e.permit(oneSecret)
		e.create(e.route("route-0", oneSecret))
		e.rejected("route-0", "not found")
	})
	// a Secret of type Opaque.
	it(t, "should not support external certificate if the secret is not of type kubernetes.io/tls", func(t *testing.T) {
		e := newExternal(t)
		e.opaque(oneSecret)
		e.permit(oneSecret)
		e.create(e.route("route-0", oneSecret))
		e.rejected("route-0", "kubernetes.io/tls")
	})
	// passthrough has no certificates.
	it(t, "should not support external certificate if the route termination type is Passthrough", func(t *testing.T) {
		e := newExternal(t)
		tlsSecret(t, e.name, oneSecret, e.first)
		e.permit(oneSecret)
		route := e.route("route-0", oneSecret)
		route.Spec.TLS.Termination = routev1.TLSTerminationPassthrough
		e.invalid(route)
	})
	// the route has a certificate of its own too.
	it(t, "should not support external certificate if inline certificate is also present", func(t *testing.T) {
		e := newExternal(t)
		tlsSecret(t, e.name, oneSecret, e.first)
		e.permit(oneSecret)
		route := e.route("route-0", oneSecret)
		route.Spec.TLS.Certificate = "my-crt"
		e.invalid(route)
	})
}

// invalid creates a route that either the API server refuses or the router rejects.
func (e *externalCase) invalid(route *routev1.Route) {
	e.Helper()
	if _, err := shared.routes.RouteV1().Routes(e.name).Create(e.Context(), route, metav1.CreateOptions{}); err != nil {
		return
	}
	eventually(e, "rejection", func() error {
		if got := verdict(e.get(route.Name), e.r.name); !strings.HasPrefix(got, "False ") {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// TestRouteExternalCertificate is the context "the router should support external certificate".
func TestRouteExternalCertificate(t *testing.T) {
	t.Parallel()
	// each of the six routes is served with the Secret's certificate.
	it(t, "and routes are reachable", func(t *testing.T) { validSetup(t) })
	// without the Secret the routes are rejected and not served.
	it(t, "and the secret is deleted then routes are not reachable", func(t *testing.T) {
		e := validSetup(t)
		e.remove()
		e.all("False", refused)
		e.answers(e.r, "https://"+e.hosts[0]+"/", 503)
	})
	// when it is there again, they are too.
	it(t, "and the secret is deleted and re-created again then routes are reachable", func(t *testing.T) {
		e := validSetup(t)
		e.remove()
		e.all("False", refused)
		tlsSecret(t, e.name, oneSecret, e.first)
		e.all("True", "")
		e.reachable(e.first)
	})
	// but not without permission.
	it(t, "and the secret is deleted and re-created again but RBAC permissions are dropped then routes are not reachable", func(t *testing.T) {
		e := validSetup(t)
		e.remove()
		e.forbid()
		e.all("False", refused)
		tlsSecret(t, e.name, oneSecret, e.first)
		e.all("False", refused)
		e.answers(e.r, "https://"+e.hosts[0]+"/", 503)
	})
	// another certificate in the Secret is served.
	it(t, "and the secret is updated then also routes are reachable", func(t *testing.T) {
		e := validSetup(t)
		second := e.certificate()
		tlsSecret(t, e.name, oneSecret, second)
		e.reachable(second)
	})
	// after the permission is gone, a change of the Secret makes the router ask for it.
	it(t, "and the secret is updated but RBAC permissions are dropped then routes are not reachable", func(t *testing.T) {
		e := validSetup(t)
		e.forbid()
		tlsSecret(t, e.name, oneSecret, e.certificate())
		e.all("False", refused)
		e.answers(e.r, "https://"+e.hosts[0]+"/", 503)
	})
}

// TestRouteExternalCertificateUpdate is the context "and the route is updated". What there is
// refused by the API server makes the router reject the route here.
func TestRouteExternalCertificateUpdate(t *testing.T) {
	t.Parallel()
	// another Secret is served once the route names it.
	it(t, "to use new external certificate then also the route is reachable", func(t *testing.T) {
		e := validSetup(t)
		second := e.certificate()
		tlsSecret(t, e.name, newSecret, second)
		e.permit(oneSecret, newSecret)
		e.use(newSecret)
		e.reachable(second, e.hosts[0])
		e.reachable(e.first, e.hosts[1:]...)
	})
	// not without permission for it.
	it(t, "to use new external certificate, but RBAC permissions are not added route update is rejected", func(t *testing.T) {
		e := validSetup(t)
		tlsSecret(t, e.name, newSecret, e.certificate())
		e.use(newSecret)
		e.rejected("route-0", "permission")
	})
	// not of another type.
	it(t, "to use new external certificate, but secret is not of type kubernetes.io/tls route update is rejected", func(t *testing.T) {
		e := validSetup(t)
		e.opaque(newSecret)
		e.permit(oneSecret, newSecret)
		e.use(newSecret)
		e.rejected("route-0", "kubernetes.io/tls")
	})
	// not when it is not there.
	it(t, "to use new external certificate, but secret does not exist route update is rejected", func(t *testing.T) {
		e := validSetup(t)
		e.permit(oneSecret, newSecret)
		e.use(newSecret)
		e.rejected("route-0", "not found")
	})
	// another change of the route changes nothing.
	it(t, "to use same external certificate then also the route is reachable", func(t *testing.T) {
		e := validSetup(t)
		e.change("route-0", func(route *routev1.Route) { route.Labels["foo"] = "bar" })
		e.reachable(e.first, e.hosts[0])
	})
	// nor does it without the permission, until the Secret changes: there the API server refuses the
	// change of the route.
	it(t, "to use same external certificate, but RBAC permissions are dropped route update is rejected", func(t *testing.T) {
		e := validSetup(t)
		e.forbid()
		e.change("route-0", func(route *routev1.Route) { route.Labels["foo"] = "bar" })
		e.reachable(e.first, e.hosts[0])
		tlsSecret(t, e.name, oneSecret, e.certificate())
		e.rejected("route-0", "permission")
	})
	// without a Secret, the default certificate is served.
	it(t, "to remove the external certificate then also the route is reachable and serves the default certificate", func(t *testing.T) {
		e := validSetup(t)
		e.use("")
		e.servesDefault()
	})
	// and with it again, its certificate.
	it(t, "to remove the external certificate and again re-add the same external certificate then also the route is reachable", func(t *testing.T) {
		e := validSetup(t)
		e.use("")
		e.servesDefault()
		e.use(oneSecret)
		e.reachable(e.first, e.hosts[0])
	})
	it(t, "stress testing should work", externalStress)
}

// servesDefault waits until route-0 has not the Secret's certificate.
func (e *externalCase) servesDefault() {
	e.Helper()
	eventually(e, "default certificate", func() error {
		got, err := e.r.get("https://" + e.hosts[0] + "/")
		if err == nil && (got.Code != 200 || got.Cert.Issuer.CommonName == e.ca.cert.Subject.CommonName) {
			err = fmt.Errorf("%d with a certificate of %s", got.Code, got.Cert.Issuer.CommonName)
		}
		return err
	})
}

// externalStress: routes with a Secret each, in several namespaces, are made, served and removed,
// twice. There are 10 namespaces with 100 each, here 3 with 20.
func externalStress(t *testing.T) {
	for range 2 {
		for range 3 {
			e := newExternal(t)
			var secrets []string
			for i := range 20 {
				secrets = append(secrets, fmt.Sprintf("secret-%d", i))
			}
			e.permit(secrets...)
			certs := map[string]identity{}
			for i, secret := range secrets {
				name := fmt.Sprintf("stress-%d", i)
				certs[name] = issueFor(t, e.ca, e.host(name))
				tlsSecret(t, e.name, secret, certs[name])
				e.create(e.route(name, secret))
			}
			for name, cert := range certs {
				e.reachable(cert, e.host(name))
			}
			routes := shared.routes.RouteV1().Routes(e.name)
			if err := routes.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			e.answers(e.r, "https://"+e.host("stress-0")+"/", 503)
		}
	}
}
