package controller

import (
	"net/netip"
	"slices"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"turnout/controller/admit"
	"turnout/controller/endpoints"
	"turnout/controller/ingress"
	"turnout/controller/source"
	"turnout/controller/translate"
	"turnout/controller/turns"
	"turnout/internal/bound"
	"turnout/internal/keyed"
	"turnout/internal/target"
	"turnout/routing"
)

// state is all objects and what was made of them. It belongs to the owner goroutine.
type state struct {
	cfg        *Config
	admission  admit.Options
	claims     *admit.Claims
	translator *translate.Translator
	views      *views

	authorities admit.Authorities
	plain       tlsState      // of all routes without TLS settings
	unjudged    admit.Verdict // the zero value, of routes that were not judged yet

	routes   *keyed.Set[source.Key, route]
	services *keyed.Set[source.Key, service]
	slices   *keyed.Set[source.Key, placed]
	secrets  map[source.Key]*secret

	unanswered map[*secret]struct{} // asked for, and nothing came yet
	unused     map[*secret]struct{} // may have no user
	selection  selection
	namespaces map[string]labels.Set // those that there are, with their labels
	keeper     keeper
	bindings   bindings // of routes to the Router that this is a replica of
	ingress    ingresses
	gateways   gateways

	expiry    expiryWatch
	notes     noteLog
	own       *target.Own    // the listeners that the program reported
	fronts    fronts         // Services that lead to the router
	ownPlaces *target.Own    // own, with the listeners of Gateways and fronts
	targets   *target.Policy // admits endpoints; it refuses ownPlaces

	timing  timing
	changes changes

	published bool // the first table is
	reached   bool // what is served is another than before the batch that is handled
	unswept   bool // something may be left over in the registry

	waiting *turns.Queue[*route] // to be handled by this batch or a later one
	stamp   uint64               // of the event that is handled, see Controller.handle

	// What this batch handles.
	dirty    map[*route]struct{} // to be judged and translated again
	touched  map[*route]struct{} // only their endpoints changed
	opened   []*route            // with their objects
	asked    []*service          // whose set was made
	crews    translate.Shared    // of the sets that were made
	gone     []*route            // no longer there
	shown    []*route            // there is an object that leads to nothing new
	observed []*route            // there is an object that Status has not seen
}

// route is one Route and what was made of it.
type route struct {
	key    source.Key
	kept   *kept
	object *routev1.Route // nil = nobody has needed it since the batch began, see objectOf
	order  string
	origin string
	rule   *ingress.Rule // nil = somebody has written the Route

	host    string
	refused *admit.Verdict        // by itself; nil = it is not
	verdict *admit.Verdict        // after all; read-only, never nil
	waiting bool                  // for its secret; verdict is not decided
	stale   bool                  // in state.waiting to be judged again, not only for its endpoints
	served  bool                  // the table has it
	servers uint32                // number of endpoints it has
	rules   int                   // how many rules the table has of it, if it is served
	tls     *tlsState             // never nil; state.plain for a route without TLS settings
	shard   *ShardReport          // nil = the router is no replica of a Router
	result  *translate.Result     // nil = not served
	status  *routev1.RouteIngress // nil = not reported yet
	valid   *validity             // of its own certificate in the table; nil = it has none

	services []*service
	secret   *secret     // of its external certificate
	refs     *references // Secrets that its annotations refer to; nil = none
}

// service is what is known about one service name, whether or not it exists.
type service struct {
	key     source.Key
	object  *corev1.Service // nil = not known; see describe
	cluster []netip.Addr    // its addresses in the cluster
	slices  []endpoints.Slice
	set     *endpoints.Set // kept while one batch is handled
	users   []*route
}

// placed is an EndpointSlice and the service that it is counted to.
type placed struct {
	name    string
	service *service
}

func (p *placed) key() source.Key {
	return source.Key{Namespace: p.service.key.Namespace, Name: p.name}
}

func newState(cfg *Config, v *views) (*state, error) {
	translator, err := translate.New(cfg.Options.translation())
	if err != nil {
		return nil, err
	}
	selection, err := cfg.Options.selection()
	if err != nil {
		return nil, err
	}
	s := &state{
		ingress:   newIngresses(cfg.Options.IngressController),
		gateways:  newGateways(cfg),
		plain:     tlsState{done: true, verdict: admit.Verdict{Admitted: true}},
		selection: selection, cfg: cfg, admission: cfg.Options.admission(), translator: translator, views: v,
		routes:     keyed.New(func(r *route) source.Key { return r.key }),
		services:   keyed.New(func(v *service) source.Key { return v.key }),
		slices:     keyed.New((*placed).key),
		secrets:    make(map[source.Key]*secret),
		unanswered: make(map[*secret]struct{}),
		unused:     make(map[*secret]struct{}),
		namespaces: make(map[string]labels.Set),
		bindings:   bindings{of: make(map[source.Key]source.Key), at: make(map[source.Key]map[source.Key]binding)},
		waiting:    turns.New(func(r *route) string { return r.key.Namespace }),
		dirty:      make(map[*route]struct{}),
		touched:    make(map[*route]struct{}),
	}
	s.fronts.of, s.fronts.bare = make(map[*service]*target.Front), new(corev1.Service)
	s.claims = cfg.Options.newClaims()
	s.admitTargets(nil)
	return s, nil
}

