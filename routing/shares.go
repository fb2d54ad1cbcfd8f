package routing

import (
	"fmt"
	"slices"
	"strings"

	"turnout/balancer"
)

// The key of a pool is that of its object, followed by one of these words and the name of the pool
// among those of the object. The main pool of an object has the key of the object alone. Rules are
// no part of a key: all rules of an object that name a pool share it.
const (
	targetPool  = "#targets/" // of RuleSpec.PoolKey
	backendPool = "#backend/" // of BackendSpec.Key
	mirrorPool  = "#mirror/"  // of MirrorSpec.Key
)

// pool returns the pool of an object by its kind and its name among those of the object.
func (b *builder) pool(of RouteKey, kind, name string) *balancer.Pool {
	key := RouteKey{Namespace: of.Namespace, Name: of.Name, UID: of.UID}.String()
	if kind != targetPool || name != "" {
		key += kind + name
	}
	return b.options.Registry.Draft(key)
}

// pools sets the pools of r, which is a new route of spec. old is the route of its key, or nil.
func (b *builder) pools(r *Route, spec *RuleSpec, old *Route) {
	if len(spec.Backends) > 0 || len(spec.Mirrors) > 0 {
		r.shares = b.shares(spec, old)
	}
	switch {
	case r.lead():
	case r.Divided():
		r.pool = b.pool(spec.RouteKey, backendPool, "") // no backend has this name: it stays empty
	default:
		r.pool = b.pool(spec.RouteKey, targetPool, spec.PoolKey)
	}
}

// poolKey returns the RuleSpec.PoolKey that r, which is not divided, was made with.
func (r *Route) poolKey() string {
	_, name, _ := strings.Cut(r.pool.Key(), targetPool)
	return name
}

// lead makes the first pool of the backends that of a divided route. False: there is none.
func (r *Route) lead() bool {
	if r.Divided() {
		for p := range r.Pools {
			r.pool = p
			return true
		}
	}
	return false
}

// shares returns the backends and mirrors of a spec that has some.
func (b *builder) shares(spec *RuleSpec, old *Route) *shares {
	s := &shares{}
	weighted := 0
	for i := range spec.Backends {
		out := Backend{sharing: spec.Backends[i].sharing()}
		if out.status == 0 {
			out.pool = b.pool(spec.RouteKey, backendPool, out.key)
		}
		if out.weight > 0 {
			weighted++
		}
		s.total += out.weight
		s.backends = append(s.backends, out)
	}
	switch weighted {
	case 0:
	case 1:
		s.only = &s.backends[slices.IndexFunc(s.backends, func(b Backend) bool { return b.weight > 0 })]
	default:
		if s.turns = new(turns); old != nil && old.shares != nil && old.shares.turns != nil {
			s.turns = old.shares.turns
		}
	}
	for i := range spec.Mirrors {
		out := Mirror{copying: spec.Mirrors[i].copying()}
		out.route = mirrored(spec, b.pool(spec.RouteKey, mirrorPool, out.key))
		s.mirrors = append(s.mirrors, out)
	}
	return s
}

// distinct fails if two backends, or two mirrors, have one key.
func (s *RuleSpec) distinct() error {
	for i := range s.Backends {
		if s.backend(s.Backends[i].Key) != &s.Backends[i] {
			return fmt.Errorf("two backends have the key %.200q", s.Backends[i].Key)
		}
	}
	for i := range s.Mirrors {
		if s.mirror(s.Mirrors[i].Key) != &s.Mirrors[i] {
			return fmt.Errorf("two mirrors have the key %.200q", s.Mirrors[i].Key)
		}
	}
	return nil
}

// backend returns the first one of a key, nil if there is none.
func (s *RuleSpec) backend(key string) *BackendSpec {
	for i := range s.Backends {
		if s.Backends[i].Key == key {
			return &s.Backends[i]
		}
	}
	return nil
}

// mirror is backend for mirrors.
func (s *RuleSpec) mirror(key string) *MirrorSpec {
	for i := range s.Mirrors {
		if s.Mirrors[i].Key == key {
			return &s.Mirrors[i]
		}
	}
	return nil
}

// sharesAs reports whether r has the backends, mirrors and pool names of a spec. The contents of
// the pools may differ.
func (r *Route) sharesAs(spec *RuleSpec) bool {
	if len(spec.Backends) == 0 && !r.Divided() && r.poolKey() != spec.PoolKey {
		return false
	}
	if r.shares == nil {
		return len(spec.Backends) == 0 && len(spec.Mirrors) == 0
	}
	return slices.EqualFunc(r.shares.backends, spec.Backends, func(b Backend, s BackendSpec) bool { return b.sharing == s.sharing() }) &&
		slices.EqualFunc(r.shares.mirrors, spec.Mirrors, func(m Mirror, s MirrorSpec) bool { return m.copying == s.copying() })
}

// SameRoute reports whether two specs differ in the contents of their pools at most: how these
// choose, and their targets. Then Refill is sufficient to serve the other one.
func (s *RuleSpec) SameRoute(o *RuleSpec) bool {
	return s.PoolKey == o.PoolKey && s.served() == o.served() && s.Policy == o.Policy && s.Certificate.Equal(o.Certificate) && s.ClientAuth.equal(o.ClientAuth) &&
		slices.EqualFunc(s.Backends, o.Backends, func(a, b BackendSpec) bool { return a.sharing() == b.sharing() }) &&
		slices.EqualFunc(s.Mirrors, o.Mirrors, func(a, b MirrorSpec) bool { return a.copying() == b.copying() })
}

// Refill gives the pools of a route of the published table what a spec with the same backends and mirrors says of them. No table is made.
func (r *Route) Refill(spec *RuleSpec) {
	if !r.Divided() {
		r.pool.Update(spec.Pool, spec.Targets)
	}
	if r.shares == nil {
		return
	}
	for i := range r.shares.backends {
		b := &r.shares.backends[i]
		if s := spec.backend(b.key); s != nil && b.pool != nil {
			b.pool.Update(s.Pool, s.Targets)
		}
	}
	for i := range r.shares.mirrors {
		m := &r.shares.mirrors[i]
		if s := spec.mirror(m.key); s != nil {
			cfg := s.Pool
			cfg.Scope = "" // copies do not count as requests
			m.route.pool.Update(cfg, s.Targets)
		}
	}
}

// enter has the registry know the pools of r, which no request has seen. Another table with them may have been published since it was compiled:
// they stay what they are.
func (r *Route) enter() {
	if s := r.shares; s != nil {
		for i := range s.backends {
			if b := &s.backends[i]; b.pool != nil {
				b.pool = b.pool.Enter()
			}
		}
		for i := range s.mirrors {
			m := s.mirrors[i].route
			m.pool = m.pool.Enter()
		}
	}
	if !r.lead() && !r.Divided() {
		r.pool = r.pool.Enter()
	}
}
