package gateway

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/expansion"
	"turnout/controller/gateway/translate"
	"turnout/routing"
)

// The kinds of objects of the Gateway API.
const (
	kindClass       = "GatewayClass"
	kindGateway     = "Gateway"
	kindListenerSet = "ListenerSet"
	kindHTTPRoute   = "HTTPRoute"
	kindGRPCRoute   = "GRPCRoute"
	kindTLSRoute    = "TLSRoute"
	kindTCPRoute    = "TCPRoute"
	kindUDPRoute    = "UDPRoute"
	kindGrant       = "ReferenceGrant"
	kindPolicy      = "BackendTLSPolicy"
)

// route is a route of any kind.
type route struct {
	ref       Ref
	object    metav1.Object
	parents   []gatewayv1.ParentReference
	hostnames []gatewayv1.Hostname
	rules     func(*translate.Compiler) []rule
	size      func(places int, p expansion.Precision) expansion.Size // without Source
}

// rule is a rule of a route of any kind, with what its kind can say.
type rule struct {
	matches  []match
	filters  []gatewayv1.HTTPRouteFilter
	backends []gatewayv1.HTTPBackendRef
	timeouts *gatewayv1.HTTPRouteTimeouts
	retry    *gatewayv1.HTTPRouteRetry
	session  *gatewayv1.SessionPersistence
}

// match is a match of a rule, or why it cannot be one.
type match struct {
	is    routing.Match
	wrong *translate.Error
}

// route returns a route, nil if there is none.
func (o *Objects) route(ref Ref) *route {
	switch ref.Kind {
	case kindHTTPRoute:
		if r := o.HTTPRoutes.Get(ref.Key); r != nil {
			return &route{ref, r, r.Spec.ParentRefs, r.Spec.Hostnames, func(c *translate.Compiler) []rule { return httpRules(c, r) },
				func(places int, p expansion.Precision) expansion.Size { return expansion.HTTPRoute(&r.Spec, places, p) }}
		}
	case kindGRPCRoute:
		if r := o.GRPCRoutes.Get(ref.Key); r != nil {
			return &route{ref, r, r.Spec.ParentRefs, r.Spec.Hostnames, func(c *translate.Compiler) []rule { return grpcRules(c, r) },
				func(places int, p expansion.Precision) expansion.Size { return expansion.GRPCRoute(&r.Spec, places, p) }}
		}
	case kindTLSRoute:
		if r := o.TLSRoutes.Get(ref.Key); r != nil {
			return streamRoute(ref, r, r.Spec.ParentRefs, r.Spec.Hostnames, r.Spec.Rules, tlsBackends)
		}
	case kindTCPRoute:
		if r := o.TCPRoutes.Get(ref.Key); r != nil {
			return streamRoute(ref, r, r.Spec.ParentRefs, nil, r.Spec.Rules, tcpBackends)
		}
	case kindUDPRoute:
		if r := o.UDPRoutes.Get(ref.Key); r != nil {
			return streamRoute(ref, r, r.Spec.ParentRefs, nil, r.Spec.Rules, udpBackends)
		}
	}
	return nil
}

// streamRoute returns a route whose rules have backends and nothing else.
func streamRoute[R any](ref Ref, object metav1.Object, parents []gatewayv1.ParentReference, hostnames []gatewayv1.Hostname, rules []R, backends func(*R) []gatewayv1.BackendRef) *route {
	return &route{
		ref, object, parents, hostnames, func(*translate.Compiler) []rule { return streamRules(rules, backends) },
		func(places int, _ expansion.Precision) expansion.Size {
			return expansion.StreamRoute(rules, backends, places)
		},
	}
}

// httpRules are the rules of an HTTPRoute; a rule without a match takes all requests.
func httpRules(c *translate.Compiler, r *gatewayv1.HTTPRoute) []rule {
	rules := make([]rule, 0, len(r.Spec.Rules))
	for i := range r.Spec.Rules {
		in := &r.Spec.Rules[i]
		out := rule{filters: in.Filters, backends: in.BackendRefs, timeouts: in.Timeouts, retry: in.Retry, session: in.SessionPersistence}
		matches := in.Matches
		if len(matches) == 0 {
			matches = []gatewayv1.HTTPRouteMatch{{}}
		}
		for m := range matches {
			is, wrong := c.Match(&matches[m])
			out.matches = append(out.matches, match{is, wrong})
		}
		rules = append(rules, out)
	}
	return rules
}

// grpcRules are the rules of a GRPCRoute, as if they were those of an HTTPRoute.
func grpcRules(c *translate.Compiler, r *gatewayv1.GRPCRoute) []rule {
	in := r.Spec.Rules
	if len(in) == 0 {
		in = []gatewayv1.GRPCRouteRule{{}}
	}
	rules := make([]rule, 0, len(in))
	for i := range in {
		out := rule{filters: httpFilters(in[i].Filters), session: in[i].SessionPersistence}
		matches := in[i].Matches
		if len(matches) == 0 {
			matches = []gatewayv1.GRPCRouteMatch{{}}
		}
		for m := range matches {
			is, wrong := c.GRPCMatch(&matches[m])
			out.matches = append(out.matches, match{is, wrong})
		}
		for _, b := range in[i].BackendRefs {
			out.backends = append(out.backends, gatewayv1.HTTPBackendRef{BackendRef: b.BackendRef, Filters: httpFilters(b.Filters)})
		}
		rules = append(rules, out)
	}
	return rules
}

// httpFilters are filters of a GRPCRoute, as an HTTPRoute has them.
func httpFilters(list []gatewayv1.GRPCRouteFilter) []gatewayv1.HTTPRouteFilter {
	var out []gatewayv1.HTTPRouteFilter
	for _, f := range list {
		out = append(out, gatewayv1.HTTPRouteFilter{
			Type: gatewayv1.HTTPRouteFilterType(f.Type), RequestHeaderModifier: f.RequestHeaderModifier, ResponseHeaderModifier: f.ResponseHeaderModifier,
			RequestMirror: f.RequestMirror, ExtensionRef: f.ExtensionRef,
		})
	}
	return out
}

// streamRules are the rules of a route that has backends and nothing else.
func streamRules[R any](in []R, backends func(*R) []gatewayv1.BackendRef) []rule {
	rules := make([]rule, 0, len(in))
	for i := range in {
		out := rule{matches: []match{{}}}
		for _, b := range backends(&in[i]) {
			out.backends = append(out.backends, gatewayv1.HTTPBackendRef{BackendRef: b})
		}
		rules = append(rules, out)
	}
	return rules
}

func tlsBackends(r *gatewayv1.TLSRouteRule) []gatewayv1.BackendRef { return r.BackendRefs }
func tcpBackends(r *gatewayv1.TCPRouteRule) []gatewayv1.BackendRef { return r.BackendRefs }
func udpBackends(r *gatewayv1.UDPRouteRule) []gatewayv1.BackendRef { return r.BackendRefs }

// created is when the route was made.
func (r *route) created() time.Time { return r.object.GetCreationTimestamp().Time }

// key of the rule number n.
func (r *route) key(n int) routing.RouteKey {
	return routing.RouteKey{Namespace: r.ref.Namespace, Name: r.ref.Name, UID: string(r.object.GetUID()), Rule: n}
}
