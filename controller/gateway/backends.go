package gateway

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/controller/source"
	"turnout/internal/wire/protocol"
	"turnout/routing"
	"turnout/routing/header"
)

// backend is a reference of a route to a Service, resolved as far as it does not depend on the Gateway.
type backend struct {
	key     string // tells it from the others of the rule
	weight  int
	reason  gatewayv1.RouteConditionReason // why it cannot be used; "" = it can
	message string

	target  use
	servers *servers
	port    *corev1.ServicePort
	policy  *policy // nil = endpoints are spoken to without TLS
	request *header.Actions
	answer  *header.Actions
}

// use is a port of a Service that a route refers to.
type use struct {
	service source.Key
	port    gatewayv1.PortNumber
}

// backendOf resolves a reference of a route.
func (j *Judge) backendOf(o *Objects, r *route, ref *gatewayv1.BackendObjectReference) *backend {
	b := &backend{weight: 1}
	b.target = use{source.Key{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(r.ref.Namespace))), Name: string(ref.Name)}, value(ref.Port, 0)}
	b.key = fmt.Sprintf("%s:%d", b.target.service, b.target.port)
	service := b.target.service
	if group, kind := value(ref.Group, ""), value(ref.Kind, "Service"); group != "" || kind != "Service" {
		b.key = fmt.Sprintf("%s.%s/%s", kind, group, b.key)
		b.wrong(gatewayv1.RouteReasonInvalidKind, fmt.Sprintf("Backend %s is a %s of group %q; allowed is a Service", ref.Name, kind, group))
		return b
	}
	if !j.permitted(r.ref.Kind, r.ref.Namespace, "Service", service) {
		b.wrong(gatewayv1.RouteReasonRefNotPermitted, fmt.Sprintf("No ReferenceGrant of namespace %s lets a %s of namespace %s refer to Service %s", service.Namespace, r.ref.Kind, r.ref.Namespace, service.Name))
		return b
	}
	known := o.Services.Get(service)
	if known == nil || known.Object == nil {
		b.wrong(gatewayv1.RouteReasonBackendNotFound, "Service "+service.String()+" does not exist")
		return b
	}
	if known.Object.Spec.Type == corev1.ServiceTypeExternalName {
		b.wrong(gatewayv1.RouteReasonBackendNotFound, "Service "+service.String()+" is of type ExternalName, which names no endpoints")
		return b
	}
	for i := range known.Object.Spec.Ports {
		if p := &known.Object.Spec.Ports[i]; p.Port == b.target.port && (p.Protocol == corev1.ProtocolUDP) == (r.ref.Kind == kindUDPRoute) {
			b.port = p
		}
	}
	if b.port == nil {
		b.noPort(known.Object)
		return b
	}
	if r.ref.Kind != kindTCPRoute && r.ref.Kind != kindUDPRoute {
		b.policy = j.policies.of(service, b.port.Name)
	}
	j.protocolOf(r, b)
	if b.reason == "" {
		b.servers = j.serversOf(o, service, known, r.ref.Kind == kindUDPRoute)
	}
	return b
}

// noPort says which port a Service does not have.
func (b *backend) noPort(object *corev1.Service) {
	for i := range object.Spec.Ports {
		if object.Spec.Ports[i].Port == b.target.port {
			b.wrong(gatewayv1.RouteReasonUnsupportedProtocol, fmt.Sprintf("Port %d of Service %s has protocol %s, which the route does not speak", b.target.port, b.target.service, object.Spec.Ports[i].Protocol))
			return
		}
	}
	b.wrong(gatewayv1.RouteReasonBackendNotFound, fmt.Sprintf("Service %s has no port %d", b.target.service, b.target.port))
}

func (b *backend) wrong(reason gatewayv1.RouteConditionReason, message string) {
	b.reason, b.message = reason, message
}

// Values of appProtocol that mean something here. Others are about what is within HTTP, or unknown, and say nothing against HTTP/1.1.
const (
	appH2C = "kubernetes.io/h2c"
	appWS  = "kubernetes.io/ws"
	appWSS = "kubernetes.io/wss"
)

// protocolOf says whether what a Service speaks can be spoken by a route for HTTP.
func (j *Judge) protocolOf(r *route, b *backend) {
	if r.ref.Kind != kindHTTPRoute && r.ref.Kind != kindGRPCRoute {
		return
	}
	switch app := value(b.port.AppProtocol, ""); {
	case app == appWSS && b.policy == nil:
		b.wrong(gatewayv1.RouteReasonUnsupportedProtocol, fmt.Sprintf("Port %d of Service %s has appProtocol %s and no BackendTLSPolicy", b.target.port, b.target.service, app))
	case app == appH2C || app == appWS || app == appWSS:
	case strings.HasPrefix(app, "kubernetes.io/"):
		b.wrong(gatewayv1.RouteReasonUnsupportedProtocol, fmt.Sprintf("Port %d of Service %s has appProtocol %s; supported: %s, %s, %s", b.target.port, b.target.service, app, appH2C, appWS, appWSS))
	}
}

