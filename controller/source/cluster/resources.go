package cluster

import (
	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// resources returns what a feeder reads.
func (c *clients) resources(cfg *Config) []*resource {
	all := c.served(cfg)
	switch {
	case cfg.Scheduling:
		all = c.scheduled(cfg)
	case cfg.Naming:
		all = []*resource{c.bindings(), c.routers()}
	}
	if cfg.Conversion {
		all = []*resource{c.routes(cfg), c.services(), c.ingresses(), c.classes()}
		all[0].optional = cfg.Ingresses // then Routes are converted, if there are any
	}
	for _, r := range all {
		r.parameters = c.parameters
	}
	return all
}

// served is what a router reads.
func (c *clients) served(cfg *Config) []*resource {
	all := []*resource{
		c.routes(cfg), c.services(),
		{
			kind: source.EndpointSlice, client: c.discovery, plural: "endpointslices", object: &discoveryv1.EndpointSlice{},
			labels: discoveryv1.LabelServiceName, list: func() runtime.Object { return new(discoveryv1.EndpointSliceList) },
		},
	}
	if cfg.Ingresses {
		all[0].optional = true
		all = append(all, c.ingresses())
	}
	if cfg.GatewayAPI {
		all[0].optional = true
		all = append(all, c.gatewayAPI()...)
	}
	if cfg.Gateway != (source.Key{}) {
		all = all[1:] // no Routes
	}
	if cfg.Router != "" {
		bindings := c.bindings()
		bindings.fields = fields.OneTermEqualSelector("spec.router", cfg.Router).String()
		all = append(all, bindings)
	}
	for _, r := range all {
		r.namespace = cfg.Namespace
		if r.kind == source.Gateway && cfg.Gateway != (source.Key{}) {
			r.namespace, r.fields = cfg.Gateway.Namespace, fields.OneTermEqualSelector("metadata.name", cfg.Gateway.Name).String()
		}
	}
	if cfg.Ingresses {
		all = append(all, c.classes())
	}
	if cfg.GatewayAPI {
		all = append(all, c.gatewayClasses())
	}
	if cfg.NamespaceLabels != "" || cfg.Labels || cfg.GatewayAPI {
		all = append(all, c.namespaces(cfg))
	}
	return all
}

// scheduled is what the scheduler reads.
func (c *clients) scheduled(cfg *Config) []*resource {
	return []*resource{
		c.routes(cfg), c.namespaces(cfg), c.bindings(), c.routers(),
		{
			kind: source.RouteScheduler, client: c.shards, plural: "routeschedulers", object: &shards.RouteScheduler{},
			list: func() runtime.Object { return new(shards.RouteSchedulerList) },
		},
	}
}

func (c *clients) routes(cfg *Config) *resource {
	return &resource{
		kind: source.Route, client: c.route, plural: "routes", object: &routev1.Route{},
		labels: cfg.RouteLabels, fields: cfg.RouteFields, list: func() runtime.Object { return new(routev1.RouteList) },
	}
}

func (c *clients) services() *resource {
	return &resource{
		kind: source.Service, client: c.core, plural: "services", object: &corev1.Service{},
		list: func() runtime.Object { return new(corev1.ServiceList) },
	}
}

func (c *clients) ingresses() *resource {
	return &resource{
		kind: source.Ingress, client: c.networking, plural: "ingresses", object: &networkingv1.Ingress{},
		list: func() runtime.Object { return new(networkingv1.IngressList) },
	}
}

func (c *clients) classes() *resource {
	return &resource{
		kind: source.IngressClass, client: c.networking, plural: "ingressclasses", object: &networkingv1.IngressClass{},
		list: func() runtime.Object { return new(networkingv1.IngressClassList) },
	}
}

func (c *clients) namespaces(cfg *Config) *resource {
	return &resource{
		kind: source.Namespace, client: c.core, plural: "namespaces", object: &corev1.Namespace{},
		labels: cfg.NamespaceLabels, list: func() runtime.Object { return new(corev1.NamespaceList) },
	}
}

func (c *clients) routers() *resource {
	return &resource{
		kind: source.Router, client: c.shards, plural: "routers", object: &shards.Router{},
		list: func() runtime.Object { return new(shards.RouterList) },
	}
}

func (c *clients) bindings() *resource {
	return &resource{
		kind: source.RouteBinding, client: c.shards, plural: "routebindings", object: &shards.RouteBinding{},
		list: func() runtime.Object { return new(shards.RouteBindingList) },
	}
}

// gatewayAPI are the kinds of the Gateway API that live in namespaces. A cluster may know some of them only.
func (c *clients) gatewayAPI() []*resource {
	all := []*resource{
		{kind: source.Gateway, plural: "gateways", object: &gatewayv1.Gateway{}, list: func() runtime.Object { return new(gatewayv1.GatewayList) }},
		{kind: source.ListenerSet, plural: "listenersets", object: &gatewayv1.ListenerSet{}, list: func() runtime.Object { return new(gatewayv1.ListenerSetList) }},
		{kind: source.HTTPRoute, plural: "httproutes", object: &gatewayv1.HTTPRoute{}, list: func() runtime.Object { return new(gatewayv1.HTTPRouteList) }},
		{kind: source.GRPCRoute, plural: "grpcroutes", object: &gatewayv1.GRPCRoute{}, list: func() runtime.Object { return new(gatewayv1.GRPCRouteList) }},
		{kind: source.TLSRoute, plural: "tlsroutes", object: &gatewayv1.TLSRoute{}, list: func() runtime.Object { return new(gatewayv1.TLSRouteList) }},
		{kind: source.TCPRoute, plural: "tcproutes", object: &gatewayv1.TCPRoute{}, list: func() runtime.Object { return new(gatewayv1.TCPRouteList) }},
		{kind: source.UDPRoute, plural: "udproutes", object: &gatewayv1.UDPRoute{}, list: func() runtime.Object { return new(gatewayv1.UDPRouteList) }},
		{kind: source.ReferenceGrant, plural: "referencegrants", object: &gatewayv1.ReferenceGrant{}, list: func() runtime.Object { return new(gatewayv1.ReferenceGrantList) }},
		{kind: source.BackendTLSPolicy, plural: "backendtlspolicies", object: &gatewayv1.BackendTLSPolicy{}, list: func() runtime.Object { return new(gatewayv1.BackendTLSPolicyList) }},
	}
	for _, r := range all {
		r.client, r.optional = c.gateway, true
	}
	return all
}

func (c *clients) gatewayClasses() *resource {
	return &resource{
		kind: source.GatewayClass, client: c.gateway, plural: "gatewayclasses", object: &gatewayv1.GatewayClass{}, optional: true,
		list: func() runtime.Object { return new(gatewayv1.GatewayClassList) },
	}
}

// groupOf returns the API of a kind that is there once somebody has installed it; "" for those of Kubernetes.
func groupOf(kind source.Kind) string {
	switch kind {
	case source.Route:
		return routev1.GroupVersion.String()
	case source.RouteBinding, source.Router, source.RouteScheduler:
		return shards.GroupVersion.String()
	default:
		return ""
	}
}
