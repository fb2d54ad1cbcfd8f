package controller

import (
	"cmp"
	"crypto/tls"
	"runtime/debug"
	"slices"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/admit"
	"turnout/controller/ingress"
	"turnout/controller/status"
	"turnout/controller/translate"
	"turnout/internal/bound"
	"turnout/internal/keypair"
	"turnout/routing"
)

// plan is what is to be changed in the table.
type plan struct {
	upserts []*route
	deletes []routing.RouteKey
}

// settle gives each dirty route its host and decides all claims. Routes whose claim
// was decided otherwise become dirty too.
func (s *state) settle() {
	for r := range s.dirty {
		o := s.objectOf(r)
		path := o.Spec.Path
		if r.rule != nil {
			r.host, path = r.rule.Host, r.rule.Claim()
		} else {
			r.host = s.admission.Host(o.Namespace, o.Name, s.wantedHost(o), o.Spec.Subdomain)
			r.shard = s.shardReport(o)
		}
		checked := s.check(r)
		if checked.Admitted {
			checked = admit.HeaderActions(o)
		}
		if r.refused = nil; !checked.Admitted {
			r.refused = &checked
			s.claims.Remove(r.key)
			continue
		}
		s.claims.Set(admit.Claim{
			Key: r.key, UID: string(o.UID), Created: o.CreationTimestamp.Time, Order: r.order,
			Host: r.host, Path: path, Wildcard: o.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain,
			TLS: o.Spec.TLS != nil, Passthrough: o.Spec.TLS != nil && o.Spec.TLS.Termination == routev1.TLSTerminationPassthrough,
		})
		if said, ok := s.rejection(r); ok {
			s.claims.Recall(r.key, said)
		}
	}
	for _, key := range s.claims.Settle() {
		if r := s.routes.Get(key); r != nil {
			s.dirty[r] = struct{}{}
		}
	}
}

// rejection is what the status of a route says of its claim to the host, if that is a rejection by this router.
func (s *state) rejection(r *route) (said admit.Verdict, ok bool) {
	entry := status.Find(s.cfg.Options.status(), r.kept.ingress)
	if entry == nil || entry.Host != r.host {
		return said, false
	}
	for i := range entry.Conditions {
		if c := &entry.Conditions[i]; c.Type == routev1.RouteAdmitted && c.Status == corev1.ConditionFalse {
			return admit.Verdict{Reason: c.Reason, Message: c.Message}, true
		}
	}
	return said, false
}

// judge decides and translates the dirty routes and gives the touched ones their new
// endpoints.
func (s *state) judge() plan {
	var p plan
	for _, r := range s.gone {
		if r.served {
			p.deletes = append(p.deletes, r.tableKeys(0)...)
			s.unswept = true
		}
	}
	for r := range s.dirty {
		s.judgeRoute(r, &p)
	}
	s.refillTouched()
	return p
}

// refillTouched updates the servers of routes with changed endpoints.
func (s *state) refillTouched() {
	for r := range s.touched {
		if r.result != nil {
			r.result.Refill(s.lookup(r.key.Namespace), &s.crews)
			s.refill(r)
		}
	}
}

// judgeRoute decides about one route and translates it. Should that panic, the route is rejected
// and the others go on: an account that may write a Route must not be able to stop the router.
func (s *state) judgeRoute(r *route, p *plan) {
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Log.Error("BUG: a route cannot be judged", zap.Stringer("route", r.key), zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
			r.verdict, r.waiting = &admit.Verdict{Reason: reasonInternal, Message: "the router failed on this route; its log says more"}, false
			delete(s.touched, r)
			s.withdraw(r, p)
		}
	}()
	r.waiting = false
	if r.refused != nil {
		r.verdict = r.refused
	} else {
		r.verdict, _ = s.claims.Verdict(r.key)
	}
	var tls *routev1.TLSConfig
	var refs found
	if r.verdict.Admitted {
		tls = s.tlsOf(r)
		if r.verdict = &r.tls.verdict; r.verdict.Admitted {
			if refs = s.resolve(r, tls); !refs.verdict.Admitted {
				v := refs.verdict // refs is not kept
				r.verdict = &v
			}
		}
		if (r.tls.waiting || refs.waiting) && r.unmoved(s.objectOf(r)) {
			r.waiting = true
			s.touched[r] = struct{}{}
			return
		}
		r.waiting = r.tls.waiting && !r.tls.from.late || refs.waiting && !refs.late
	}
	delete(s.touched, r)
	if !r.verdict.Admitted {
		s.withdraw(r, p)
		return
	}
	in := refs.in
	in.Route, in.Host, in.TLS, in.Leaf, in.Service, in.Shared = s.objectOf(r), r.host, tls, r.tls.leaf, s.lookup(r.key.Namespace), &s.crews
	s.translate(r, in, p)
}

