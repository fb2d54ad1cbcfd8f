package origin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tlsSecret makes or replaces a TLS Secret.
func tlsSecret(t testing.TB, namespace, name string, cert identity) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: []byte(cert.pem()), corev1.TLSPrivateKeyKey: []byte(cert.keyPEM(t))},
	}
	client := shared.core.CoreV1().Secrets(namespace)
	if _, err := client.Update(t.Context(), secret, metav1.UpdateOptions{}); err == nil {
		return
	}
	must[*corev1.Secret](t)(client.Create(t.Context(), secret, metav1.CreateOptions{}))
}

// TestDefaultIngressCertificate: the certificate of the default Secret is what clients see of a
// route without one, and it is for the router's domain.
func TestDefaultIngressCertificate(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	ca := issue(t, "ingress-operator", nil, true)
	first := issue(t, "*.apps.test", &ca, false)
	tlsSecret(t, routerNamespace, n.name, first)
	r := with(t, defaultCertificate(n.name))
	host := n.served(r, "echo", func(route *routev1.Route) { edge(route, "") })
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	got := must[response](t)(r.client(dials{fresh: true, roots: roots}).get("https://" + host + "/"))
	if got.Code != 200 || !got.Cert.Equal(first.cert) {
		t.Errorf("%d with %v, want %v", got.Code, got.Cert.Subject, first.cert.Subject)
	}
}

// TestUpdateDefaultIngressControllerSecret: when the Secret has another certificate, that one is
// served, without a new pod.
func TestUpdateDefaultIngressControllerSecret(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	first, second := issue(t, "*.apps.test", nil, false), issue(t, "*.apps.test", nil, false)
	tlsSecret(t, routerNamespace, n.name, first)
	r := with(t, defaultCertificate(n.name))
	host := n.served(r, "echo", func(route *routev1.Route) { edge(route, "") })
	n.shows(r, host, first)
	tlsSecret(t, routerNamespace, n.name, second)
	n.shows(r, host, second)
	pods := must[*corev1.PodList](t)(shared.core.CoreV1().Pods(routerNamespace).List(context.Background(), metav1.ListOptions{LabelSelector: "router=" + r.name}))
	if len(pods.Items) != 1 || pods.Items[0].UID != r.pods[0].UID {
		t.Errorf("%d pods, not the one of before", len(pods.Items))
	}
}

// defaultCertificate are the settings of a router with a default certificate in a Secret.
func defaultCertificate(secret string) settings {
	s := env("DEFAULT_CERTIFICATE_DIR", "/etc/pki/tls/private")
	s.Folders = map[string]string{"/etc/pki/tls/private": "secret/" + secret}
	return s
}

// shows waits until a host is served with a certificate.
func (n namespace) shows(r *router, host string, want identity) {
	n.Helper()
	eventually(n, "certificate of "+host, func() error {
		got, err := r.get("https://" + host + "/")
		if err != nil {
			return err
		}
		if got.Code != 200 || !got.Cert.Equal(want.cert) {
			return fmt.Errorf("%d with certificate %v of %s", got.Code, got.Cert.SerialNumber, got.Cert.Subject)
		}
		return nil
	})
}

// TestTLSSecurityProfile: what a profile makes of versions and suites is what clients get: by
// default TLS 1.2 and 1.3, with Modern only 1.3, with Old also 1.1, and with Custom what it names.
func TestTLSSecurityProfile(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, nil)
	suite := []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	for _, c := range []struct {
		name     string
		settings settings
		oldest   uint16
		suites   []uint16 // of TLS 1.2; nil means any
	}{
		{"intermediate", controlled("tlsSecurityProfile: {type: Intermediate, intermediate: {}}"), tls.VersionTLS12, nil},
		{"modern", controlled("tlsSecurityProfile: {type: Modern, modern: {}}"), tls.VersionTLS13, nil},
		{"old", controlled("tlsSecurityProfile: {type: Old, old: {}}"), tls.VersionTLS11, nil},
		{"custom", controlled("tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: VersionTLS12, ciphers: [ECDHE-ECDSA-AES128-GCM-SHA256, ECDHE-RSA-AES128-GCM-SHA256]}}"), tls.VersionTLS12, suite},
	} {
		r := with(t, c.settings)
		host := n.served(r, c.name, func(route *routev1.Route) { edge(route, "") })
		for version := uint16(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
			state, err := handshake(r, host, version)
			if (err == nil) != (version >= c.oldest) {
				t.Errorf("%s: %s: %v", c.name, tls.VersionName(version), err)
			}
			if err == nil && version == tls.VersionTLS12 && c.suites != nil && state.CipherSuite != c.suites[0] && state.CipherSuite != c.suites[1] {
				t.Errorf("%s: suite %s", c.name, tls.CipherSuiteName(state.CipherSuite))
			}
		}
	}
}

// handshake agrees on one version of TLS.
func handshake(r *router, host string, version uint16, protocols ...string) (tls.ConnectionState, error) {
	conn, err := tls.Dial("tcp", r.address(":443"), &tls.Config{
		ServerName: host, InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, NextProtos: protocols,
	})
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.ConnectionState(), nil
}

// TestRouteHTTP2EnableAndDisableIngressController: the router offers HTTP/2 or not as the
// annotation of its IngressController says, which the operator hands on as a variable.
func TestRouteHTTP2EnableAndDisableIngressController(t *testing.T) {
	t.Parallel()
	offersHTTP2(t, controlled("{}", "default-enable-http2", "true"), controlled("{}", "default-enable-http2", "false"))
}

// TestRouteHTTP2EnableAndDisableIngressConfig: the same for the annotation of the cluster's
// configuration, which becomes the same variable.
func TestRouteHTTP2EnableAndDisableIngressConfig(t *testing.T) {
	t.Parallel()
	offersHTTP2(t, env("ROUTER_DISABLE_HTTP2", "false"), env("ROUTER_DISABLE_HTTP2", "true"))
}

