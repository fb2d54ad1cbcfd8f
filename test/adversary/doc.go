// Package adversary holds the router to its promises while somebody breaks theirs. A run is made of a seed: a router of one or
// two loops on an in-memory network in virtual time, clients and pods that speak random HTTP/1.1 and HTTP/2, legal and
// half-legal, leave, stall, half-close and reset, tables that change, and bystanders: clients that keep the rules, on routes to
// pods that keep them, of which a model says what each of their requests must get.
//
// Some clients log in at pods that authenticate connections, others do not: a connection of a pod
// that somebody logged in on carries requests of that client only.
//
// During the run every end holds what the router says to the RFCs: windows, states of streams, framing, and whose answer is
// whose. Afterwards nobody does anything any more, time passes, and nothing may be left: no exchange, lease, queued request,
// connection, tunnel or buffer.
//
// The memory for kept request bodies is small and always used up by uploads that do not end
// (presser), so that requests are sent again with and without their turn in it. Pods compare the
// requests of bystanders with what these have sent.
//
//	go test ./test/adversary -runs 1000         seeds 1 to 1000
//	go test ./test/adversary -seed 77 -runs 1   that one again
package adversary
