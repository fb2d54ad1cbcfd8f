package controller

import (
	"maps"
	"runtime/debug"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/balancer"
	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/source"
	"turnout/internal/problem"
	"turnout/routing"
)

// The objects of the Gateway API are judged by package gateway. Their rules and listeners stand in the table beside those of Routes, and are published
// with them.

// GatewayOptions is how Gateways are served. The zero value serves none.
type GatewayOptions struct {
	Controller string // whose classes are served; "" = none, no object of the Gateway API is looked at
	// Pods is the Service that selects the pods of this router. Gateways have Services of their own then, by which they are reached. The zero value has
	// them served at their ports of this machine.
	Pods source.Key
	// Addresses are those of this machine in the status of Gateways without Services that ask for none.
	Addresses []string
	// Own are the ports of this machine that the router itself has: no Gateway without Services gets one of them.
	Own []expose.Taken
	// Deployments says that Gateways may have pods of their own.
	Deployments bool
	// Only is the one Gateway that is served: this process is one of its own pods. The zero value is all Gateways that have none.
	Only source.Key
}

// services says that Gateways are reached by Services.
func (o *GatewayOptions) services() bool { return o.Pods != (source.Key{}) || o.Only != (source.Key{}) }

// Sockets opens and closes ports.
type Sockets interface {
	// Set says which ports are to be open, and returns by name why those are not that could not be opened. It is called by one goroutine.
	Set(sockets []expose.Socket) map[string]error
}

// GatewayReporter takes what is to be written about Gateways. Its methods do not block.
type GatewayReporter interface {
	// Status and Forget are those of Writer in package status/gateways, Expose is expose.Writer.Set.
	Status(ref gateway.Ref, have runtime.Object, want any)
	Forget(ref gateway.Ref)
	Expose(now expose.Now)
}

// ConfigMaps brings those that objects refer to, to the feeder's sink.
type ConfigMaps interface {
	// Follow says which are delivered from now on: the others are not.
	Follow(keys []source.Key)
}

// gateways is what is known of the Gateway API.
type gateways struct {
	judge   *gateway.Judge // nil = nothing of it is served
	objects gateway.Objects
	result  *gateway.Result
	all     map[gateway.Ref]runtime.Object // those that may have a status
	own     map[source.Key]*corev1.Service // Services of Gateways of ours

	dirty    bool                   // the objects differ from what was judged
	sockets  []expose.Socket        // the ports of Gateways, open or about to be opened
	moved    bool                   // the ports of Gateways, or their Services, are others
	origins  map[gateway.Ref]string // where they come from, if that is known
	changed  map[gateway.Ref]bool   // of which the object or its status is another; false = it is gone
	pods     []string               // addresses of the router's pods
	podsMove bool
	refused  map[source.Key]string  // why Gateways do not get the objects that they need
	secrets  map[source.Key]*secret // that are referred to
	followed map[source.Key]struct{}

	// What the table does not have yet: nil = it is to go.
	listeners map[string]*routing.ListenerSpec
	rules     map[routing.RouteKey]*routing.RuleSpec
}

func newGateways(cfg *Config) gateways {
	g := gateways{
		all: make(map[gateway.Ref]runtime.Object), origins: make(map[gateway.Ref]string), own: make(map[source.Key]*corev1.Service), changed: make(map[gateway.Ref]bool),
		secrets: make(map[source.Key]*secret), followed: make(map[source.Key]struct{}),
		listeners: make(map[string]*routing.ListenerSpec), rules: make(map[routing.RouteKey]*routing.RuleSpec),
	}
	if o := &cfg.Options; o.Gateways.Controller != "" {
		g.judge = gateway.New(gateway.Config{
			Controller: gatewayv1.GatewayController(o.Gateways.Controller), Policy: o.gatewayPolicy(),
			UpstreamALPN: o.UpstreamALPN, Pool: balancer.PoolConfig{Algorithm: balancer.RoundRobin},
			Deployments: o.Gateways.Deployments && o.Gateways.Pods != (source.Key{}), Only: o.Gateways.Only,
			Bounds: cfg.Bounds,
			Panicked: func(of gateway.Ref, v any, stack []byte) {
				cfg.Log.Error("BUG: an object of the Gateway API cannot be judged", zap.Stringer("object", of), zap.Any("panic", v), zap.ByteString("stack", stack))
			},
		})
		g.dirty, g.moved = true, true
	}
	return g
}

