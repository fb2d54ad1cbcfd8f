package routing

import (
	"fmt"
	"slices"
	"strings"

	"turnout/balancer"
)

// What follows the key of a route in those of its other pools.
const (
	backendPool = "#backend/"
	mirrorPool  = "#mirror/"
)

// pools gives r, which is new, its pools: those that old, nil if there is none, has under the same keys, and others that are made.
func (b *builder) pools(r *Route, spec *RuleSpec, old *Route) {
	key := spec.RouteKey.String()
	if len(spec.Backends) > 0 || len(spec.Mirrors) > 0 {
		r.shares = b.shares(key, spec, old)
	}
	switch {
	case r.lead():
	case old != nil && !old.Divided():
		r.pool = old.pool
	default:
		r.pool = b.options.Registry.Draft(key)
	}
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

// shares makes those of a spec, which has some.
func (b *builder) shares(key string, spec *RuleSpec, old *Route) *shares {
	s := &shares{}
	pool := func(kind, own string) *balancer.Pool {
		if p := old.poolOf(kind, own); p != nil {
			return p
		}
		return b.options.Registry.Draft(key + kind + own)
	}
	weighted := 0
	for i := range spec.Backends {
		out := Backend{sharing: spec.Backends[i].sharing()}
		if out.status == 0 {
			out.pool = pool(backendPool, out.key)
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
		out.route = mirrored(spec, pool(mirrorPool, out.key))
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

// poolOf returns the pool of a backend or mirror of r, which may be nil; nil if there is none.
func (r *Route) poolOf(kind, key string) *balancer.Pool {
	if r == nil || r.shares == nil {
		return nil
	}
	if kind == mirrorPool {
		for i := range r.shares.mirrors {
			if m := &r.shares.mirrors[i]; m.key == key {
				return m.route.pool
			}
		}
		return nil
	}
	for i := range r.shares.backends {
		if b := &r.shares.backends[i]; b.key == key {
			return b.pool
		}
	}
	return nil
}

// sharesAs reports whether r has the backends and mirrors of a spec, but for their pools.
func (r *Route) sharesAs(spec *RuleSpec) bool {
	if r.shares == nil {
		return len(spec.Backends) == 0 && len(spec.Mirrors) == 0
	}
	return slices.EqualFunc(r.shares.backends, spec.Backends, func(b Backend, s BackendSpec) bool { return b.sharing == s.sharing() }) &&
		slices.EqualFunc(r.shares.mirrors, spec.Mirrors, func(m Mirror, s MirrorSpec) bool { return m.copying == s.copying() })
}

// SameRoute reports whether two specs ask for the same but for what concerns their pools: how these choose, and their targets. Then
// Refill is all that it takes to serve the other one.
func (s *RuleSpec) SameRoute(o *RuleSpec) bool {
	return s.served() == o.served() && s.Policy == o.Policy && s.Certificate.Equal(o.Certificate) && s.ClientAuth.equal(o.ClientAuth) &&
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

// hasPool reports whether a pool of r, which may be nil, has a key that begins with that of r.
func (r *Route) hasPool(key string) bool {
	if r == nil {
		return false
	}
	if _, own, ok := strings.Cut(key, backendPool); ok && r.poolOf(backendPool, own) != nil {
		return true
	}
	if _, own, ok := strings.Cut(key, mirrorPool); ok && r.poolOf(mirrorPool, own) != nil {
		return true
	}
	return !r.Divided() && r.pool.Key() == key
}