// apply takes events over and publishes what they lead to. It returns false while the
// first table waits for secrets.
func (s *state) apply(events []source.Event) bool {
	for i := range events {
		s.event(&events[i])
	}
	s.settleFronts()
	s.begin()
	s.settleGateways()
	s.settle()
	for r := range s.dirty {
		s.refer(r)
	}
	s.dropSecrets()
	if !s.published && len(s.unanswered) > 0 {
		return false
	}
	s.publish(s.judge())
	s.placeGateways()
	s.settleGateways() // what their places say of them
	s.publish(plan{})
	s.reportAll()
	s.reportGateways()
	s.reportIngresses()
	s.dirty, s.touched = emptied(s.dirty), emptied(s.touched)
	s.gone, s.shown = nil, nil
	for _, v := range s.asked {
		v.set = nil
	}
	s.asked = nil
	s.closeRoutes()
	s.crews.Forget()
	return true
}

// emptied returns an empty map: m, unless m has grown so much that walking it would
// cost more than making another.
func emptied[K comparable](m map[K]struct{}) map[K]struct{} {
	if len(m) > 64 {
		return make(map[K]struct{})
	}
	clear(m)
	return m
}

// event takes one event over.
func (s *state) event(e *source.Event) {
	switch e.Kind {
	case source.Namespace:
		s.namespaceEvent(e)
	case source.Route:
		s.routeEvent(e)
	case source.RouteBinding:
		s.bindingEvent(e)
	case source.Service:
		v := s.service(e.Key)
		object, _ := e.Object.(*corev1.Service)
		s.describe(v, object)
		s.changed(v)
		s.portsChanged(e.Key)
	case source.Ingress:
		s.ingressEvent(e)
	case source.IngressClass:
		s.classEvent(e)
	case source.EndpointSlice:
		s.sliceEvent(e)
	case source.Secret:
		s.secretEvent(e)
	case source.ConfigMap:
	default:
		if e.Kind.OfGatewayAPI() {
			s.gatewayEvent(e)
			return
		}
	}
	s.gatewayObjectEvent(e)
}

func (s *state) routeEvent(e *source.Event) {
	old := s.routes.Get(e.Key)
	if s.isOutside(e) {
		s.forget(old)
		return
	}
	object, _ := e.Object.(*routev1.Route)
	if object == nil {
		s.forget(old)
		return
	}
	if old != nil && old.kept.uid != object.UID {
		s.forget(old)
		old = nil
	}
	var before *kept
	if old != nil {
		before = old.kept
	}
	now, same, err := s.keeper.keep(object, before)
	if err != nil {
		s.cfg.Log.Error("BUG: a route cannot be kept", zap.Stringer("route", e.Key), zap.Error(err))
		return
	}
	r := old
	switch {
	case r == nil:
		r = &route{key: e.Key, tls: &s.plain, verdict: &s.unjudged}
		s.routes.Put(r)
		s.judgeAgain(r)
	case r.order == e.Order && same: // most events of a route are about its status, which this router has written itself
		s.shown = append(s.shown, r)
	default:
		s.judgeAgain(r)
		s.askAgain(r.secret)
		if r.refs != nil {
			s.askAgain(r.refs.clients.secret)
			s.askAgain(r.refs.pods.secret)
		}
	}
	lean := *object // with what is held in any case, and nothing twice
	lean.Spec.TLS, lean.Status.Ingress = now.tls, now.ingress
	s.open(r, &lean)
	r.kept, r.order, r.origin, r.rule = now, e.Order, e.Origin, s.ingress.rules[e.Key]
	if s.cfg.Status != nil && r.rule == nil {
		s.observed = append(s.observed, r)
	}
}

// forget removes a route, nil included, from everything but the table.
func (s *state) forget(r *route) {
	if r == nil {
		return
	}
	s.tellRule(r)
	s.use(r, nil)
	s.useSecret(r, nil)
	if r.refs != nil {
		s.useReference(r, &r.refs.clients, "")
		s.useReference(r, &r.refs.pods, "")
	}
	s.claims.Remove(r.key)
	s.routes.Delete(r.key)
	s.waiting.Remove(r)
	delete(s.dirty, r)
	delete(s.touched, r)
	s.gone = append(s.gone, r)
}