// unmoved reports whether a route is served where it wants to be served now, so that it
// can go on as it was until its secret is known.
func (r *route) unmoved(o *routev1.Route) bool {
	if !r.served || r.result == nil {
		return false
	}
	at := &r.result.Place
	return at.Host == r.host && at.Path == o.Spec.Path && at.Wildcard == (o.Spec.WildcardPolicy == routev1.WildcardPolicySubdomain) &&
		(at.Termination.String() == string(o.Spec.TLS.Termination) || at.Termination == routing.TermNone && o.Spec.TLS.Termination == "")
}

// reasonInternal is the reason of a rejection that only a mistake of the router explains.
const reasonInternal = "InternalError"

// withdraw takes a route that is not admitted out of the table.
func (s *state) withdraw(r *route, p *plan) {
	s.use(r, nil)
	r.result = nil
	if r.served {
		r.served = false
		s.unswept = true
		p.deletes = append(p.deletes, r.tableKeys(0)...)
	}
}

// translate makes the spec of an admitted route.
func (s *state) translate(r *route, in translate.Input, p *plan) {
	if s.cfg.translating != nil {
		s.cfg.translating(s.objectOf(r))
	}
	before := r.result
	r.result = s.translator.Route(in)
	r.result.Spec.Policy.Leaving, r.result.Spec.Policy.NotFound = s.leaves(s.objectOf(r)), r.rule != nil
	s.use(r, r.result.Services)
	if r.result.Closed && (before == nil || !before.Closed) {
		s.cfg.Log.Warn("route lets nobody in: its allow-list has no valid entry", zap.Stringer("route", r.key), zap.String("host", r.host))
	}
	if before != nil && s.serves(r, before) {
		s.refill(r)
		return
	}
	p.upserts = append(p.upserts, r)
}

// serves reports whether the table has a route as it was translated now, but for its endpoints. before is the result of before.
func (s *state) serves(r *route, before *translate.Result) bool {
	if !r.served || !r.result.ChoosesAs(before) || !r.result.Kept.Equal(before.Kept) {
		return false
	}
	specs, table := r.specs(), s.cfg.Store.Load()
	for i := range specs {
		in := table.Route(specs[i].RouteKey)
		if in == nil || !in.Serves(&specs[i]) || in.Pool().Config() != specs[i].Pool {
			return false
		}
	}
	return len(specs) == r.rules
}

// refill tells the pools of a route their servers; no table is made.
func (s *state) refill(r *route) {
	if !r.served {
		return
	}
	table := s.cfg.Store.Load()
	for n, key := range r.tableKeys(0) {
		in := table.Route(key)
		if in == nil {
			continue
		}
		pool := in.Pool().Config()
		if r.result.Spec != nil {
			pool = r.result.Spec.Pool()
		}
		spec := r.result.Fill(n, pool)
		in.Refill(&spec)
		s.reached, s.unswept = true, true
	}
	if e := s.cfg.Log.Check(zap.DebugLevel, "servers of a route changed"); e != nil {
		e.Write(zap.String("namespace", r.key.Namespace), zap.Strings("services", r.result.Services), zap.Stringer("route", r.key),
			zap.Int("servers", len(r.result.Targets)))
	}
}

