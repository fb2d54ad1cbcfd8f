package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// Limit is one bound. The zero value limits nothing.
type Limit struct {
	On bool
	N  int // the first number that is too many; 0 and less: everything is
}

// reached reports that n is too many.
func (l Limit) reached(n int64) bool { return l.On && n >= int64(l.N) }

// near reports that n is more than half of too many.
func (l Limit) near(n int64) bool { return l.On && 2*n > int64(l.N) }

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
	shards     = 64
	maxEntries = MaxAddresses / shards
	tcpPeriod  = 3000
	httpPeriod = 10000
	expiry     = int64(Expiry / time.Millisecond)
)

// Table holds the counters of one API object with all its rules, such as an OpenShift Route or an
// Ingress. Memory.NewTable makes it. It is safe for concurrent use.
type Table struct {
	seed      maphash.Seed
	memory    *Memory
	namespace string
	space     atomic.Pointer[space] // of the namespace, nil before the first entry
	known     bool                  // it is in memory.tables; guarded by memory.mu
	shards    [shards]shard
}

// key identifies a client: an IPv4 address, or the /64 of an IPv6 address.
type key [16]byte

// nat64 is the prefix behind which translators put IPv4 clients (RFC 6052 section 2.1).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// keyOf returns the key of a source address. An IPv6 client is its /64, because a network gives a
// client at least that many addresses to choose from (RFC 6177, RFC 7934). An IPv4 address that is
// mapped into IPv6 or translated is that IPv4 address.
func keyOf(source netip.Addr) key {
	k := key(source.As16())
	switch {
	case source.Is4(), source.Is4In6():
	case nat64.Contains(source.WithZone("")):
		k = key{10: 0xff, 11: 0xff, 12: k[12], 13: k[13], 14: k[14], 15: k[15]}
	default:
		clear(k[8:])
	}
	return k
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
	addr := keyOf(source)
	at := now / int64(time.Millisecond)
	s := t.shard(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = 0
	s.sweep(at)
	fresh := entry{addr: addr, tcp: rate{began: at}, http: rate{began: at}}
	e, ticket := &fresh, Ticket{}
	i := s.find(t, addr, at)
	if i != none {
		e, ticket = &s.entries[i], Ticket{t, addr}
	}
	c, refused := e.come(at, limits, http)
	if i != none && e.list == ordinary && (refused || limits.TCP.near(c.Connections) || limits.HTTP.near(c.Requests)) {
		s.promote(i)
	}
	if refused {
		e.open--
		return Ticket{}, false
	}
	if http {
		e.http.addEvent(at, httpPeriod)
	}
	return ticket, true
}

// Leave ends the connection of a ticket.
func (k *Ticket) Leave() {
	if k.table == nil {
		return
	}
	k.table.shard(k.addr).leave(k.addr)
	*k = Ticket{}
}

// leave ends a connection of addr.
func (s *shard) leave(addr key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, ok := s.index[addr]; ok {
		s.entries[i].open--
	}
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
