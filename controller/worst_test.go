package controller

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/expansion"
	"turnout/controller/ingress"
	"turnout/controller/source"
)

// genes describe a legal object of a tenant. The search for the worst objects changes them.
type genes struct {
	kind                                      int
	ports, hosts, rules, matches              int
	headers, expressions, backends, mirrors   int
	filters, value, annotation, paths, copies int
}

// The kinds of objects that are searched.
const (
	geneHTTPRoute = iota
	geneIngress
	geneRoute
	geneKinds
)

// mutated returns genes with a few random changes, within the limits of the API.
func (g genes) mutated(r *rand.Rand) genes {
	for range 1 + r.IntN(3) {
		f := []struct {
			gene *int
			most int
		}{
			{&g.ports, 64}, {&g.hosts, 16}, {&g.rules, 16}, {&g.matches, 64}, {&g.headers, 16}, {&g.expressions, 16}, {&g.backends, 16},
			{&g.mirrors, 4}, {&g.filters, 16}, {&g.value, 4000}, {&g.annotation, 100 << 10}, {&g.paths, 5000},
		}[r.IntN(12)]
		*f.gene = r.IntN(f.most + 1)
		if r.IntN(3) == 0 {
			*f.gene = f.most
		}
	}
	return g
}

// events returns the objects that the genes describe. The first objects, such as the Gateway, are
// prerequisites and are not measured.
func (g genes) events() (before, measured []source.Event) {
	for i := range max(g.copies, 1) {
		name := fmt.Sprint("o", i)
		switch g.kind {
		case geneHTTPRoute:
			measured = append(measured, g.httpRoute(name))
		case geneIngress:
			measured = append(measured, g.ingress(name))
		default:
			measured = append(measured, g.route(name))
		}
	}
	return []source.Event{aListener(func(o *gatewayv1.Gateway) {
		o.Spec.Listeners = nil
		for i := range max(g.ports, 1) {
			o.Spec.Listeners = append(o.Spec.Listeners, gatewayv1.Listener{Name: gatewayv1.SectionName(fmt.Sprint("l", i)), Port: gatewayv1.PortNumber(8000 + i), Protocol: gatewayv1.HTTPProtocolType})
		}
	})}, measured
}

func (g genes) httpRoute(name string) source.Event {
	e := anHTTPRoute(name)
	h := e.Object.(*gatewayv1.HTTPRoute)
	h.CreationTimestamp = metav1.Unix(1, 0)
	for i := range g.hosts {
		h.Spec.Hostnames = append(h.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.%s.test", i, name)))
	}
	ref, left := h.Spec.Rules[0].BackendRefs[0], 128
	h.Spec.Rules = nil
	expression := gatewayv1.HeaderMatchRegularExpression
	for r := range max(g.rules, 1) {
		rule := gatewayv1.HTTPRouteRule{}
		for m := range min(max(g.matches, 1), left) {
			match := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: new(fmt.Sprintf("/%d/%d", r, m))}}
			for i := range g.headers {
				c := gatewayv1.HTTPHeaderMatch{Name: gatewayv1.HTTPHeaderName(fmt.Sprint("h", i)), Value: fmt.Sprint(m)}
				if i < g.expressions {
					c.Type, c.Value = &expression, fmt.Sprintf("%da{900}", m)
				}
				match.Headers = append(match.Headers, c)
			}
			rule.Matches = append(rule.Matches, match)
		}
		left -= len(rule.Matches)
		if g.filters > 0 {
			f := &gatewayv1.HTTPHeaderFilter{}
			for i := range g.filters {
				f.Set = append(f.Set, gatewayv1.HTTPHeader{Name: gatewayv1.HTTPHeaderName(fmt.Sprintf("x-%d-%d", r, i)), Value: strings.Repeat("v", g.value)})
			}
			rule.Filters = append(rule.Filters, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: f})
		}
		for range g.mirrors {
			rule.Filters = append(rule.Filters, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: &gatewayv1.HTTPRequestMirrorFilter{BackendRef: ref.BackendObjectReference}})
		}
		for range g.backends {
			rule.BackendRefs = append(rule.BackendRefs, ref)
		}
		if h.Spec.Rules = append(h.Spec.Rules, rule); left == 0 {
			break
		}
	}
	return e
}

