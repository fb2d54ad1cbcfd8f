package gateway

import "slices"

// servesAlike reports whether routes see no difference between two judgements of one Gateway.
func (g *gateway) servesAlike(o *gateway) bool {
	if g.client != o.client || g.accepted() != o.accepted() || !slices.EqualFunc(g.sets, o.sets, func(a, b *listenerSet) bool { return a.key == b.key }) {
		return false
	}
	return slices.EqualFunc(slices.Collect(g.all), slices.Collect(o.all), (*listener).servesAlike)
}

// servesAlike reports whether routes see no difference between two judgements of one listener.
func (l *listener) servesAlike(o *listener) bool {
	return l.owner == o.owner && l.name == o.name && l.port == o.port && l.host == o.host && l.kind == o.kind && l.spec.Port == o.spec.Port &&
		l.passthrough() == o.passthrough() && l.serves() == o.serves() && slices.Equal(l.kinds, o.kinds) && l.selector.equal(&o.selector)
}

// become makes g what next is, for which it servesAlike: routes that are attached to its listeners stay so.
func (g *gateway) become(next *gateway) {
	before := slices.Collect(g.all)
	after := slices.Collect(next.all)
	for i, l := range before {
		attached, winner, mixed := l.attached, l.winner, l.mixed
		*l = *after[i]
		l.attached, l.winner, l.mixed, l.gateway = attached, winner, mixed, g
	}
	next.listeners, before = before[:len(next.listeners)], before[len(next.listeners):]
	for _, s := range next.sets {
		s.listeners, before = before[:len(s.listeners)], before[len(s.listeners):]
	}
	*g = *next
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