func (s *state) sliceEvent(e *source.Event) {
	object, _ := e.Object.(*discoveryv1.EndpointSlice)
	var owner *service
	if object != nil {
		if name := object.Labels[discoveryv1.LabelServiceName]; name != "" {
			owner = s.service(source.Key{Namespace: e.Key.Namespace, Name: name})
		}
	}
	if p := s.slices.Get(e.Key); p != nil && p.service != owner {
		p.service.slices = slices.DeleteFunc(p.service.slices, func(o endpoints.Slice) bool { return o.Name == e.Key.Name })
		s.slices.Delete(e.Key)
		s.changed(p.service)
	}
	if owner == nil {
		return
	}
	kept, err := endpoints.Pack(object)
	if err != nil {
		s.cfg.Log.Error("BUG: an endpoint slice cannot be kept", zap.Stringer("slice", e.Key), zap.Error(err))
		return
	}
	if i := slices.IndexFunc(owner.slices, func(o endpoints.Slice) bool { return o.Name == e.Key.Name }); i >= 0 {
		owner.slices[i] = kept
	} else {
		owner.slices = append(owner.slices, kept)
		s.slices.Put(&placed{kept.Name, owner})
	}
	s.changed(owner)
}

// service returns what is known about a service, made when it is asked for first.
func (s *state) service(key source.Key) *service {
	v := s.services.Get(key)
	if v == nil {
		v = &service{key: key}
		s.services.Put(v)
	}
	return v
}

// changed handles a change of the object or the endpoints of a service.
func (s *state) changed(v *service) {
	s.refront(v)
	s.judgeService(v)
	s.dropService(v)
}

// judgeService queues the users of a service to be judged again, in this batch or a later one.
func (s *state) judgeService(v *service) {
	v.set = nil
	s.gatewayService(v, v.key)
	for _, r := range v.users {
		s.waiting.Add(r, s.stamp)
	}
}

func (s *state) dropService(v *service) {
	if v.object == nil && len(v.slices) == 0 && len(v.users) == 0 {
		s.services.Delete(v.key)
	}
}

// endpointSet returns the endpoints of a service. Routes of one batch share it; it is cheap to
// make and large to keep.
func (s *state) endpointSet(v *service) *endpoints.Set {
	if v.set == nil {
		v.set = endpoints.Service(s.endpoints(), v.key.Namespace, v.key.Name, v.object, v.slices)
		s.asked = append(s.asked, v)
		if v.set.Own > 0 {
			s.cfg.Bounds.Reached(bound.OwnAddresses)
		}
		if v.set.Beyond > 0 {
			s.cfg.Bounds.Reached(bound.ServiceEndpoints)
		}
	}
	return v.set
}

// lookup returns the endpoints of services by name, for the routes of a namespace.
func (s *state) lookup(namespace string) func(name string) *endpoints.Set {
	return func(name string) *endpoints.Set {
		key := source.Key{Namespace: namespace, Name: name}
		if v := s.services.Get(key); v != nil {
			return s.endpointSet(v)
		}
		return endpoints.Service(s.endpoints(), namespace, name, nil, nil)
	}
}

// endpoints selects the endpoints of Routes.
func (s *state) endpoints() endpoints.Options {
	return endpoints.Options{IncludeUDP: s.cfg.Options.IncludeUDP, Targets: s.targets}
}

// use makes a route a user of services, and of no others.
func (s *state) use(r *route, names []string) {
	if len(names) == len(r.services) {
		same := true
		for i, name := range names {
			same = same && r.services[i].key.Name == name
		}
		if same {
			return
		}
	}
	before := r.services
	r.services = make([]*service, 0, len(names))
	for _, name := range names {
		v := s.service(source.Key{Namespace: r.key.Namespace, Name: name})
		if !slices.Contains(before, v) {
			v.users = append(v.users, r)
		}
		r.services = append(r.services, v)
	}
	for _, v := range before {
		if slices.Contains(r.services, v) {
			continue
		}
		i := slices.Index(v.users, r)
		v.users[i] = v.users[len(v.users)-1]
		v.users = slices.Delete(v.users, len(v.users)-1, len(v.users))
		s.dropService(v)
	}
}

// tableKey returns the identity of a route in tables, that of its first rule.
func (r *route) tableKey() routing.RouteKey {
	return routing.RouteKey{Namespace: r.key.Namespace, Name: r.key.Name, UID: string(r.kept.uid)}
}

// tableKeys returns the identities of the rules from a number on that the table has of a route.
func (r *route) tableKeys(from int) (keys []routing.RouteKey) {
	for n := from; n < r.rules; n++ {
		key := r.tableKey()
		key.Rule = n
		keys = append(keys, key)
	}
	return keys
}
