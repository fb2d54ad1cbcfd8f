package routing

import (
	"time"

	"turnout/balancer"
	"turnout/routing/header"
)

// BackendSpec is one of several groups of servers that share the requests of a rule. A request gets one by weight, and then a server of
// it; all attempts are made there. A rule whose weights are all 0 answers 500; so does one whose only backend has that Status, which is how a
// rule without any backend is written.
type BackendSpec struct {
	// Key tells the backend from the others of the rule. It is not empty, and stays while others come and go: servers, counters and connections
	// go by it. Of several with one key the first counts.
	Key    string
	Weight int // its share of the requests; <= 0 = none but those of sessions that began there
	Status int // not 0: requests of its share are answered with it, 500 for what cannot be used, 503 for what has no endpoint; else 0

	Pool            balancer.PoolConfig
	Targets         []balancer.Target
	RequestActions  *header.Actions // after those of the rule; nil = none. Equal content must be one object
	ResponseActions *header.Actions // the same of answers
}

// MirrorSpec is where copies of the requests of a rule go. Answers to copies are dropped; requests and clients
// notice nothing of them.
type MirrorSpec struct {
	// Key tells the mirror from the others of the rule, as that of a BackendSpec does; a mirror and a backend may have the same.
	Key string
	// Numerator of Denominator requests are copied; a Denominator of 0 = all.
	Numerator, Denominator int

	Pool    balancer.PoolConfig
	Targets []balancer.Target
}

// RetrySpec is which requests are sent again. Nobody may change it once a table has it.
type RetrySpec struct {
	Codes    []int         // statuses of answers that are dropped, if there is another attempt to come
	Attempts int           // after the first, of those that this asks for; <= 0 = none
	Backoff  time.Duration // least time between two of them; 0 = none
}
