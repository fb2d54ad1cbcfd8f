package strategy

import (
	"errors"

	"turnout/controller/shard"
)

// ZoneLabel is the label of a Router by which Spread tells zones apart, unless another is given.
const ZoneLabel = "topology.kubernetes.io/zone"

// zones is a set of routers by zone.
type zones struct {
	all    *ranking
	byZone map[string]*ranking
}

// spread binds each route to several routers.
type spread struct {
	count int
	zone  string
	least *least
	sets  sets[*zones]
}

// Spread returns the strategy that binds each route to count routers, at least 1, in as many zones as it can: zone is the label that says in which zone a
// Router is, "" for ZoneLabel. Among equals it takes the router with the least routes, for its capacity if it has one.
func Spread(count int, zone string) shard.Strategy {
	if zone == "" {
		zone = ZoneLabel
	}
	s := &spread{count: max(count, 1), zone: zone, least: LeastRoutes().(*least)}
	s.sets.make = s.zones
	return s
}

func (s *spread) zones(routers []*shard.Router) *zones {
	by := make(map[string][]*shard.Router)
	for _, r := range routers {
		z := r.Labels.Get(s.zone)
		by[z] = append(by[z], r)
	}
	set := &zones{all: newRanking(routers, s.least.weight, s.least.turns), byZone: make(map[string]*ranking, len(by))}
	for z, list := range by {
		set.byZone[z] = newRanking(list, s.least.weight, s.least.turns)
	}
	return set
}

// Schedule is shard.Strategy's.
func (s *spread) Schedule(_ *shard.Route, routers []*shard.Router) (*shard.Router, error) {
	return s.took(s.sets.of(routers).all.first()), nil
}

// Count is shard.Multiple's.
func (s *spread) Count(*shard.Route) int { return s.count }

// Another is shard.Multiple's.
func (s *spread) Another(_ *shard.Route, have, routers []*shard.Router) (*shard.Router, error) {
	set := s.sets.of(routers)
	var best *ranking
	for z, h := range set.byZone {
		taken := false
		for _, r := range have {
			taken = taken || r.Labels.Get(s.zone) == z
		}
		if !taken && (best == nil || before(h, best)) {
			best = h
		}
	}
	if best != nil {
		return s.took(best.first()), nil
	}
	if r := set.all.firstBut(have); r != nil {
		return s.took(r), nil
	}
	return nil, errors.New("all routers have the route already")
}

// before compares the first routers of two rankings.
func before(a, b *ranking) bool {
	x, y := a.first(), b.first()
	two := ranking{turns: a.turns, list: []*shard.Router{x, y}, least: []float64{a.least[0], b.least[0]}}
	return two.Less(0, 1)
}

func (s *spread) took(r *shard.Router) *shard.Router {
	s.least.turn++
	s.least.turns[r] = s.least.turn
	s.fix(r)
	return r
}

func (s *spread) fix(r *shard.Router) {
	s.sets.each(func(set *zones) {
		set.all.fix(r)
		if h := set.byZone[r.Labels.Get(s.zone)]; h != nil {
			h.fix(r)
		}
	})
}

// Observe is shard.Observer's.
func (s *spread) Observe(r *shard.Router, gone bool) {
	if gone {
		delete(s.least.turns, r)
		return
	}
	s.fix(r)
}
