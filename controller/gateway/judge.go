package gateway

import (
	"maps"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/expansion"
	"turnout/controller/gateway/parameters"
	"turnout/controller/gateway/translate"
	"turnout/controller/source"
	"turnout/controller/turns"
	"turnout/internal/bound"
	"turnout/internal/certchain"
	"turnout/internal/target"
	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// Config is by what a Judge goes.
type Config struct {
	Controller gatewayv1.GatewayController // whose classes are ours
	Targets    *target.Policy              // admits endpoints; nil = none, until SetTargets
	Policy     routing.Policy              // of all rules, where a route says nothing else: timeouts, forwarded fields
	Pool       balancer.PoolConfig         // of all backends; the namespace is that of the route
	// UpstreamALPN are the protocols offered to endpoints with TLS, in order, for HTTPRoutes.
	UpstreamALPN []protocol.Protocol
	// Parameters reads what the ConfigMaps of a class and of a Gateway say, either of which may be nil; nil = parameters.Read.
	Parameters func(class, gateway map[string]string) (*parameters.Parameters, error)
	// Deployments says that Gateways may have pods of their own.
	Deployments bool
	// Only is the one Gateway that is served, with its ListenerSets, whatever its parameters say: this process is among its pods. The zero value is all of them.
	Only   source.Key
	Bounds *bound.Counts // nil = reached limits are not counted
	// Panicked is called after a panic while an object was judged, which is a bug: the object is not accepted, and others are judged. nil = the panic goes on.
	Panicked func(of Ref, v any, stack []byte)
}

// Judge says what objects mean, and remembers what it said, so that it looks only at what changed since. What it says follows from the objects
// alone, however they came to be. It belongs to one goroutine.
type Judge struct {
	cfg      Config
	result   Result
	compiler translate.Compiler
	tls      translate.Interned[balancer.TLS]
	roots    translate.Interned[certchain.Set] // authorities of BackendTLSPolicies by their texts

	// What was read of objects, for as long as they are the same.
	certificates map[source.Key]certificate
	bundles      map[source.Key]bundle
	servers      map[serversKey]*servers
	grants       map[string][]*gatewayv1.ReferenceGrant // by namespace
	installed    Installed

	gateways   map[source.Key]*gateway
	sets       map[source.Key]setOf
	policies   policies
	needs      map[source.Key]keys              // ConfigMaps that a Gateway needs for the policies that matter to it
	parameters map[source.Key]map[string]string // of classes that are accepted and have some
	refs       *refs                            // those of what is judged at the moment
	ofGateways refs
	ofPolicies refs

	routes    map[Ref]*judged
	ledger    *expansion.Ledger[Ref]
	byParent  index[Ref]        // routes by the Gateways and ListenerSets that they name
	byService index[source.Key] // routes by the Services that they name
	at        map[*listener]map[Ref]*judged

	waiting *turns.Queue[Ref] // routes to be judged again by this call or a later one
	budget  turns.Budget      // of calls until the next Begin, see turns.Queue.Take
	stamp   uint64            // of routes that are added to waiting

	// What the judgement at work has changed.
	dirty    map[Ref]struct{}       // routes to be judged again now
	contests map[*listener]struct{} // whose routes are others than before
	counted  map[Ref]struct{}       // Gateways and ListenerSets whose status may be another than before
	affected bool                   // policies matter to other Gateways than before
}

// setOf is a ListenerSet with its Gateway.
type setOf struct {
	gateway *gateway
	set     *listenerSet
}

// refs is what objects refer to, whether it is there or not.
type refs struct{ secrets, configMaps keys }

// add adds those of others.
func (r *refs) add(o *refs) {
	maps.Copy(r.secrets, o.secrets)
	maps.Copy(r.configMaps, o.configMaps)
}

func newRefs() refs { return refs{secrets: keys{}, configMaps: keys{}} }

// New returns a Judge that has seen nothing.
func New(cfg Config) *Judge {
	if cfg.Parameters == nil {
		cfg.Parameters = parameters.Read
	}
	j := &Judge{
		cfg: cfg, certificates: map[source.Key]certificate{}, bundles: map[source.Key]bundle{}, servers: map[serversKey]*servers{},
		routes: map[Ref]*judged{}, byParent: index[Ref]{}, byService: index[source.Key]{}, at: map[*listener]map[Ref]*judged{},
		result: Result{
			Listeners:    map[string]*routing.ListenerSpec{},
			Routes:       map[Ref]*Route{},
			Gateways:     map[source.Key]*Gateway{},
			ListenerSets: map[source.Key]*gatewayv1.ListenerSetStatus{},
			Classes:      map[source.Key]*gatewayv1.GatewayClassStatus{},
			Policies:     map[source.Key]*gatewayv1.PolicyStatus{},
			Secrets:      keys{},
			ConfigMaps:   keys{},
		},
	}
	j.waiting, j.budget = turns.New(func(r Ref) string { return r.Namespace }), turns.Unlimited()
	j.ledger = expansion.NewLedger(
		func(r Ref) string { return r.Namespace },
		func(a, b Ref) int { return older(j.routes[a].object, j.routes[b].object) },
	)
	return j
}

// SetTargets replaces the policy that admits endpoints. The caller marks the Services as changed
// for which the policies differ. Without a policy no endpoint is used.
func (j *Judge) SetTargets(p *target.Policy) { j.cfg.Targets = p }

// Judge says what the objects mean. They are the same Objects at each call.
func (j *Judge) Judge(o *Objects) *Result {
	j.result.Changes = Changes{}
	j.dirty, j.contests, j.counted, j.affected = map[Ref]struct{}{}, map[*listener]struct{}{}, map[Ref]struct{}{}, false
	grants, services, configMaps, namespaces := o.Grants.takeChanged(), o.Services.takeChanged(), o.ConfigMaps.takeChanged(), o.Namespaces.takeChanged()
	secrets, policies := o.Secrets.takeChanged(), o.Policies.takeChanged()
	j.changedRoutes(o)
	j.changedGrants(o, grants)
	for key := range services {
		delete(j.servers, serversKey{key, false})
		delete(j.servers, serversKey{key, true})
		j.spoil(j.byService[key])
	}
	if len(namespaces) > 0 {
		for ref := range j.routes {
			if _, ok := namespaces[source.Key{Name: ref.Namespace}]; ok {
				j.waiting.Add(ref, j.stamp)
			}
		}
	}
	all := j.gateways == nil || o.Installed != j.installed
	j.installed = o.Installed
	objects := len(o.Unknown.takeChanged()) + len(o.Classes.takeChanged()) + len(o.Gateways.takeChanged()) + len(o.ListenerSets.takeChanged()) + len(o.Assigned.takeChanged()) + len(grants) + len(namespaces)
	if all || objects > 0 || configMaps.meets(j.ofGateways.configMaps) || secrets.meets(j.ofGateways.secrets) {
		j.judgeClasses(o)
		j.judgeGateways(o)
	}
	if all || len(policies) > 0 || configMaps.meets(j.ofPolicies.configMaps) || services.meets(j.policies.services) {
		j.judgePolicies(o)
	}
	j.judgeRoutes(o)
	j.settle()
	return &j.result
}

// Done drops Result.Changes: who has taken them need not hold them until the next call of Judge.
func (j *Judge) Done() {
	j.result.Changes = Changes{}
	j.dirty, j.contests, j.counted = nil, nil, nil
}

// changedRoutes has routes judged that are others than before.
func (j *Judge) changedRoutes(o *Objects) {
	for kind, changed := range map[string]keys{
		kindHTTPRoute: o.HTTPRoutes.takeChanged(), kindGRPCRoute: o.GRPCRoutes.takeChanged(), kindTLSRoute: o.TLSRoutes.takeChanged(), kindTCPRoute: o.TCPRoutes.takeChanged(), kindUDPRoute: o.UDPRoutes.takeChanged(),
	} {
		for key := range changed {
			j.waiting.Add(Ref{kind, key}, j.stamp)
		}
	}
}

// changedGrants has routes judged again that name a Service of another namespace, for which the grants are others than before.
func (j *Judge) changedGrants(o *Objects, changed keys) {
	if len(changed) == 0 && j.grants != nil {
		return
	}
	j.grants = make(map[string][]*gatewayv1.ReferenceGrant)
	for key, grant := range o.Grants.All() {
		j.grants[key.Namespace] = append(j.grants[key.Namespace], grant)
	}
	of := make(map[string]struct{}, len(changed))
	for key := range changed {
		of[key.Namespace] = struct{}{}
	}
	for service, users := range j.byService {
		if _, ok := of[service.Namespace]; ok {
			j.spoil(users)
		}
	}
}

// spoil has routes judged again.
func (j *Judge) spoil(list map[Ref]struct{}) {
	for ref := range list {
		j.waiting.Add(ref, j.stamp)
	}
}

// referring has what is judged from now on fill the references that it returns.
func (j *Judge) referring(to *refs) {
	*to = newRefs()
	j.refs = to
}

// judgeGateways judges the Gateways of classes of ours, with their ListenerSets.
func (j *Judge) judgeGateways(o *Objects) {
	sets := make(map[source.Key][]*gatewayv1.ListenerSet)
	for _, set := range o.ListenerSets.All() {
		ref := set.Spec.ParentRef
		if value(ref.Group, groupName) == groupName && value(ref.Kind, kindGateway) == kindGateway {
			key := source.Key{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(set.Namespace))), Name: string(ref.Name)}
			sets[key] = append(sets[key], set)
		}
	}
	before := j.gateways
	j.gateways = make(map[source.Key]*gateway)
	j.sets = make(map[source.Key]setOf)
	for key, object := range o.Gateways.All() {
		if j.result.Classes[source.Key{Name: string(object.Spec.GatewayClassName)}] == nil || j.cfg.Only != (source.Key{}) && j.cfg.Only != key {
			continue
		}
		var g *gateway
		if !j.guard(Ref{kindGateway, key}, func() { g = j.gatewayOf(o, key, object, sets[key]) }) {
			g = &gateway{key: key, object: object, reason: gatewayv1.GatewayReasonInvalid, message: broken}
		}
		news := kept{spoiled: g.owners()}
		if was := before[key]; was != nil {
			news = was.become(g)
			g = was
		}
		j.gateways[key] = g
		j.counted[Ref{kindGateway, key}] = struct{}{}
		for _, owner := range news.changed {
			j.counted[owner] = struct{}{}
		}
		j.spoilOwners(news.spoiled)
		for _, s := range g.sets {
			j.sets[s.key] = setOf{g, s}
		}
	}
	for key, g := range before {
		if j.gateways[key] == nil {
			j.spoilOwners(g.owners())
		}
	}
	maps.DeleteFunc(j.certificates, func(key source.Key, _ certificate) bool { _, used := j.ofGateways.secrets[key]; return !used })
}

// spoilOwners has the routes of Gateways and ListenerSets judged again.
func (j *Judge) spoilOwners(list []Ref) {
	for _, owner := range list {
		j.spoil(j.byParent[owner])
		j.counted[owner] = struct{}{}
	}
}