// offersHTTP2 asks a router with HTTP/2 and one without for it.
func offersHTTP2(t *testing.T, enabled, disabled settings) {
	t.Helper()
	n := newNamespace(t, nil)
	own := issue(t, "own.test", nil, false)
	for want, s := range map[string]settings{"h2": enabled, "http/1.1": disabled} {
		r := with(t, s)
		host := n.served(r, "echo-"+r.name, func(route *routev1.Route) {
			edge(route, "")
			route.Spec.TLS.Certificate, route.Spec.TLS.Key = own.pem(), own.keyPEM(t)
		})
		state := must[tls.ConnectionState](t)(handshake(r, host, tls.VersionTLS13, "h2", "http/1.1"))
		if state.NegotiatedProtocol != want {
			t.Errorf("%s: %q, want %q", asJSON(s), state.NegotiatedProtocol, want)
		}
	}
}

// TestHTTP2 is test/extended/router/http2.go of origin.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	it(t, "should pass the http2 tests", http2Routes)
}

// http2Routes: clients that offer HTTP/2 and such that do not, at routes with certificates of
// their own and without, and what the pods are spoken to with. There, routes without a
// certificate of their own are not offered HTTP/2; here they are.
func http2Routes(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, env("ROUTER_DISABLE_HTTP2", "false"))
	ca := issue(t, "pods", nil, true)
	tlsSecret(t, n.name, "serving-cert", issue(t, "http2."+n.name+".svc", &ca, false))
	n.start(pod{name: "http2", tls: "serving-cert"})
	n.service("http2", "http2")
	kinds := map[string]func(*routev1.TLSConfig){
		"edge": func(c *routev1.TLSConfig) { c.Termination = routev1.TLSTerminationEdge },
		"reencrypt": func(c *routev1.TLSConfig) {
			c.Termination, c.DestinationCACertificate = routev1.TLSTerminationReencrypt, ca.pem()
		},
		"passthrough": func(c *routev1.TLSConfig) { c.Termination = routev1.TLSTerminationPassthrough },
	}
	own := issue(t, "own.test", nil, false)
	for _, c := range []struct {
		kind   string
		custom bool
		offer  bool
		front  string
		back   string
	}{
		{"edge", true, true, "HTTP/2.0", "HTTP/1.1"},
		{"reencrypt", true, true, "HTTP/2.0", "HTTP/2.0"},
		{"passthrough", false, true, "HTTP/2.0", "HTTP/2.0"},
		{"edge", false, true, "HTTP/2.0", "HTTP/1.1"},
		{"reencrypt", false, true, "HTTP/2.0", "HTTP/2.0"},
		{"edge", true, false, "HTTP/1.1", "HTTP/1.1"},
		{"reencrypt", true, false, "HTTP/1.1", "HTTP/2.0"},
		{"passthrough", false, false, "HTTP/1.1", "HTTP/1.1"},
		{"edge", false, false, "HTTP/1.1", "HTTP/1.1"},
		{"reencrypt", false, false, "HTTP/1.1", "HTTP/2.0"},
	} {
		name := fmt.Sprintf("http2-%s-%t-%t", c.kind, c.custom, c.offer)
		route := n.newRoute(r, name)
		route.Spec.To.Name = "http2"
		if route.Spec.TLS = new(routev1.TLSConfig); c.kind != "edge" {
			route.Spec.Port.TargetPort.StrVal = "https"
		}
		if kinds[c.kind](route.Spec.TLS); c.custom {
			route.Spec.TLS.Certificate, route.Spec.TLS.Key = own.pem(), own.keyPEM(t)
		}
		n.create(route)
		eventually(t, name, func() error {
			got, err := r.client(dials{fresh: true, http2: c.offer}).get("https://" + route.Spec.Host + "/")
			if err == nil && (got.Code != 200 || got.Proto != c.front || got.Get("X-Proto") != c.back) {
				err = fmt.Errorf("%d by %s, the pod by %s; want %s and %s", got.Code, got.Proto, got.Get("X-Proto"), c.front, c.back)
			}
			return err
		})
	}
}

// TestReencrypt is test/extended/router/reencrypt.go of origin.
func TestReencrypt(t *testing.T) {
	t.Parallel()
	it(t, "should support reencrypt to services backed by a serving certificate automatically", servingCertificate)
}

// servingCertificate: a re-encrypt route without destinationCACertificate trusts the authority
// of the cluster's services, and no other.
func servingCertificate(t *testing.T) {
	n := newNamespace(t, nil)
	ca := issue(t, "service authority", nil, true)
	configMap(t, n.name, map[string]string{"service-ca.crt": ca.pem()})
	s := env("DEFAULT_DESTINATION_CA_PATH", "/var/run/configmaps/service-ca/service-ca.crt")
	s.Files = map[string]string{"/var/run/configmaps/service-ca/service-ca.crt": "configmap/" + n.name + "/service-ca.crt"}
	r := with(t, s)
	for name, authority := range map[string]*identity{"serving-cert": &ca, "other": nil} {
		tlsSecret(t, n.name, name, issue(t, name+"."+n.name+".svc", authority, false))
		n.start(pod{name: name, tls: name})
		n.service(name, name)
		route := n.newRoute(r, name)
		route.Spec.Port.TargetPort.StrVal = "https"
		route.Spec.TLS = &routev1.TLSConfig{Termination: routev1.TLSTerminationReencrypt}
		n.create(route)
	}
	n.answers(r, "https://"+n.host("serving-cert")+"/", 200)
	n.running("other")
	n.answers(r, "https://"+n.host("other")+"/", 503)
}
