package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// Limit is one bound. The zero value limits nothing.
type Limit struct {
	On bool
	N  int // the first number that is too many; 0 and less: everything is
}

// reached reports that n is too many.
func (l Limit) reached(n int64) bool { return l.On && n >= int64(l.N) }

// Limits are those of one route. The zero value limits nothing.
type Limits struct {
	Concurrent Limit // open connections of an address, this one included
	TCP        Limit // connections within 3 s, this one included
	HTTP       Limit // requests within 10 s, this one not included
}

// Any reports that anything is limited.
func (l Limits) Any() bool { return l.Concurrent.On || l.TCP.On || l.HTTP.On }

// Bounds of a Table.
const (
	MaxAddresses = 100_000          // addresses remembered
	Expiry       = 30 * time.Second // silence after which one is forgotten
)

const (
	shards      = 64
	maxEntries  = MaxAddresses / shards
	tcpPeriod   = 3000
	httpPeriod  = 10000
	expiry      = int64(Expiry / time.Millisecond)
	sweepStep   = 2 // expired entries given back per call, more than can be added
	evictProbes = 8 // entries looked at to find one to forget
	fewEntries  = 64
	none        = -1
)

// Table is the counters of one route. It is safe for use by any goroutine.
type Table struct {
	seed   maphash.Seed
	shards [shards]shard
}

// shard is a part of the addresses, the least recently seen one last in its list.
type shard struct {
	mu          sync.Mutex
	index       map[key]int32
	entries     []entry
	free        int32 // list of unused entries, by next
	first, last int32
	_           [24]byte // shards do not share cache lines
}

// key is an address without a zone; IPv4 is mapped into IPv6.
type key [16]byte

// entry is one address.
type entry struct {
	addr       key
	seen       int64 // ms
	tcp, http  rate
	open       int32
	next, prev int32
}

// NewTable makes an empty table.
func NewTable() *Table {
	t := &Table{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].reset()
	}
	return t
}

func (s *shard) reset() {
	s.index, s.entries = nil, nil
	s.free, s.first, s.last = none, none, none
}

// Ticket is one connection that was counted. It is a value: keep one copy and Leave
// that one, once. The zero value counts nothing.
type Ticket struct {
	table *Table
	addr  key
}

// Enter counts a connection of source, which for HTTP is every request, at a monotonic
// time in nanoseconds, and says whether it may go on. http tells that it is a
// request. A connection that may not go on has left already; what it counted in
// the rate of connections stays counted.
func (t *Table) Enter(source netip.Addr, now int64, limits Limits, http bool) (Ticket, bool) {
	addr := key(source.As16())
	at := now / int64(time.Millisecond)
	s := t.shard(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(at)
	fresh := entry{addr: addr, tcp: rate{began: at}, http: rate{began: at}}
	e, ticket := &fresh, Ticket{}
	if i := s.find(addr, at); i != none {
		e, ticket = &s.entries[i], Ticket{t, addr}
	}
	e.open++
	e.tcp.add(at, tcpPeriod)
	if limits.Concurrent.reached(int64(e.open)) || limits.TCP.reached(e.tcp.count(at, tcpPeriod)) ||
		http && limits.HTTP.reached(e.http.count(at, httpPeriod)) {
		e.open--
		return Ticket{}, false
	}
	if http {
		e.http.add(at, httpPeriod)
	}
	return ticket, true
}

// Leave ends the connection of a ticket.
func (k *Ticket) Leave() {
	if k.table == nil {
		return
	}
	s := k.table.shard(k.addr)
	s.mu.Lock()
	if i, ok := s.index[k.addr]; ok {
		s.entries[i].open--
	}
	s.mu.Unlock()
	*k = Ticket{}
}

// Len is the number of addresses remembered.
func (t *Table) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.index)
		s.mu.Unlock()
	}
	return n
}

func (t *Table) shard(addr key) *shard {
	return &t.shards[maphash.Comparable(t.seed, addr)%shards]
}

// find returns the entry of addr, now the most recently seen one, made if need be;
// none when there is no room.
func (s *shard) find(addr key, at int64) int32 {
	i, ok := s.index[addr]
	if ok {
		s.unlink(i)
	} else if i = s.take(at); i == none {
		return none
	} else {
		s.entries[i] = entry{addr: addr, tcp: rate{began: at}, http: rate{began: at}}
		s.index[addr] = i
	}
	s.link(i, at)
	return i
}

// take returns an unused entry, none when all are in use by open connections.
func (s *shard) take(at int64) int32 {
	if s.index == nil {
		s.index = make(map[key]int32)
	}
	if s.free == none {
		if len(s.entries) < maxEntries {
			s.entries = append(s.entries, entry{})
			return int32(len(s.entries) - 1)
		}
		for range evictProbes {
			if s.forget(at) {
				break
			}
		}
	}
	i := s.free
	if i != none {
		s.free = s.entries[i].next
	}
	return i
}

// sweep gives expired entries back, some at a time.
func (s *shard) sweep(at int64) {
	for range sweepStep {
		if s.last == none || at-s.entries[s.last].seen < expiry {
			break
		}
		s.forget(at)
	}
	if s.first == none && len(s.entries) > fewEntries {
		s.reset() // a map never shrinks
	}
}

// forget drops the least recently seen address. One with an open connection counts
// as seen now instead.
func (s *shard) forget(at int64) bool {
	i := s.last
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

// link makes an entry that is in no list the most recently seen one.
func (s *shard) link(i int32, at int64) {
	e := &s.entries[i]
	e.seen, e.prev, e.next = at, none, s.first
	if s.first != none {
		s.entries[s.first].prev = i
	} else {
		s.last = i
	}
	s.first = i
}

func (s *shard) unlink(i int32) {
	e := &s.entries[i]
	if e.prev != none {
		s.entries[e.prev].next = e.next
	} else {
		s.first = e.next
	}
	if e.next != none {
		s.entries[e.next].prev = e.prev
	} else {
		s.last = e.prev
	}
}