func (g genes) ingress(name string) source.Event {
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{"haproxy.router.openshift.io/ip_allowlist": strings.Repeat("10.0.0.1 ", g.annotation/9)}}}
	prefix := networkingv1.PathTypePrefix
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 8080}}}
	for i := range max(g.hosts, 1) {
		rule := networkingv1.IngressRule{Host: fmt.Sprintf("h%d.%s.test", i, name)}
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
		for p := range g.paths / max(g.hosts, 1) / 2 {
			rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{Path: fmt.Sprint("/", p), PathType: &prefix, Backend: backend})
		}
		o.Spec.Rules = append(o.Spec.Rules, rule)
	}
	o.Spec.IngressClassName = new("mine")
	o.Spec.DefaultBackend = &backend
	o.Spec.TLS = []networkingv1.IngressTLS{{}}
	for i := range g.paths / 2 {
		o.Spec.TLS[0].Hosts = append(o.Spec.TLS[0].Hosts, fmt.Sprintf("t%d.%s", i, name))
	}
	return event(source.Ingress, o)
}

func (g genes) route(name string) source.Event {
	return aRoute(name, name+".test", 1, func(o *routev1.Route) {
		o.Annotations = map[string]string{}
		var list strings.Builder
		for i := range g.annotation / 16 {
			fmt.Fprintf(&list, "10.%d.%d.%d/30 ", i>>14&255, i>>6&255, i<<2&255)
		}
		o.Annotations["haproxy.router.openshift.io/ip_allowlist"] = list.String()
		if g.filters == 0 {
			return
		}
		o.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{}
		for i := range g.filters {
			o.Spec.HTTPHeaders.Actions.Request = append(o.Spec.HTTPHeaders.Actions.Request, routev1.RouteHTTPHeader{
				Name: fmt.Sprint("x-", i), Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: strings.Repeat("%[req.hdr(a)]", g.value/200)}},
			})
		}
	})
}

// grown returns the heap bytes that objects take, and their bytes as JSON.
func (g genes) grown(t *testing.T) (heap, bytes int) {
	r := newGatewayRig(t, GatewayOptions{})
	r.c.state.cfg.Options.Ingress = true
	r.do(aClass("mine", ingress.Controller))
	before, measured := g.events()
	r.do(before...)
	for _, e := range measured {
		data, err := json.Marshal(e.Object)
		if err != nil {
			t.Fatal(err)
		}
		bytes += len(data)
	}
	was := heapInUse()
	r.do(measured...)
	clear(r.status)
	heap = int(heapInUse()) - int(was)
	runtime.KeepAlive(r)
	return heap, bytes
}

// TestMemoryPerByte searches for the legal objects that take the most memory for their bytes. One
// object takes at most expansion.ObjectAllowance and expansion.BytesPerByte for each of its bytes.
// The objects of a namespace take at most expansion.NamespaceAllowance and the same per byte.
func TestMemoryPerByte(t *testing.T) {
	steps, copies := 1, 8
	if !testing.Short() {
		steps, copies = 60, 20
	}
	random := rand.New(rand.NewPCG(34, 4))
	seeds := [geneKinds][]genes{
		geneHTTPRoute: {
			{ports: 40, hosts: 16, rules: 2, matches: 64, backends: 1}, {ports: 2, hosts: 16, rules: 2, matches: 64, backends: 1},
			{ports: 1, hosts: 1, rules: 2, matches: 64, headers: 16, expressions: 2, backends: 1}, {ports: 2, hosts: 16, rules: 16, matches: 8, backends: 16, mirrors: 4},
			{ports: 32, hosts: 1, rules: 2, matches: 64, backends: 1},
		},
		geneIngress: {{hosts: 1, paths: 4000}, {hosts: 1, paths: 4000, annotation: 100 << 10}, {hosts: 16, paths: 100, annotation: 100 << 10}},
		geneRoute:   {{annotation: 100 << 10}, {filters: 16, value: 4000}, {annotation: 1000}},
	}
	for kind, list := range seeds {
		var worst genes
		most := 0.0
		try := func(g genes) {
			g.kind = kind
			allowance := expansion.ObjectAllowance
			if g.copies > 1 {
				allowance = expansion.NamespaceAllowance
			}
			heap, bytes := g.grown(t)
			share := float64(heap) / float64(allowance+expansion.BytesPerByte*bytes)
			if share > 1 {
				t.Errorf("%+v: %d KiB of heap for %d bytes, limit %d KiB", g, heap>>10, bytes, (allowance+expansion.BytesPerByte*bytes)>>10)
			}
			if share > most {
				most, worst = share, g
			}
		}
		for _, g := range list {
			try(g)
		}
		for range steps {
			try(worst.mutated(random))
		}
		t.Logf("kind %d: at most %.0f %% of the limit, with %+v", kind, 100*most, worst)
		worst.copies = copies
		most = 0
		try(worst)
		t.Logf("kind %d: %d of them %.0f %%", kind, copies, 100*most)
	}
}
