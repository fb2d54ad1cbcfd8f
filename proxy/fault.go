package proxy

// Fault says how one side of an exchange failed. The kind alone decides whether
// a retry is legal: no text is ever read.
type Fault uint8

const (
	// FaultConnect: no connection could be made, so nothing was sent.
	FaultConnect Fault = iota + 1
	// FaultStale: a pooled connection ended before a byte of the answer arrived. The endpoint may have seen the request.
	FaultStale
	// FaultReset: the connection ended before the answer was complete.
	FaultReset
	// FaultMalformed: the peer broke the grammar of its protocol.
	FaultMalformed
	// FaultTimeout: the peer was silent for too long.
	FaultTimeout
	// FaultShutdown: the router is stopping.
	FaultShutdown
	// FaultRefused: a policy closes the client's whole connection, without an answer.
	FaultRefused
	// FaultUnprocessed: the peer says that it did nothing with the request (RFC 9113 section 8.7), or nothing of it was sent.
	FaultUnprocessed
	// FaultTLS: a connection stood, but no TLS session that can be trusted came about on it, so nothing was sent.
	FaultTLS
	// FaultCanceled: the peer took its stream back (RFC 9113 section 7, CANCEL) before the answer was complete.
	FaultCanceled
	// FaultStalled: the client took nothing for too long, and will not take what is queued for it.
	FaultStalled
	// FaultUnanswered: a new connection ended before a byte of the answer arrived. The endpoint may have seen the request.
	FaultUnanswered
	// FaultInternal: the router made a mistake; nothing that it sent on the connection can be relied on.
	FaultInternal
	// FaultExhausted: this process has no descriptor, memory or port for a connection, so nothing was sent. No endpoint is to blame.
	FaultExhausted
	// FaultSilent: a connection that others shared was given up because the endpoint gave no sign of life. It may have seen the request.
	FaultSilent
	// FaultStatus: the endpoint answered with a status for which the route has requests sent again.
	FaultStatus
)

var faultNames = [...]string{"none", "connect", "stale", "reset", "malformed", "timeout", "shutdown", "refused", "unprocessed", "tls", "canceled", "stalled", "unanswered", "internal", "exhausted", "silent", "status"}

// String is a stable word for logs.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return "unknown"
}
