package gateway

import (
	"time"

	"turnout/balancer"
	"turnout/routing/header"
)

// Backend is one of several places that the requests of a rule, or the connections of a stream, go to, by weight.
type Backend struct {
	Key    string // tells it from the others, and stays while others come and go
	Weight int    // its share; 0 = none
	Status int    // not 0: its share is answered with it, 500 for a reference that cannot be used, 503 for one without endpoints

	Pool            balancer.PoolConfig
	Targets         []balancer.Target
	RequestActions  *header.Actions // after those of the rule; nil = none
	ResponseActions *header.Actions // the same of answers
}

// Mirror is where copies of the requests of a rule go.
type Mirror struct {
	Key                    string
	Numerator, Denominator int // of so many requests so many are copied; a Denominator of 0 = all
	Pool                   balancer.PoolConfig
	Targets                []balancer.Target
}

// Retry is which requests are sent again.
type Retry struct {
	Codes    []int         // of answers that are dropped
	Attempts int           // after the first
	Backoff  time.Duration // least time between two
}
