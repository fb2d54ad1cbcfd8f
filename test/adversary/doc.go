// Package adversary tests the router against peers that break the rules. Each run follows from a
// seed. Its router has one or two loops, on an in-memory network in virtual time. Clients and pods
// speak random HTTP/1.1 and HTTP/2, legal and half-legal. They leave, stall, half-close and reset,
// and tables change. Bystanders are clients that keep the rules, on routes to pods that keep them.
// A model defines the response that each of their requests must get.
//
// Some clients log in at pods that authenticate connections, others do not. A connection with a
// login carries requests of that client only.
//
// Every end checks the router's output against the RFCs during the run: windows, states of streams,
// framing, and the owner of each response. Afterwards all clients and pods are silent and time
// passes. Nothing may be left: no exchange, lease, queued request, connection, tunnel or buffer.
//
// The memory for kept request bodies is small. Uploads that do not end always use it up (presser),
// so that requests are retried with and without a place in it. Pods compare the requests of
// bystanders with those that were sent.
//
//	go test ./test/adversary -runs 1000         seeds 1 to 1000
//	go test ./test/adversary -seed 77 -runs 1   that one again
package adversary
