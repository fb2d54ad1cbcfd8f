// Package bound names the bounds of Turnout and counts how often each was reached. A bound is a limit on what somebody
// outside (a client, an endpoint, an object of a tenant, a probe, the API server) can make grow, wait or repeat.
// docs/limits.md has a row for each name: its value, what happens at it, and what to do then; docs/lab/limits.md has the tests.
package bound

import "sync/atomic"

// Name is one bound. Its String is the label "bound" of turnout_bound_reached_total.
type Name uint8

// The bounds that are counted here. Others have a metric of their own; docs/limits.md names it.
const (
	OutputHTTP1         Name = iota // a client's next HTTP/1.1 request waits until its connection took what is queued
	OutputHTTP2                     // frames of a client's HTTP/2 connection wait until it took what is queued
	OutputUpstream                  // output towards an endpoint waits until it took what is queued
	ClientResets                    // an HTTP/2 connection of a client ended: streams were opened and given up too fast
	UpstreamFrames                  // an HTTP/2 connection to an endpoint ended: frames that no request asked for
	UpstreamSilent                  // an HTTP/2 connection to an endpoint ended: it did not answer PING in time
	UpstreamConnections             // no further HTTP/2 connection to an endpoint was opened
	IterationRequests               // a connection began as many requests in one iteration as it may; the rest waits
	IterationAnswers                // a connection of a pod brought as many heads of answers in one iteration as it may; the rest waits
	IterationFrames                 // an HTTP/2 connection brought as many frames in one iteration as it may; the rest waits
	IterationQueues                 // an iteration of an event loop handled its share of a queue; the rest waits
	IterationChunks                 // a body came in so many small chunks that the rest of them waits for a later iteration
	EarlyAnswer                     // an upload was no longer read after its early final answer
	ReplayBodies                    // a request body was not kept for another attempt
	PrivateConnections              // a private connection was not kept, or not waited for
	Mirrors                         // a copy of a request for a mirror was not sent
	Compressors                     // a response was not compressed: its namespace had its share
	WaitingRequests                 // a request did not wait: its namespace had its share of places
	TunnelFin                       // a half-closed tunnel was silent for too long
	Hops                            // a request that had passed the router too often was answered 508
	RouteConnections                // a route had its share of connections or descriptors
	HeaderActions                   // header actions or rewrite-target would have made more than a message may
	UniqueID                        // a unique id was cut
	CertificateChain                // a certificate chain was too long to be served
	ChainWork                       // the certificates of a peer were refused: too costly to verify
	HandshakeMemory                 // a handshake ended because its peer did not take the output
	HealthChecks                    // a health check waited for its turn
	RequestChecks                   // endpoints of a route are checked without the request it asks for
	AdminConnections                // the admin port closed a connection, or let it wait
	AdminAnswers                    // an answer of the admin port ended because its reader was too slow
	OwnAddresses                    // endpoints of a service were left out: the router itself listens there
	ServiceEndpoints                // endpoints of a service were left out: there are too many
	StatusWrites                    // a write of status waited because its namespace or route had its share
	Reviews                         // a review was not asked of the API server
	SecretWatches                   // a secret is read from time to time instead of being watched: too many are
	HeldMemory                      // a connection ended: its loop held too much memory for peers that do not go on
	LoopTooBusy                     // an event loop did not answer its own request in time
	ClientSampling                  // a request was not sampled because of its client's word: too many were
	OpenSpans                       // a request was not sampled: too many that are sampled run
	RecentRequests                  // a request was not remembered for explanations: others were at the same moment
	IngressRules                    // rules of an Ingress were left out: there are too many
	NameAnswers                     // an answer of the name server was not sent, or as truncated: its client's prefix had its share
	NameConnections                 // the name server closed a connection: there were too many
	NameClients                     // the name server closed a connection: its client's prefix had its share
	NameTransfers                   // a transfer of a zone was put off: too many were under way
	GatewayPorts                    // a port of a Gateway got no local port: its namespace has its share, or there are too many
	GatewayDeployments              // a Gateway got no pods of its own: its namespace has its share, or there are too many
	InterimResponses                // an interim response was dropped: unread, or beyond its share
	DatagramSessions                // a session of UDP ended because there were too many
	ObjectExpansion                 // an object was rejected: it expands to too much
	BatchWork                       // an object waited for a later batch: its share was used up
	NamespaceExpansion              // an object was rejected: its namespace expands to too much
	MatchWork                       // rules were not decided or carried out for a request: they exceed its work
	count
)

var names = [count]string{
	OutputHTTP1:         "http1-output",
	OutputHTTP2:         "http2-output",
	OutputUpstream:      "upstream-output",
	ClientResets:        "client-resets",
	UpstreamFrames:      "upstream-frames",
	UpstreamSilent:      "upstream-silent",
	UpstreamConnections: "upstream-connections",
	IterationRequests:   "turn-requests",
	IterationAnswers:    "turn-answers",
	IterationFrames:     "turn-frames",
	IterationQueues:     "turn-queues",
	IterationChunks:     "turn-chunks",
	EarlyAnswer:         "early-answer",
	ReplayBodies:        "replay-bodies",
	PrivateConnections:  "private-connections",
	Mirrors:             "mirrors",
	Compressors:         "compressors",
	WaitingRequests:     "waiting-requests",
	TunnelFin:           "tunnel-fin",
	Hops:                "hops",
	RouteConnections:    "route-connections",
	HeaderActions:       "header-actions",
	UniqueID:            "unique-id",
	CertificateChain:    "certificate-chain",
	ChainWork:           "chain-work",
	HandshakeMemory:     "handshake-memory",
	HealthChecks:        "health-checks",
	RequestChecks:       "request-checks",
	AdminConnections:    "admin-connections",
	AdminAnswers:        "admin-answers",
	OwnAddresses:        "own-addresses",
	ServiceEndpoints:    "service-endpoints",
	StatusWrites:        "status-writes",
	Reviews:             "reviews",
	SecretWatches:       "secret-watches",
	HeldMemory:          "held-memory",
	LoopTooBusy:         "loop-too-busy",
	ClientSampling:      "client-sampling",
	OpenSpans:           "open-spans",
	RecentRequests:      "recent-requests",
	IngressRules:        "ingress-rules",
	NameAnswers:         "dns-answers",
	NameConnections:     "dns-connections",
	NameClients:         "dns-client-connections",
	NameTransfers:       "dns-transfers",
	GatewayPorts:        "gateway-ports",
	GatewayDeployments:  "gateway-deployments",
	InterimResponses:    "interim-responses",
	DatagramSessions:    "udp-sessions",
	ObjectExpansion:     "object-expansion",
	BatchWork:           "batch-work",
	NamespaceExpansion:  "namespace-expansion",
	MatchWork:           "match-work",
}

func (n Name) String() string { return names[n] }

// All are all names, in a fixed order.
func All() []Name {
	all := make([]Name, count)
	for i := range all {
		all[i] = Name(i)
	}
	return all
}

// Counts counts how often each bound was reached. Any goroutine may use it; a nil *Counts counts nothing.
type Counts struct{ n [count]atomic.Uint64 }

// Reached counts one time.
func (c *Counts) Reached(n Name) {
	if c != nil {
		c.n[n].Add(1)
	}
}

// Of is how often n was reached.
func (c *Counts) Of(n Name) uint64 {
	if c == nil {
		return 0
	}
	return c.n[n].Load()
}
