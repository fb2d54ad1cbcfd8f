// Package balancer decides which server gets a request.
//
// A Registry holds what outlives every table: endpoints (one per address,
// protocol and TLS identity) and pools (one per route). A Pool holds the servers of
// one route, published as one immutable set behind an atomic pointer. Pick chooses
// a server and returns a Lease, which is released when the request has ended.
//
// Thousands of routes may lead to the same pods. So a set has little of its own: what follows from the targets is a roster, which all
// pools have in common that were given equal targets, and what follows from their checks is a group of those pools. A Server, which
// has the counters of one target in one pool, is made when it is wanted first.
//
// Update replaces the set of a pool. Servers that stay keep their object, their
// counters and their place in the round robin; requests that run keep their lease.
//
// Pick takes no lock, does not allocate and may be called from any goroutine. Where a
// pool limits the requests of a server and all have as many, Wait queues: that takes
// a lock for a few instructions, and so does the Release that calls the next waiter.
package balancer
