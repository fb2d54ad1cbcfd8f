package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/endpoints"
	"turnout/controller/source"
	"turnout/routing"
)

// Config is by what a Judge goes.
type Config struct {
	Controller gatewayv1.GatewayController // whose classes are ours
	Endpoints  endpoints.Options           // which endpoints are taken
	Policy     routing.Policy              // of all rules, where a route says nothing else: timeouts, forwarded fields
	Pool       balancer.PoolConfig         // of all backends; the namespace is that of the route
	// Parameter says why a key of a ConfigMap that a parametersRef names cannot have its value; nil = it can. Without the function no key is known.
	Parameter func(key, value string) error
}

// Judge says what objects mean, and remembers what it said, so that it looks only at what changed since. It belongs to one goroutine.
type Judge struct {
	cfg    Config
	result Result
	refs   refs
}

// refs is what objects refer to, as they are judged.
type refs struct {
	secrets, configMaps map[source.Key]struct{}
}

// New returns a Judge that has seen nothing.
func New(cfg Config) *Judge {
	return &Judge{cfg: cfg, result: Result{
		Listeners:    map[string]*routing.ListenerSpec{},
		Routes:       map[Ref]*Route{},
		Gateways:     map[source.Key]*Gateway{},
		ListenerSets: map[source.Key]*gatewayv1.ListenerSetStatus{},
		Classes:      map[source.Key]*gatewayv1.GatewayClassStatus{},
		Policies:     map[source.Key]*gatewayv1.PolicyStatus{},
		Secrets:      map[source.Key]struct{}{},
		ConfigMaps:   map[source.Key]struct{}{},
	}}
}

// Judge says what the objects mean. They are the same Objects at each call.
func (j *Judge) Judge(o *Objects) *Result {
	j.result.Changes = Changes{}
	j.refs = refs{secrets: map[source.Key]struct{}{}, configMaps: map[source.Key]struct{}{}}
	j.judgeClasses(o)
	j.result.Secrets, j.result.ConfigMaps = j.refs.secrets, j.refs.configMaps
	return &j.result
}