// publish makes the table of a plan and publishes it, if it changes anything.
func (s *state) publish(p plan) {
	if s.published && len(p.upserts) == 0 && len(p.deletes) == 0 && !s.gateways.changesTable() {
		return
	}
	// Several routes in no order would make tables that differ from run to run.
	slices.SortFunc(p.upserts, func(a, b *route) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	specs := make([]routing.RuleSpec, 0, len(p.upserts))
	deletes := slices.Clip(p.deletes)
	for _, r := range p.upserts {
		rules := r.specs()
		if r.served {
			deletes = append(deletes, r.tableKeys(len(rules))...)
		}
		specs = append(specs, rules...)
		r.served, r.rules = true, len(rules)
	}
	var table *routing.Table
	var rejections []routing.Rejection
	before, began := s.cfg.Store.Load(), time.Now()
	if s.published {
		table, rejections = before.ApplyRules(specs, deletes)
	} else {
		table, rejections = routing.CompileRules(s.cfg.Routing, before, specs)
	}
	for _, r := range p.upserts { // the table has it, once per content
		r.valid, r.tls.leaf = nil, nil
		if in := table.Route(r.tableKey()); in != nil {
			r.valid = validityOf(r.ownLeaf(in), in.Host(), r.result.Spec.Wildcard)
			if r.valid != nil && r.host == ingress.AnyHost {
				r.valid.foreign = false
			}
		}
		if c := r.result.Spec.Certificate; c != nil {
			c.Leaf = nil
		}
	}
	if len(rejections) > 0 {
		s.reject(p.upserts, rejections)
	}
	table = s.addGateways(table)
	made := time.Now()
	generation := s.cfg.Store.Publish(table)
	s.timing.published(made.Sub(began), time.Since(made))
	s.reached = true
	s.views.publishedAt(s.cfg.Clock())
	s.note(before, &p, generation, table.Len())
	s.published = true
	if e := s.cfg.Log.Check(zap.DebugLevel, "table published"); e != nil {
		e.Write(zap.Uint64("generation", generation), zap.Int("routes", table.Len()),
			zap.Int("changed", len(specs)), zap.Int("deleted", len(deletes)),
			zap.Strings("routes_changed", firstRoutes(p.upserts, func(r *route) string { return r.key.String() })),
			zap.Strings("routes_deleted", firstRoutes(p.deletes, func(k routing.RouteKey) string { return k.Namespace + "/" + k.Name })))
	}
}

// ownLeaf is of the certificate of a route that the table has now, as who checked it has read it, or else read again; nil = it has none.
func (r *route) ownLeaf(in *routing.Route) *keypair.Leaf {
	if c := r.result.Spec.Certificate; c != nil && c.Leaf != nil {
		return c.Leaf
	}
	if c := in.Certificate(); c != nil {
		return keypair.LeafOf(c.Leaf)
	}
	return nil
}

// firstRoutes names a few of what a table changes.
func firstRoutes[T any](all []T, name func(T) string) []string {
	names := []string{}
	for _, r := range all[:min(len(all), 10)] {
		names = append(names, name(r))
	}
	return names
}

// setDefaultCertificate publishes a table with another default certificate.
func (s *state) setDefaultCertificate(next *tls.Certificate) {
	s.cfg.Routing.DefaultCertificate = next
	s.tellDefaultCertificate(s.cfg.Clock())
	if s.published {
		began, table := time.Now(), s.cfg.Store.Load()
		generation := s.cfg.Store.Publish(table.WithDefaultCertificate(next))
		s.timing.published(0, time.Since(began))
		s.views.publishedAt(s.cfg.Clock())
		s.changes.add(Change{Generation: generation, Live: s.cfg.Clock().UTC(), Routes: table.Len(), Changed: []ChangedItem{{Object: "default certificate", What: "changed"}}})
	}
}

// setDestinationCA has the routes translated again whose endpoints it verifies.
func (s *state) setDestinationCA(pem []byte) {
	s.translator.SetDestinationCA(pem)
	for r := range s.routes.All() {
		if tls := r.kept.tls; tls != nil && tls.Termination == routev1.TLSTerminationReencrypt && tls.DestinationCACertificate == "" {
			s.judgeAgain(r)
		}
	}
}

// reject notes which routes could not be compiled. They are not in the table.
func (s *state) reject(upserts []*route, rejections []routing.Rejection) {
	byKey := make(map[routing.RouteKey]*route, len(upserts))
	for _, r := range upserts {
		for _, key := range r.tableKeys(0) {
			byKey[key] = r // what is wrong with one rule of a route is wrong with all of them
		}
	}
	for _, rejection := range rejections {
		if rejection.LongChain {
			s.cfg.Bounds.Reached(bound.CertificateChain)
		}
		if r := byKey[rejection.Key]; r != nil {
			r.verdict = &admit.Verdict{Reason: rejection.Reason, Message: rejection.Message}
			r.served, r.result = false, nil
			s.use(r, nil)
		}
	}
	s.unswept = true
}

// sweep drops from the registry what no route uses any more.
func (s *state) sweep() {
	if !s.unswept || !s.published {
		return
	}
	s.unswept = false
	s.cfg.Routing.Registry.Sweep(s.cfg.Store.Load().Pools)
}
