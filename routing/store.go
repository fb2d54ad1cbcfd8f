package routing

import (
	"context"
	"sync"
	"sync/atomic"
)

// Store holds the published table. It is made by NewStore and safe for use by any
// goroutine; Load costs one atomic read.
type Store struct {
	table   atomic.Pointer[Table]
	mu      sync.Mutex
	changed chan struct{} // closed at the next Publish
}

// NewStore returns a store with an empty table of generation 0. That table has no
// options: the first real one is made by Compile, not by its Apply.
func NewStore() *Store {
	s := &Store{changed: make(chan struct{})}
	t, _ := Compile(Options{}, nil, nil)
	s.table.Store(t)
	return s
}

// Showing returns a store that has t without publishing it: no pool changes, and the generation stays that of t. It is for
// finding out what a table decides.
func Showing(t *Table) *Store {
	s := &Store{changed: make(chan struct{})}
	s.table.Store(t)
	return s
}

// Load returns the published table, never nil.
func (s *Store) Load() *Table { return s.table.Load() }

// Publish makes t the published table and returns its generation, one more than
// that of the table before. Just before requests find t, the pools of the routes that were compiled for it,
// and for tables it was made from that were not published, get what their specs ask for: once, so that publishing
// a table again, which is allowed, leaves the pools as they are. The store takes t over: nobody else may publish it.
func (s *Store) Publish(t *Table) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	generation := s.table.Load().generation + 1
	if t.generation != 0 {
		again := *t // readers may hold t: it keeps its generation
		t = &again
	}
	t.generation = generation
	t.plan.execute()
	s.table.Store(t)
	close(s.changed)
	s.changed = make(chan struct{})
	return generation
}

// Wait returns nil when a table of the generation or a later one is published, and
// the error of ctx when that ends first.
func (s *Store) Wait(ctx context.Context, generation uint64) error {
	for {
		s.mu.Lock()
		current, changed := s.table.Load().generation, s.changed
		s.mu.Unlock()
		if current >= generation {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
