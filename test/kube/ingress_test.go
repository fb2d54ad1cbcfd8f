package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"turnout/test/cluster/process"
	"turnout/test/kube/internal/router"
)

// newIngress is an Ingress of a class for a host to port 80 of the service web, with the certificate of a Secret unless that is "".
func newIngress(name, class, host, secret string) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressSpec{
		IngressClassName: &class,
		Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: "/", PathType: &prefix,
			Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		}}}}}},
	}}
	if secret != "" {
		o.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: secret}}
	}
	return o
}

func (n namespace) createIngress(o *networkingv1.Ingress) {
	n.Helper()
	must[*networkingv1.Ingress](n)(shared.core.NetworkingV1().Ingresses(n.name).Create(n.Context(), o, metav1.CreateOptions{}))
	n.Cleanup(func() {
		_ = shared.core.NetworkingV1().Ingresses(n.name).Delete(context.Background(), o.Name, metav1.DeleteOptions{}) // it may be gone
	})
}

// addresses waits until the status of an Ingress has these addresses.
func (n namespace) addresses(name string, want ...string) {
	n.Helper()
	eventually(n, "addresses of Ingress "+name, func() error {
		o, err := shared.core.NetworkingV1().Ingresses(n.name).Get(n.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var got []string
		for _, entry := range o.Status.LoadBalancer.Ingress {
			got = append(got, entry.IP+entry.Hostname)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%q, want %q", got, want)
		}
		return nil
	})
}

// tells waits until there is an Event about an Ingress, as kubectl describe finds them.
func (n namespace) tells(name, reason, message string) {
	n.Helper()
	eventually(n, "event "+reason, func() error {
		o, err := shared.core.NetworkingV1().Ingresses(n.name).Get(n.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		about := fields.Set{"involvedObject.name": name, "involvedObject.kind": "Ingress", "involvedObject.uid": string(o.UID)}
		list, err := shared.core.CoreV1().Events(n.name).List(n.Context(), metav1.ListOptions{FieldSelector: about.String()})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == reason && strings.Contains(e.Message, message) {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
}

// TestIngress: an Ingress is served under the role that is shipped, its certificate comes when its Secret may be read, its status has the router's address,
// events say what cannot be served, and all of it goes with its class.
func TestIngress(t *testing.T) {
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	host := "web.ingress.test"
	cert := issue(t, host)
	n.putSecret(newSecret("cert", cert))
	n.createIngress(newIngress("web", "turnout", host, "cert"))
	n.createIngress(newIngress("foreign", "other", "foreign.ingress.test", ""))
	missing := newIngress("missing", "turnout", "missing.ingress.test", "")
	missing.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = "nothing"
	n.createIngress(missing)
	first := newRouter(t, "first", "--ingress", "--ingress-status-address", "10.1.2.3,router.test")
	newRouter(t, "second", "--ingress", "--ingress-status-address", "10.1.2.3,router.test")
	serves(t, first, "http://"+host+"/", at(pod1))
	answers(t, first, "http://foreign.ingress.test/", 404)
	answers(t, first, "http://missing.ingress.test/", 503)
	n.addresses("web", "10.1.2.3", "router.test")
	n.tells("missing", "ServiceNotFound", "the Service nothing does not exist")
	n.tells("web", "CertificateNotUsed", "may not get, watch, list it")

	n.grant(all(), "cert")
	shows(t, first, host, cert)
	n.service("nothing", pod2)
	serves(t, first, "http://missing.ingress.test/", at(pod2))
	if foreign := must[*networkingv1.Ingress](t)(shared.core.NetworkingV1().Ingresses(n.name).Get(t.Context(), "foreign", metav1.GetOptions{})); len(foreign.Status.LoadBalancer.Ingress) != 0 {
		t.Errorf("status of an Ingress of others: %v", foreign.Status)
	}

	o := must[*networkingv1.Ingress](t)(shared.core.NetworkingV1().Ingresses(n.name).Get(t.Context(), "web", metav1.GetOptions{}))
	other := "other"
	o.Spec.IngressClassName = &other
	must[*networkingv1.Ingress](t)(shared.core.NetworkingV1().Ingresses(n.name).Update(t.Context(), o, metav1.UpdateOptions{}))
	answers(t, first, "http://"+host+"/", 404)
	n.addresses("web")
}

// TestIngressToRoute: Routes are made under the role that is shipped, served by a router, and follow the Ingress; the canonical host name comes back.
func TestIngressToRoute(t *testing.T) {
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	host := "web.convert.test"
	one, two := issue(t, host), issue(t, host)
	n.putSecret(newSecret("cert", one))
	r := newRouter(t, "converted", "--router-canonical-hostname", "router.convert.test")
	startConverter(t)
	class := must[*networkingv1.IngressClass](t)(shared.core.NetworkingV1().IngressClasses().Create(t.Context(),
		&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "openshift-default"}, Spec: networkingv1.IngressClassSpec{Controller: "openshift.io/ingress-to-route"}}, metav1.CreateOptions{}))
	t.Cleanup(func() {
		_ = shared.core.NetworkingV1().IngressClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{})
	})
	o := newIngress("web", class.Name, host, "cert")
	exact := networkingv1.PathTypeExact
	skipped := o.Spec.Rules[0].HTTP.Paths[0]
	skipped.PathType, skipped.Path = &exact, "/exact"
	o.Spec.Rules[0].HTTP.Paths = append(o.Spec.Rules[0].HTTP.Paths, skipped)
	n.createIngress(o)
	shows(t, r, host, one)
	n.addresses("web", "router.convert.test")
	n.tells("web", "IncompleteIngressToRouteRules", "Unsupported exact path type in rule at index 0, path index 1")

	n.putSecret(newSecret("cert", two))
	shows(t, r, host, two)
	live := must[*networkingv1.Ingress](t)(shared.core.NetworkingV1().Ingresses(n.name).Get(t.Context(), "web", metav1.GetOptions{}))
	live.Annotations = map[string]string{"haproxy.router.openshift.io/timeout": "5s"}
	must[*networkingv1.Ingress](t)(shared.core.NetworkingV1().Ingresses(n.name).Update(t.Context(), live, metav1.UpdateOptions{}))
	eventually(t, "annotation of the Route", func() error {
		if route, err := n.converted(); err != nil || route.Annotations["haproxy.router.openshift.io/timeout"] != "5s" {
			return fmt.Errorf("%v, %v", err, route)
		}
		return nil
	})
	n.removeSecret("cert")
	eventually(t, "no Route", func() error {
		if route, err := n.converted(); err == nil {
			return fmt.Errorf("there is %s", route.Name)
		}
		return nil
	})
	n.addresses("web")
}

// converted is the one Route of the namespace.
func (n namespace) converted() (*routev1.Route, error) {
	list, err := shared.routes.RouteV1().Routes(n.name).List(n.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d routes", len(list.Items))
	}
	return &list.Items[0], nil
}

// startConverter starts turnout ingress-to-route under its account. It ends with the test.
func startConverter(t testing.TB) {
	t.Helper()
	token := must[string](t)(shared.Token(t.Context(), routerNamespace, "ingress-to-route"))
	file := must[string](t)(shared.Kubeconfig("converter", token))
	log := router.NewLog()
	p := must[*process.Process](t)(process.Start(process.Spec{
		Path: shared.binary, Args: []string{"ingress-to-route", "--kubeconfig", file, "--identity", "test", "--admin-addr", nextIP() + ":1936"},
		Env: []string{"GORACE=halt_on_error=1"}, Output: log,
	}))
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of the conversion:\n%s", log)
		}
	})
}
