package gateway

import (
	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/parameters"
	"turnout/controller/source"
	"turnout/routing"
)

// Ref names an object of the Gateway API. It is comparable.
type Ref struct {
	Kind string // such as HTTPRoute
	source.Key
}

// Result is what follows from the objects. It belongs to the Judge, is read-only, and holds until the next call of Judge. What did not change
// since the call before has the same pointers.
type Result struct {
	Listeners    map[string]*routing.ListenerSpec // by name
	Routes       map[Ref]*Route                   // of all kinds, those with a parent that is ours
	Gateways     map[source.Key]*Gateway          // ours
	ListenerSets map[source.Key]*gatewayv1.ListenerSetStatus
	Classes      map[source.Key]*gatewayv1.GatewayClassStatus
	Policies     map[source.Key]*gatewayv1.PolicyStatus

	// Secrets and ConfigMaps are those that something refers to, whether they are there or not.
	Secrets    map[source.Key]struct{}
	ConfigMaps map[source.Key]struct{}

	// Changes is what differs from the result before; all of it the first time.
	Changes Changes
}

// Changes is the difference between two results, as a table takes it: listeners by Table.ApplyListeners, rules by Table.ApplyRules.
type Changes struct {
	Listeners        []routing.ListenerSpec
	DeletedListeners []string
	Rules            []routing.RuleSpec
	DeletedRules     []routing.RouteKey
	// Gateways are those of which anything but the status changed, and those that came or went.
	Gateways []source.Key
	// Status are the objects that want another status than before, or that are none of ours any more: these are in no map of the Result, and
	// lose the entries that we made.
	Status []Ref
}

// Route is what follows from a route.
type Route struct {
	rules  ruleSet
	Status *gatewayv1.RouteStatus // own entries only, without times
}

// Rules returns the rules of the route. Each call makes a new slice.
func (r *Route) Rules() []routing.RuleSpec { return r.rules.all() }

// Gateway is what follows from a Gateway.
type Gateway struct {
	Ports  []Port                   // that its listeners, and those of its ListenerSets, need; in order
	Status *gatewayv1.GatewayStatus // own conditions only, without times
	// Parameters are how it is to be run; nil = they cannot be used, and how it is run stays.
	Parameters *parameters.Parameters
	// Secrets and ConfigMaps are those that it is served with: certificates of its listeners and authorities, those of the BackendTLSPolicies that matter to it
	// included. Whether they are there does not matter.
	Secrets, ConfigMaps map[source.Key]struct{}
}

// Port is a port that listeners of one Gateway need.
type Port struct {
	Name     string          // names the socket: ListenerSpec.Port
	Number   int32           // as listeners have it
	Protocol corev1.Protocol // TCP or UDP
	Kind     PortKind
}

// PortKind is what is spoken on a port.
type PortKind uint8

// The kinds.
const (
	PortHTTP PortKind = iota // plain HTTP/1.1, and HTTP/2 by prior knowledge
	PortTLS                  // connections begin with TLS
	PortTCP                  // bytes
	PortUDP                  // datagrams
)
