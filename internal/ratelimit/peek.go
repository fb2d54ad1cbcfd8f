package ratelimit

import (
	"net/netip"
	"time"
)

// Counted is what the limits of a route compare for one source address. What is not limited is 0.
type Counted struct {
	Open        int64 // connections that are open, the one asked about included
	Connections int64 // made within 3 s, the one asked about included
	Requests    int64 // sent within 10 s, the one asked about not included
}

// come counts a connection of the address, which for HTTP is a request, and says whether it is refused.
func (e *entry) come(at int64, limits Limits, http bool) (c Counted, refused bool) {
	e.open++
	e.tcp.addEvent(at, tcpPeriod)
	c.Open = int64(e.open)
	if limits.TCP.On {
		c.Connections = e.tcp.count(at, tcpPeriod)
	}
	if http && limits.HTTP.On {
		c.Requests = e.http.count(at, httpPeriod)
	}
	return c, limits.Concurrent.reached(c.Open) || limits.TCP.reached(c.Connections) || http && limits.HTTP.reached(c.Requests)
}

// Peek says what Enter would decide, and what it would compare, without counting or remembering anything.
func (t *Table) Peek(source netip.Addr, now int64, limits Limits, http bool) (c Counted, ok bool) {
	addr := keyOf(source)
	at := now / int64(time.Millisecond)
	e := entry{tcp: rate{began: at}, http: rate{began: at}}
	s := t.shard(addr)
	s.mu.Lock()
	if i, known := s.index[addr]; known {
		e = s.entries[i]
	}
	s.mu.Unlock()
	c, refused := e.come(at, limits, http)
	return c, !refused
}
