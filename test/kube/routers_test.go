package kube

import (
	"fmt"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"

	"turnout/test/kube/internal/router"
)

// newRouter starts a router that serves the cluster under the account of its role, and
// waits until it is ready.
func newRouter(t testing.TB, name string, args ...string) *router.Router {
	t.Helper()
	r := startRouter(t, name, args...)
	r.WaitReady(t)
	return r
}

// startRouter is newRouter that waits only until the router listens.
func startRouter(t testing.TB, name string, args ...string) *router.Router {
	t.Helper()
	return router.Start(t, router.Config{
		Binary: shared.binary, IP: nextIP(),
		Args: append([]string{"--name", name, "--kubeconfig", kubeconfig(t)}, args...),
		Env:  []string{"GORACE=halt_on_error=1"},
	})
}

// nextIP is an address that no router has had.
func nextIP() string {
	shared.routers++
	return fmt.Sprintf("10.0.%d.%d", 1+shared.routers/250, 1+shared.routers%250)
}

// kubeconfig is a file with a fresh token of the router's account.
func kubeconfig(t testing.TB) string {
	t.Helper()
	token := must[string](t)(shared.Token(t.Context(), routerNamespace, routerAccount))
	return must[string](t)(shared.Kubeconfig(fmt.Sprintf("router-%d", shared.routers), token))
}

// entry is what a router says in the status of a route, nil for nothing.
func entry(route *routev1.Route, routerName string) *routev1.RouteIngress {
	for i := range route.Status.Ingress {
		if route.Status.Ingress[i].RouterName == routerName {
			return &route.Status.Ingress[i]
		}
	}
	return nil
}

// verdict is the Admitted condition of a router as "host True", or "host False Reason: message".
// With a reserve it is "host True Reason: message".
func verdict(route *routev1.Route, routerName string) string {
	e := entry(route, routerName)
	if e == nil {
		return "nothing"
	}
	for _, c := range e.Conditions {
		switch {
		case c.Type != routev1.RouteAdmitted:
		case c.Status == corev1.ConditionTrue && c.Reason == "":
			return e.Host + " True"
		default:
			return fmt.Sprintf("%s %s %s: %s", e.Host, c.Status, c.Reason, c.Message)
		}
	}
	return e.Host + " without condition"
}

// says waits until a router says want of a route (see verdict).
func (n namespace) says(routeName, routerName, want string) *routev1.Route {
	n.Helper()
	return n.waitVerdict(routeName, routerName, want, func(got string) bool { return got == want })
}

// saysLike waits until what a router says of a route begins with want.
func (n namespace) saysLike(routeName, routerName, want string) *routev1.Route {
	n.Helper()
	return n.waitVerdict(routeName, routerName, want, func(got string) bool { return strings.HasPrefix(got, want) })
}

func (n namespace) waitVerdict(routeName, routerName, want string, ok func(got string) bool) *routev1.Route {
	n.Helper()
	var route *routev1.Route
	eventually(n, fmt.Sprintf("router %s on route %s/%s", routerName, n.name, routeName), func() error {
		route = n.get(routeName)
		if got := verdict(route, routerName); !ok(got) {
			return fmt.Errorf("it says %q, want %q", got, want)
		}
		return nil
	})
	return route
}

// serves waits until a URL is answered by the pod at an address.
func serves(t testing.TB, r *router.Router, url, address string) router.Response {
	t.Helper()
	var got router.Response
	eventually(t, url+" at router "+r.IP, func() error {
		var err error
		if got, err = r.Get(url); err != nil {
			return err
		}
		if got.Code != 200 || got.Pod.Pod != address {
			return fmt.Errorf("%d by %q, want 200 by %s", got.Code, got.Pod.Pod, address)
		}
		return nil
	})
	return got
}

// answers waits until a URL is answered with a status code.
func answers(t testing.TB, r *router.Router, url string, code int) router.Response {
	t.Helper()
	var got router.Response
	eventually(t, url+" at router "+r.IP, func() error {
		var err error
		if got, err = r.Get(url); err != nil {
			return err
		}
		if got.Code != code {
			return fmt.Errorf("%d by %q, want %d", got.Code, got.Pod.Pod, code)
		}
		return nil
	})
	return got
}
