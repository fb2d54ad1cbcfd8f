// Package ratelimit counts per source address: open connections, connections of the last 3 seconds
// and requests of the last 10. The pipeline consults it before it serves a request. The periods are
// those of the HAProxy router. A source address is an IPv4 address or the /64 of an IPv6 address.
//
// A Table belongs to a route with all its rules, and outlives every change of the route. All loops
// share it, because limits hold for the process and the connections of one client are spread over
// the loops. The price is a lock per request on routes with a limit; other routes have no Table. A
// Table is divided into shards by address, each with its own lock. A lock is held for some tens of
// nanoseconds and never during a wait.
//
// # What is forgotten
//
// A Table remembers MaxAddresses at most. When all tables of a Memory have used up its size, tables
// with more than their share shrink. Namespaces have equal shares, and so have the tables of each.
// A table that is full or shrinks forgets the address that was silent for longest. Addresses
// without an open connection go first. Conspicuous addresses stay: those that were refused, or have
// used more than half of a limit. So a flood of addresses that are seen once does not help a
// refused one. Conspicuous addresses take at most seven eighths of a full table; beyond that, the
// one that was silent for longest loses this protection. An address for which no entry can be made
// is served as a new one.
package ratelimit