// gatewayPolicy is how requests of rules are treated where these say nothing else.
func (o *Options) gatewayPolicy() routing.Policy {
	t := o.translation()
	return t.Defaults.Policy()
}

// serves reports whether the Gateway API is served.
func (g *gateways) serves() bool { return g.judge != nil }

// gatewayEvent takes over an object of the Gateway API.
func (s *state) gatewayEvent(e *source.Event) {
	g := &s.gateways
	if !g.serves() {
		s.noteUnserved(e)
		return
	}
	switch e.Kind {
	case source.GatewayClass:
		put(&g.objects.Classes, e)
	case source.Gateway:
		put(&g.objects.Gateways, e)
	case source.ListenerSet:
		put(&g.objects.ListenerSets, e)
	case source.HTTPRoute:
		put(&g.objects.HTTPRoutes, e)
	case source.GRPCRoute:
		put(&g.objects.GRPCRoutes, e)
	case source.TLSRoute:
		put(&g.objects.TLSRoutes, e)
	case source.TCPRoute:
		put(&g.objects.TCPRoutes, e)
	case source.UDPRoute:
		put(&g.objects.UDPRoutes, e)
	case source.ReferenceGrant:
		put(&g.objects.Grants, e)
	case source.BackendTLSPolicy:
		put(&g.objects.Policies, e)
	}
	g.dirty = true
	if e.Kind == source.ReferenceGrant {
		return // it has no status
	}
	ref := gateway.Ref{Kind: e.Kind.String(), Key: e.Key}
	if g.changed[ref] = e.Object != nil; e.Object != nil {
		g.all[ref] = e.Object
		if e.Origin != "" {
			g.origins[ref] = e.Origin
		}
		return
	}
	delete(g.all, ref)
	delete(g.origins, ref)
}

// put puts the object of an event into its table.
func put[T runtime.Object](t *gateway.Table[T], e *source.Event) {
	if object, ok := e.Object.(T); ok && e.Object != nil {
		t.Set(e.Key, object)
		return
	}
	t.Delete(e.Key)
}

// noteUnserved says of a Gateway that nobody serves it: without --gateway-api its routes are not looked at.
func (s *state) noteUnserved(e *source.Event) {
	if e.Kind != source.Gateway {
		return
	}
	key := "gateway/" + e.Key.String()
	if e.Object == nil {
		s.cfg.Problems.Set(key)
		return
	}
	s.cfg.Problems.Set(key, problem.Problem{Kind: problem.Note, Namespace: e.Key.Namespace, Object: "Gateway " + e.Key.String(), Text: "Gateways are served with --gateway-api only"})
}

// gatewayObjectEvent takes over an object that is not of the Gateway API, for who refers to it.
func (s *state) gatewayObjectEvent(e *source.Event) {
	g := &s.gateways
	if !g.serves() {
		return
	}
	switch e.Kind {
	case source.Namespace:
		if o, ok := e.Object.(*corev1.Namespace); ok && o != nil {
			g.objects.Namespaces.Set(e.Key, labels.Set(o.Labels))
		} else {
			g.objects.Namespaces.Delete(e.Key)
		}
	case source.ConfigMap:
		put(&g.objects.ConfigMaps, e)
	case source.CustomResourceDefinition:
		g.objects.Installed = installed(e.Object)
	case source.UnknownKind:
		put(&g.objects.Unknown, e)
	case source.Service:
		if o, ok := e.Object.(*corev1.Service); ok && expose.Ours(o, s.cfg.Options.Gateways.Controller) {
			g.own[e.Key], g.moved = o, true
			g.objects.Services.Delete(e.Key) // it is no backend, and nobody would take it out
			g.dirty = true
			return
		} else if g.own[e.Key] != nil {
			delete(g.own, e.Key)
			g.moved = true
		}
	default:
		return
	}
	g.dirty = true
}