// serversOf returns the endpoints of a Service. UDP has its own, because a port without a name may be of either protocol.
func (j *Judge) serversOf(o *Objects, key source.Key, known *Service, udp bool) *servers {
	at := serversKey{key, udp}
	if made := j.servers[at]; made != nil && made.service == known {
		return made
	}
	options := endpoints.Options{IncludeUDP: udp, Targets: j.cfg.Targets}
	made := &servers{service: known, set: endpoints.Service(options, key.Namespace, key.Name, known.Object, known.Slices)}
	j.servers[at] = made
	return made
}

type serversKey struct {
	service source.Key
	udp     bool
}

// servers are the endpoints of a version of a Service, and the targets made of them, which routes share.
type servers struct {
	service *Service
	set     *endpoints.Set
	made    map[targetsOf][]balancer.Target
}

// portProtocol is a port of a Service, by name, and the protocol in which its endpoints are spoken to.
type portProtocol struct {
	port     string
	protocol protocol.Protocol
}

// targetsOf identifies a list of targets, together with the endpoints.
type targetsOf struct {
	portProtocol
	tls *balancer.TLS // nil = none
}

// mostTargets bounds servers.made, which would otherwise keep unused TLS identities.
const mostTargets = 64

// targets returns the servers at a port, with TLS if tls is not nil. All rules for that port share
// the list, so callers must not change it.
func (s *servers) targets(to portProtocol, tls *balancer.TLS) []balancer.Target {
	of := targetsOf{to, tls}
	if made, ok := s.made[of]; ok {
		return made
	}
	if s.made == nil || len(s.made) >= mostTargets {
		s.made = map[targetsOf][]balancer.Target{}
	}
	made := endpoints.Targets(endpoints.Kind{Port: to.port}, []endpoints.Weighted{{Set: s.set, Weight: 1, TLS: tls}})
	for i := range made {
		made[i].Protocol = to.protocol
	}
	s.made[of] = made
	return made
}

// poolKey returns the key of the pool of b for rules of a Gateway. It differs where targets do:
// rules of a route with one key share a pool. Rules that pass TLS of clients through use no
// BackendTLSPolicy, and with one the endpoints see the client certificate of the Gateway, if that
// has one.
func (b *backend) poolKey(g *gateway, sealed bool) string {
	switch {
	case b.policy == nil:
	case sealed:
		return b.key + " (passthrough)"
	case g.client != nil:
		return b.key + " (Gateway " + g.key.String() + ")"
	}
	return b.key
}

// backendSpec returns the backend b of a route for the rules on a Gateway. sealed means that TLS of
// clients passes through.
func (j *Judge) backendSpec(r *route, g *gateway, b *backend, sealed bool) routing.BackendSpec {
	spec := routing.BackendSpec{Key: b.poolKey(g, sealed), Weight: b.weight, RequestActions: b.request, ResponseActions: b.answer, Pool: j.pool(r)}
	if b.reason != "" {
		spec.Status = statusUnusable
		return spec
	}
	targets, err := j.targets(r, g, b, sealed)
	switch {
	case err != nil:
		spec.Status = statusUnusable
	case len(targets) == 0:
		spec.Status = statusNoEndpoint
	default:
		spec.Targets = targets
	}
	return spec
}

// What is answered for a backend that has no servers.
const (
	statusUnusable   = 500
	statusNoEndpoint = 503
)

// pool says how the servers of a route are chosen.
func (j *Judge) pool(r *route) balancer.PoolConfig {
	config := j.cfg.Pool
	config.Namespace = r.ref.Namespace
	return config
}

// targets are the servers of a backend.
func (j *Judge) targets(r *route, g *gateway, b *backend, sealed bool) ([]balancer.Target, error) {
	to := portProtocol{port: b.port.Name, protocol: protocol.HTTP1}
	switch app := value(b.port.AppProtocol, ""); {
	case r.ref.Kind == kindUDPRoute || r.ref.Kind == kindTCPRoute || r.ref.Kind == kindTLSRoute:
		to.protocol = protocol.TCP
	case b.policy == nil && (r.ref.Kind == kindGRPCRoute || app == appH2C || app == "h2c"):
		to.protocol = protocol.HTTP2
	}
	if b.policy == nil || sealed {
		return b.servers.targets(to, nil), nil
	}
	tls, err := j.policyTLS(g, b.policy, r.ref.Kind)
	if err != nil {
		return nil, err
	}
	return b.servers.targets(to, tls), nil
}
