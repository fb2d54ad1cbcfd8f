package ratelimit

import "turnout/internal/shared"

const (
	sweepStep   = 2 // expired entries given back per call, more than can be added
	evictProbes = 8 // entries looked at to find one to forget
	fewEntries  = 64
	none        = -1
)

// The lists of a shard.
const (
	ordinary    = iota
	conspicuous // addresses that were refused, or came near to it
	lists
)

// shard is a part of the addresses. Each is in one list, the least recently seen one last.
type shard struct {
	mu      shared.Mutex
	index   map[key]int32
	entries []entry
	free    int32 // list of unused entries, by next
	lists   [lists]list
	quiet   int32   // sweeps of Memory since somebody came
	_       [8]byte // shards do not share cache lines
}

// list is a list of entries, by their place.
type list struct{ first, last, len int32 }

// entry is one address.
type entry struct {
	addr       key
	seen       int64 // ms
	tcp, http  rate
	open       int32
	next, prev int32
	list       uint8
}

// reset forgets everything.
func (s *shard) reset() {
	s.index, s.entries, s.free = nil, nil, none
	for i := range s.lists {
		s.lists[i] = list{none, none, 0}
	}
}

// find returns the entry of addr, now the most recently seen one of its list, made if need be;
// none when there is no space.
func (s *shard) find(t *Table, addr key, at int64) int32 {
	i, ok := s.index[addr]
	if ok {
		s.unlink(i)
	} else if i = s.takeEntry(t, at); i == none {
		return none
	} else {
		s.entries[i] = entry{addr: addr, tcp: rate{began: at}, http: rate{began: at}}
		s.index[addr] = i
	}
	s.link(i, at)
	return i
}

// promote makes an ordinary address a conspicuous one, within their share of the shard.
func (s *shard) promote(i int32) {
	e := &s.entries[i]
	s.unlink(i)
	e.list = conspicuous
	s.link(i, e.seen)
	if l := &s.lists[conspicuous]; int(l.len) > maxEntries/8*7 {
		last := l.last
		s.unlink(last)
		s.entries[last].list = ordinary
		s.link(last, s.entries[last].seen)
	}
}

// takeEntry returns an unused entry, none when all are in use by open connections.
func (s *shard) takeEntry(t *Table, at int64) int32 {
	if s.index == nil {
		s.index = make(map[key]int32)
		t.memory.meet(t)
	}
	if s.free == none {
		if n := len(s.entries); n < maxEntries && (n < cap(s.entries) || t.memory.grant(t, n, maxEntries)) {
			if n == cap(s.entries) {
				s.grow(t.memory, step(n, maxEntries))
			}
			s.entries = append(s.entries, entry{})
			return int32(n)
		}
		s.makeRoom(at)
	}
	i := s.free
	if i != none {
		s.free = s.entries[i].next
	}
	return i
}

// grow adds space for n more entries, which is taken from memory.
func (s *shard) grow(m *Memory, n int) {
	entries := make([]entry, len(s.entries), len(s.entries)+n)
	copy(entries, s.entries)
	s.entries = entries
	m.used.Add(int64(n))
}

// makeRoom forgets an address: of the ordinary ones, if there is one without an open connection.
func (s *shard) makeRoom(at int64) {
	for i := range s.lists {
		for range min(evictProbes, s.lists[i].len) {
			if s.forget(&s.lists[i], at) {
				return
			}
		}
	}
}

// sweep gives expired entries back, some at a time.
func (s *shard) sweep(at int64) {
	for i := range s.lists {
		l := &s.lists[i]
		for range sweepStep {
			if l.last == none || at-s.entries[l.last].seen < expiry {
				break
			}
			s.forget(l, at)
		}
	}
}

// forget drops the least recently seen address of a list. One with an open connection counts
// as seen now instead.
func (s *shard) forget(l *list, at int64) bool {
	i := l.last
	if s.entries[i].open > 0 {
		s.unlink(i)
		s.link(i, at)
		return false
	}
	s.drop(i)
	return true
}

// drop forgets an address.
func (s *shard) drop(i int32) {
	delete(s.index, s.entries[i].addr)
	s.unlink(i)
	s.entries[i] = entry{next: s.free}
	s.free = i
}

// shrink leaves the n addresses that matter most and gives back the memory of the others, and of
// unused entries. Addresses with open connections stay, however many.
func (s *shard) shrink(m *Memory, n int) {
	before := cap(s.entries)
	kept := make([]entry, 0, min(n, len(s.index)))
	for want := lists - 1; want >= 0; want-- { // the conspicuous first
		for i := s.lists[want].first; i != none; i = s.entries[i].next {
			if e := &s.entries[i]; e.open > 0 || len(kept) < n {
				kept = append(kept, *e)
			}
		}
	}
	s.reset()
	if len(kept) > 0 {
		s.index = make(map[key]int32, len(kept))
		s.entries = kept
		for i := len(kept) - 1; i >= 0; i-- { // so that the first of each list is first again
			s.index[kept[i].addr] = int32(i)
			s.link(int32(i), kept[i].seen)
		}
	}
	m.used.Add(int64(cap(s.entries) - before))
}

// link makes an entry that is in no list the most recently seen one of its list.
func (s *shard) link(i int32, at int64) {
	e := &s.entries[i]
	l := &s.lists[e.list]
	e.seen, e.prev, e.next = at, none, l.first
	if l.first != none {
		s.entries[l.first].prev = i
	} else {
		l.last = i
	}
	l.first = i
	l.len++
}

func (s *shard) unlink(i int32) {
	e := &s.entries[i]
	l := &s.lists[e.list]
	if e.prev != none {
		s.entries[e.prev].next = e.next
	} else {
		l.first = e.next
	}
	if e.next != none {
		s.entries[e.next].prev = e.prev
	} else {
		l.last = e.prev
	}
	l.len--
}