// gatewaySecret says what a secret is now.
func (s *state) gatewaySecret(v *secret) {
	g := &s.gateways
	if !v.gateways {
		return
	}
	g.dirty = true
	if v.object != nil {
		g.objects.Secrets.Set(v.key, v.object)
		return
	}
	g.objects.Secrets.Delete(v.key)
}

// Annotations of the resources of the Gateway API.
const (
	annotationVersion = "gateway.networking.k8s.io/bundle-version"
	annotationChannel = "gateway.networking.k8s.io/channel"
)

// installed reads which resources of the Gateway API there are.
func installed(object runtime.Object) gateway.Installed {
	o, ok := object.(*unstructured.Unstructured)
	if !ok || o == nil {
		return gateway.Installed{}
	}
	of := o.GetAnnotations()
	return gateway.Installed{Version: of[annotationVersion], Channel: of[annotationChannel]}
}

// gatewayService says what a Service and its endpoints are now; v may be nil.
func (s *state) gatewayService(v *service, key source.Key) {
	g := &s.gateways
	if !g.serves() {
		return
	}
	if g.own[key] != nil {
		g.moved = true // where it leads has changed
		return
	}
	g.dirty = true
	if v == nil || v.object == nil && len(v.slices) == 0 {
		g.objects.Services.Delete(key)
	} else {
		g.objects.Services.Set(key, &gateway.Service{Object: v.object, Slices: slices.Clone(v.slices)})
	}
	if key == s.cfg.Options.Gateways.Pods {
		g.pods, g.podsMove, g.moved = podAddresses(v), true, true
	}
}

