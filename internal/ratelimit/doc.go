// Package ratelimit counts, for one route, what each source address does: how many
// connections it has open, how many it made within 3 seconds, how many requests it
// sent within 10. The pipeline consults it before it serves a request; the numbers
// are those of the HAProxy router. A source address is an IPv4 address or the /64 of
// an IPv6 address.
//
// A Table belongs to a route with all rules made of it, and outlives every change of it. It is shared by all
// loops, because the limits hold for the process and one client's connections are
// spread over all loops: with a table per loop a limit of N would admit N times
// the number of loops. The price is a lock per request on routes that limit
// anything (other routes have no Table). It is cut into shards by address, each
// with its own lock, held for some tens of nanoseconds and never across anything
// that waits: two loops meet only when they serve addresses of the same shard at
// the same moment.
//
// # What is forgotten
//
// A Table remembers MaxAddresses at most, and all tables of a Memory not much more than
// Memory has: when that is used up, tables with more than their share give way. Namespaces have
// equal shares, and so have the tables of each. Then the
// address that was silent for longest is forgotten, but none that has a connection open
// while there is another, and none that is conspicuous: that was refused, or made more
// than half of what makes it be refused. A flood of addresses that are seen once
// so does not help one that is refused. Conspicuous addresses have seven eighths of a
// full table; of more than that the one that was silent for longest is like any other again.
// An address that cannot be remembered at all is served as if it were new.
package ratelimit
