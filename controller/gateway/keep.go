package gateway

import (
	"slices"

	"turnout/controller/source"
)

// kept is what is new about a Gateway that was judged again.
type kept struct {
	spoiled []Ref // Gateways and ListenerSets whose routes see a difference
	changed []Ref // those whose status may be another, besides that
}

// become makes g what next is. Of owners whose routes see no difference the listeners stay the objects that they are, with all that is attached
// to them.
func (g *gateway) become(next *gateway) (out kept) {
	alike := g.client == next.client && g.accepted() == next.accepted() && g.serves() == next.serves()
	programmed := g.programmed() == next.programmed()
	keep := func(owner Ref, before, after []*listener) []*listener {
		if !alike || !slices.EqualFunc(before, after, (*listener).servesAlike) {
			out.spoiled = append(out.spoiled, owner)
			return after
		}
		for i, l := range before {
			attached, winner, mixed := l.attached, l.winner, l.mixed
			*l = *after[i]
			l.attached, l.winner, l.mixed = attached, winner, mixed
		}
		return before
	}
	old := make(map[source.Key]*listenerSet, len(g.sets))
	for _, s := range g.sets {
		old[s.key] = s
	}
	next.listeners = keep(Ref{kindGateway, g.key}, g.listeners, next.listeners)
	for _, s := range next.sets {
		owner := Ref{kindListenerSet, s.key}
		before := old[s.key]
		if before == nil {
			out.spoiled = append(out.spoiled, owner)
			continue
		}
		if !programmed || !before.toldAlike(s) {
			out.changed = append(out.changed, owner)
		}
		s.listeners = keep(owner, before.listeners, s.listeners)
		delete(old, s.key)
	}
	for key := range old {
		out.spoiled = append(out.spoiled, Ref{kindListenerSet, key})
	}
	*g = *next
	for l := range g.all {
		l.gateway = g
	}
	return out
}

// servesAlike reports whether routes see no difference between two judgements of one listener.
func (l *listener) servesAlike(o *listener) bool {
	return l.owner == o.owner && l.name == o.name && l.port == o.port && l.host == o.host && l.kind == o.kind && l.spec.Port == o.spec.Port &&
		l.passthrough() == o.passthrough() && l.serves() == o.serves() && slices.Equal(l.kinds, o.kinds) && l.selector.equal(&o.selector)
}

// toldAlike reports whether two judgements of one ListenerSet lead to the same status, if those of its Gateway do and no route came or went.
func (s *listenerSet) toldAlike(o *listenerSet) bool {
	return s.object.Generation == o.object.Generation && s.allowed == o.allowed && slices.EqualFunc(s.listeners, o.listeners, (*listener).toldAlike)
}

// toldAlike is the same for one listener.
func (l *listener) toldAlike(o *listener) bool {
	return l.spec.Name == o.spec.Name && l.reason == o.reason && l.conflict == o.conflict && l.message == o.message && l.refs == o.refs && l.refMessage == o.refMessage &&
		l.broken == o.broken && l.overlaps == o.overlaps && slices.Equal(l.kinds, o.kinds)
}

// owners are the Gateway and its ListenerSets.
func (g *gateway) owners() []Ref {
	list := []Ref{{kindGateway, g.key}}
	for _, s := range g.sets {
		list = append(list, Ref{kindListenerSet, s.key})
	}
	return list
}

// index is which routes have to do with something.
type index[K comparable] map[K]map[Ref]struct{}

func (x index[K]) add(key K, r Ref) {
	if x[key] == nil {
		x[key] = make(map[Ref]struct{})
	}
	x[key][r] = struct{}{}
}

func (x index[K]) remove(key K, r Ref) {
	if delete(x[key], r); len(x[key]) == 0 {
		delete(x, key)
	}
}
