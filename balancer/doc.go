// Package balancer decides which server gets a request.
//
// A Registry holds what outlives every table: endpoints (one per address,
// protocol and TLS identity) and pools (one per backend of an API object). A Pool holds the servers
// of one backend, published as one immutable set behind an atomic pointer. Pick chooses
// a server and returns a Lease, which is released when the request has ended.
//
// Thousands of routes may lead to the same pods. So a set has little state of its own. Pools with
// equal targets share a roster, which holds what follows from the targets. Pools of a roster with
// equal checks share a group. A Server, the counters of one target in one pool, is made on first
// use.
//
// Update replaces the set of a pool. Servers that stay keep their object, their
// counters and their place in the round robin; requests that run keep their lease.
//
// Pick takes no lock, does not allocate and may be called from any goroutine. Where a
// pool limits the requests of a server and all have as many, Wait queues: that takes
// a lock for a few instructions, and so does the Release that calls the next waiter.
package balancer
