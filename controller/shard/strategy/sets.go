package strategy

import (
	"turnout/controller/shard"
)

// maxSets is how many sets of routers are remembered; of more the one that was asked for longest ago is forgotten. Routes whose labels are selected by
// the same routers share one.
const maxSets = 64

// setKey is a slice of routers by where it is in memory: as long as it is remembered, no other can be there.
type setKey struct {
	first **shard.Router
	n     int
}

// sets remembers something about slices of routers. The zero value remembers nothing.
type sets[T any] struct {
	make  func([]*shard.Router) T
	known map[setKey]*remembered[T]
	turn  uint64
}

type remembered[T any] struct {
	routers []*shard.Router // keeps them where they are
	used    uint64
	value   T
}

// of returns what is remembered of routers, of which there is at least one.
func (s *sets[T]) of(routers []*shard.Router) T {
	key := setKey{&routers[0], len(routers)}
	s.turn++
	if r := s.known[key]; r != nil {
		r.used = s.turn
		return r.value
	}
	if len(s.known) >= maxSets {
		s.forget()
	}
	if s.known == nil {
		s.known = make(map[setKey]*remembered[T])
	}
	r := &remembered[T]{routers: routers, used: s.turn, value: s.make(routers)}
	s.known[key] = r
	return r.value
}

// forget forgets the one that was asked for longest ago.
func (s *sets[T]) forget() {
	var oldest setKey
	least := s.turn + 1
	for key, r := range s.known {
		if r.used < least {
			oldest, least = key, r.used
		}
	}
	delete(s.known, oldest)
}

// each calls do with each that is remembered.
func (s *sets[T]) each(do func(T)) {
	for _, r := range s.known {
		do(r.value)
	}
}
