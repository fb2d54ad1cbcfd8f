package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/controller/gateway/translate"
	"turnout/controller/source"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// Config is by what a Judge goes.
type Config struct {
	Controller gatewayv1.GatewayController // whose classes are ours
	Endpoints  endpoints.Options           // which endpoints are taken
	Policy     routing.Policy              // of all rules, where a route says nothing else: timeouts, forwarded fields
	Pool       balancer.PoolConfig         // of all backends; the namespace is that of the route
	// UpstreamALPN are the protocols offered to endpoints with TLS, in order, for HTTPRoutes.
	UpstreamALPN []protocol.Protocol
	// Parameter says why a key of a ConfigMap that a parametersRef names cannot have its value; nil = it can. Without the function no key is known.
	Parameter func(key, value string) error
}

// Judge says what objects mean, and remembers what it said, so that it looks only at what changed since. It belongs to one goroutine.
type Judge struct {
	cfg      Config
	result   Result
	compiler translate.Compiler
	tls      translate.Interned[balancer.TLS]

	// What was read of objects, for as long as they are the same.
	certificates map[source.Key]certificate
	bundles      map[source.Key]bundle
	endpoints    map[setKey]endpointSet

	// These are of the judgement that is at work.
	refs     refs
	grants   map[string][]*gatewayv1.ReferenceGrant // by namespace
	gateways map[source.Key]*gateway
	sets     map[source.Key]setOf
	policies policies
}

// setOf is a ListenerSet with its Gateway.
type setOf struct {
	gateway *gateway
	set     *listenerSet
}

// refs is what objects refer to, as they are judged.
type refs struct {
	secrets, configMaps map[source.Key]struct{}
}

// New returns a Judge that has seen nothing.
func New(cfg Config) *Judge {
	return &Judge{
		cfg: cfg, certificates: map[source.Key]certificate{}, bundles: map[source.Key]bundle{}, endpoints: map[setKey]endpointSet{},
		result: Result{
			Listeners:    map[string]*routing.ListenerSpec{},
			Routes:       map[Ref]*Route{},
			Gateways:     map[source.Key]*Gateway{},
			ListenerSets: map[source.Key]*gatewayv1.ListenerSetStatus{},
			Classes:      map[source.Key]*gatewayv1.GatewayClassStatus{},
			Policies:     map[source.Key]*gatewayv1.PolicyStatus{},
		},
	}
}

// Judge says what the objects mean. They are the same Objects at each call.
func (j *Judge) Judge(o *Objects) *Result {
	j.result.Changes = Changes{}
	j.refs = refs{secrets: map[source.Key]struct{}{}, configMaps: map[source.Key]struct{}{}}
	j.grants = make(map[string][]*gatewayv1.ReferenceGrant)
	for key, grant := range o.Grants.All() {
		j.grants[key.Namespace] = append(j.grants[key.Namespace], grant)
	}
	j.judgeClasses(o)
	j.judgeGateways(o)
	j.judgePolicies(o)
	j.judgeRoutes(o)
	j.settle()
	j.result.Secrets, j.result.ConfigMaps = j.refs.secrets, j.refs.configMaps
	return &j.result
}

// judgeGateways judges the Gateways of classes of ours, with their ListenerSets.
func (j *Judge) judgeGateways(o *Objects) {
	j.gateways, j.sets = make(map[source.Key]*gateway), make(map[source.Key]setOf)
	sets := make(map[source.Key][]*gatewayv1.ListenerSet)
	for _, set := range o.ListenerSets.All() {
		ref := set.Spec.ParentRef
		if value(ref.Group, groupName) == groupName && value(ref.Kind, kindGateway) == kindGateway {
			key := source.Key{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(set.Namespace))), Name: string(ref.Name)}
			sets[key] = append(sets[key], set)
		}
	}
	for key, object := range o.Gateways.All() {
		if j.result.Classes[source.Key{Name: string(object.Spec.GatewayClassName)}] == nil {
			continue
		}
		g := j.gatewayOf(o, key, object, sets[key])
		j.gateways[key] = g
		for _, s := range g.sets {
			j.sets[s.key] = setOf{g, s}
		}
	}
}
