package ratelimit

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"turnout/internal/shared"
)

// DefaultAddresses is how many addresses a Memory has by default.
const DefaultAddresses = 4 * MaxAddresses

// SweepPeriod is the time between two calls of Memory.Sweep.
const SweepPeriod = time.Second

const (
	quietSweeps = int32(Expiry/SweepPeriod) + 1 // after so many everything in a shard has expired
	leastShare  = 16                            // entries of a shard that no other table can make give way
	firstStep   = 8                             // entries of a shard at first
)

// Memory bounds what all tables made by it hold. Any goroutine may use it.
type Memory struct {
	most       int64
	used       atomic.Int64 // entries of all shards, unused ones too
	namespaces atomic.Int64 // namespaces with a table that has entries

	mu     shared.Mutex
	tables map[*Table]struct{} // those that remember anything
	spaces map[string]*space   // namespaces with a table
}

// space is a namespace, whose tables have one share together.
type space struct{ tables atomic.Int64 }

// NewMemory makes a Memory for so many addresses; 0 = DefaultAddresses. While more tables than that allows for are in
// use, each holds a thousand.
func NewMemory(addresses int) *Memory {
	if addresses <= 0 {
		addresses = DefaultAddresses
	}
	m := &Memory{most: int64(addresses), tables: make(map[*Table]struct{}), spaces: make(map[string]*space)}
	return m
}

// NewTable makes an empty table of a namespace.
func (m *Memory) NewTable(namespace string) *Table {
	t := &Table{seed: maphash.MakeSeed(), memory: m, namespace: namespace}
	for i := range t.shards {
		t.shards[i].reset()
	}
	return t
}

// Addresses is the number of addresses for which memory is taken. Any goroutine may call it.
func (m *Memory) Addresses() int64 { return m.used.Load() }

// step is how many entries a shard of n grows by.
func step(n, most int) int { return min(max(n/2, firstStep), most-n) }

// grant reports whether a shard of t with n entries may grow.
func (m *Memory) grant(t *Table, n, most int) bool {
	return m.used.Load()+int64(step(n, most)) <= m.most || int64(n) < m.share(t)
}

// share returns how many entries a shard of t has when memory is short: namespaces have equal
// shares, and so have the tables of each.
func (m *Memory) share(t *Table) int64 {
	tables := int64(1)
	if s := t.space.Load(); s != nil {
		tables = max(s.tables.Load(), 1)
	}
	return max(m.most/max(m.namespaces.Load(), 1)/tables/shards, leastShare)
}

// meet is called by a table when a shard of it begins to remember. The lock of the shard is held.
func (m *Memory) meet(t *Table) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !t.known {
		t.known = true
		m.tables[t] = struct{}{}
		s := m.spaces[t.namespace]
		if s == nil {
			s = new(space)
			m.spaces[t.namespace] = s
			m.namespaces.Add(1)
		}
		s.tables.Add(1)
		t.space.Store(s)
	}
}

// Sweep gives memory back: of tables that nobody uses any more, and, when there is not enough, of those that have more than
// their share. It is to be called every SweepPeriod, by one goroutine. No more than one shard is locked at a time.
func (m *Memory) Sweep() {
	m.mu.Lock()
	tables := make([]*Table, 0, len(m.tables))
	for t := range m.tables {
		tables = append(tables, t)
	}
	m.mu.Unlock()
	for _, t := range tables {
		empty := true
		for i := range t.shards {
			if !m.sweepShard(t, &t.shards[i]) {
				empty = false
			}
		}
		if empty {
			m.part(t)
		}
	}
}

// sweepShard reports whether the shard is empty after it.
func (m *Memory) sweepShard(t *Table, s *shard) (empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		return true
	}
	if s.quiet++; s.quiet >= quietSweeps {
		s.shrink(m, 0)
		s.quiet = 0
	} else if few := int(m.share(t)); m.used.Load() > m.most && cap(s.entries) > few {
		s.shrink(m, few)
	} else if len(s.index) == 0 && cap(s.entries) > fewEntries {
		s.shrink(m, 0)
	}
	return s.index == nil
}

// part forgets a table, unless somebody has come meanwhile: a caller that comes to a shard that is empty meets m, and waits for it.
func (m *Memory) part(t *Table) {
	m.mu.Lock()
	t.known = false
	delete(m.tables, t)
	if s := m.spaces[t.namespace]; s.tables.Add(-1) == 0 {
		delete(m.spaces, t.namespace)
		m.namespaces.Add(-1)
	}
	m.mu.Unlock()
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		used := s.index != nil
		s.mu.Unlock()
		if used {
			m.meet(t)
			return
		}
	}
}
