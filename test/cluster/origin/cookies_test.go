package origin

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// TestCookies is test/extended/router/cookies_otp.go of origin.
func TestCookies(t *testing.T) {
	t.Parallel()
	it(t, "[OCP-11903] haproxy cookies based sticky session for unsecure routes", stickyCookie)
	it(t, "[OCP-12566] Cookie name should not use openshift prefix", cookieName)
	it(t, "[OCP-15872] can set cookie name for unsecure routes by annotation", cookieByAnnotation)
	it(t, "[OCP-35547] cookie-same-site route annotation accepts None Lax or Strict attribute for edge routes", func(t *testing.T) {
		sameSite(t, routev1.TLSTerminationEdge)
	})
	it(t, "[OCP-35548] cookie-same-site route annotation accepts None Lax or Strict attribute for Reencrypt routes", func(t *testing.T) {
		sameSite(t, routev1.TLSTerminationReencrypt)
	})
}

// twoPods makes a route to two pods and waits until both answer.
func (n namespace) twoPods(r *router) string {
	n.Helper()
	for _, name := range []string{"one", "two"} {
		n.start(pod{name: name, labels: map[string]string{"app": "web"}})
	}
	n.service("web", "web")
	at := "http://" + n.create(n.newRoute(r, "web")).Spec.Host + "/"
	n.reaches(r, at, "one", "two")
	return at
}

// stickyCookie: with the cookie of an answer all requests go to the pod that gave it; with the
// annotation disable_cookies they go to both.
func stickyCookie(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	at := n.twoPods(r)
	first := n.got(r, at)
	cookie, _, _ := strings.Cut(first.Get("Set-Cookie"), ";")
	for range 10 {
		if got := n.got(r, at, "Cookie: "+cookie); got.from() != first.from() || got.Get("Set-Cookie") != "" {
			t.Errorf("%s answers and sets %q, the cookie is of %s", got.from(), got.Get("Set-Cookie"), first.from())
		}
	}
	n.change("web", func(route *routev1.Route) {
		route.Annotations = map[string]string{"haproxy.router.openshift.io/disable_cookies": "true"}
	})
	seen := map[string]bool{}
	eventually(t, "answers of both pods", func() error {
		got, err := r.get(at, "Cookie: "+cookie)
		if err != nil {
			return err
		}
		if seen[got.from()] = true; len(seen) < 2 {
			return fmt.Errorf("only of %v", seen)
		}
		return nil
	})
}

// cookieName: name and value of the cookie say nothing of OpenShift and no address.
func cookieName(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	got := n.got(r, n.twoPods(r)).Get("Set-Cookie")
	if got == "" || strings.Contains(got, "OPENSHIFT") || regexp.MustCompile(`\d+\.\d+\.\d+\.\d+`).MatchString(got) {
		t.Errorf("the cookie is %q", got)
	}
}

// cookieByAnnotation: the annotation names the cookie.
func cookieByAnnotation(t *testing.T) {
	n := newNamespace(t, nil)
	r := with(t, settings{})
	at := n.twoPods(r)
	n.change("web", func(route *routev1.Route) {
		route.Annotations = map[string]string{"router.openshift.io/cookie_name": "unsecure-cookie_1"}
	})
	n.setsCookie(r, at, `^unsecure-cookie_1=[0-9a-zA-Z]+; `)
}

// setsCookie waits until the cookie of an answer looks so.
func (n namespace) setsCookie(r *router, at, pattern string) {
	n.Helper()
	eventually(n, "cookie", func() error {
		got, err := r.get(at)
		if err == nil && !regexp.MustCompile(pattern).MatchString(got.Get("Set-Cookie")) {
			err = fmt.Errorf("it is %q, want %s", got.Get("Set-Cookie"), pattern)
		}
		return err
	})
}

// sameSite: the attribute of a route with TLS is None, and what the annotation says.
func sameSite(t *testing.T, kind routev1.TLSTerminationType) {
	t.Helper()
	n := newNamespace(t, nil)
	r := with(t, settings{})
	cert := issue(t, "web."+n.name+".svc", nil, false)
	tlsSecret(t, n.name, "cert", cert)
	n.start(pod{name: "web", tls: "cert"})
	n.service("web", "web")
	route := n.newRoute(r, "web")
	if route.Spec.TLS = (&routev1.TLSConfig{Termination: kind}); kind == routev1.TLSTerminationReencrypt {
		route.Spec.Port.TargetPort.StrVal, route.Spec.TLS.DestinationCACertificate = "https", cert.pem()
	}
	n.create(route)
	at := "https://" + route.Spec.Host + "/"
	n.setsCookie(r, at, `; Secure; SameSite=None$`)
	for _, attribute := range []string{"Lax", "Strict"} {
		n.change("web", func(route *routev1.Route) {
			route.Annotations = map[string]string{"router.openshift.io/cookie-same-site": attribute}
		})
		n.setsCookie(r, at, "; Secure; SameSite="+attribute+"$")
	}
}