// podAddresses returns the addresses of the endpoints of a Service that are ready.
func podAddresses(v *service) (list []string) {
	if v == nil {
		return nil
	}
	for _, packed := range v.slices {
		slice, err := packed.Object(v.key.Namespace, v.key.Name)
		if err != nil {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				list = append(list, e.Addresses...)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// judgeGateways judges the objects if they are others, and has what they refer to delivered.
func (s *state) judgeGateways() {
	g := &s.gateways
	if !g.dirty {
		return
	}
	g.dirty = false
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Log.Error("BUG: the objects of the Gateway API cannot be judged; what was served stays", zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
		}
	}()
	g.result = g.judge.Judge(&g.objects)
	c := &g.result.Changes
	for _, name := range c.DeletedListeners {
		g.listeners[name] = nil
	}
	for i := range c.Listeners {
		g.listeners[c.Listeners[i].Name] = &c.Listeners[i]
	}
	for _, key := range c.DeletedRules {
		g.rules[key] = nil
	}
	for i := range c.Rules {
		g.rules[c.Rules[i].RouteKey] = &c.Rules[i]
	}
	for _, ref := range c.Status {
		if g.all[ref] != nil {
			g.changed[ref] = true
		}
	}
	g.moved = g.moved || len(c.Gateways) > 0
	g.judge.Done()
	s.referGateways()
}

// referGateways has the Secrets and ConfigMaps delivered that are referred to, and no others.
func (s *state) referGateways() {
	g := &s.gateways
	for key := range g.result.Secrets {
		if g.secrets[key] != nil {
			continue
		}
		v := s.secretOf(key)
		v.gateways, g.secrets[key] = true, v
		if v.object != nil {
			g.objects.Secrets.Set(key, v.object)
			g.dirty = true
		}
	}
	for key, v := range g.secrets {
		if _, stays := g.result.Secrets[key]; !stays {
			v.gateways = false
			s.unused[v] = struct{}{}
			delete(g.secrets, key)
			g.objects.Secrets.Delete(key)
		}
	}
	if s.cfg.ConfigMaps == nil || maps.Equal(g.followed, g.result.ConfigMaps) {
		return
	}
	for key := range g.followed {
		if _, stays := g.result.ConfigMaps[key]; !stays {
			g.objects.ConfigMaps.Delete(key)
		}
	}
	g.followed = maps.Clone(g.result.ConfigMaps)
	s.cfg.ConfigMaps.Follow(slices.Collect(maps.Keys(g.followed)))
}

// settleGateways judges until nothing changes any more: what is referred to may be known already.
func (s *state) settleGateways() {
	for range 3 {
		s.judgeGateways()
	}
}

// changesTable reports whether the table lacks something.
func (g *gateways) changesTable() bool { return len(g.listeners)+len(g.rules) > 0 }

// addTo returns a table that has what it lacked of Gateways.
func (s *state) addGateways(table *routing.Table) *routing.Table {
	g := &s.gateways
	if !g.changesTable() {
		return table
	}
	var upserts []routing.ListenerSpec
	var deletes []string
	for _, name := range slices.Sorted(maps.Keys(g.listeners)) {
		if l := g.listeners[name]; l != nil {
			upserts = append(upserts, *l)
		} else {
			deletes = append(deletes, name)
		}
	}
	specs := make([]routing.RuleSpec, 0, len(g.rules))
	var gone []routing.RouteKey
	for _, key := range slices.SortedFunc(maps.Keys(g.rules), routing.RouteKey.Compare) {
		if r := g.rules[key]; r != nil {
			specs = append(specs, *r)
		} else {
			gone = append(gone, key)
		}
	}
	if len(gone) > 0 {
		s.unswept = true
	}
	table, refused := table.ApplyListeners(upserts, deletes)
	table, more := table.ApplyRules(specs, gone)
	for _, r := range append(refused, more...) {
		s.cfg.Log.Error("BUG: what an object of the Gateway API asks for was accepted and cannot be served", zap.String("namespace", r.Key.Namespace), zap.String("name", r.Key.Name),
			zap.String("reason", r.Reason), zap.String("message", r.Message))
	}
	g.listeners, g.rules = make(map[string]*routing.ListenerSpec), make(map[routing.RouteKey]*routing.RuleSpec)
	return table
}

// reportGateways says what is to be written.
func (s *state) reportGateways() {
	g := &s.gateways
	if !g.serves() {
		return
	}
	to := s.cfg.Gateways
	for ref, there := range g.changed {
		s.tellGateway(ref)
		switch {
		case to == nil:
		case there:
			to.Status(ref, g.all[ref], g.wanted(ref))
		default:
			to.Forget(ref)
		}
	}
	g.changed = make(map[gateway.Ref]bool)
	if g.podsMove && to != nil && s.cfg.Options.Gateways.Pods != (source.Key{}) {
		to.Expose(expose.Now{Gateways: s.exposed(), Services: maps.Clone(g.own), Pods: g.pods})
	}
	g.podsMove = false
}

// wanted returns the status that an object is to have, nil for none.
func (g *gateways) wanted(ref gateway.Ref) any {
	switch ref.Kind {
	case "GatewayClass":
		return orNil(g.result.Classes[ref.Key])
	case "Gateway":
		if of := g.result.Gateways[ref.Key]; of != nil {
			return orNil(of.Status)
		}
		return nil
	case "ListenerSet":
		return orNil(g.result.ListenerSets[ref.Key])
	case "BackendTLSPolicy":
		return orNil(g.result.Policies[ref.Key])
	}
	if of := g.result.Routes[ref]; of != nil {
		return orNil(of.Status)
	}
	return nil
}

// orNil has a nil pointer as no value at all.
func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}
