package proxy

import "errors"

// tlsError is a reason why there is no TLS session, with its word for the log.
type tlsError struct{ text, detail string }

func (e *tlsError) Error() string { return "cannot reach endpoint by TLS: " + e.text }

// Detail is what Record.Detail says.
func (e *tlsError) Detail() string { return e.detail }

// Reasons of upstreams for Exchange.UpstreamInsecure, besides those of whoever does TLS.
var (
	ErrNoTLS   error = &tlsError{"nobody does it here", "tls-unavailable"}
	ErrSlowTLS error = &tlsError{"the handshake took longer than connecting may", "tls-timeout"}
)

// UpstreamInsecure is UpstreamFault(FaultTLS): no TLS session with the endpoint came about. Of err the log tells what its
// method Detail says, a stable word.
func (ex *Exchange) UpstreamInsecure(err error) {
	ex.w.current = ex
	ex.detail = "tls"
	var worded interface{ Detail() string }
	if errors.As(err, &worded) {
		ex.detail = worded.Detail()
	}
	ex.UpstreamFault(FaultTLS)
}

// unreached is why no endpoint took the request: what stood in the way of the last attempt.
func (ex *Exchange) unreached() Reason {
	if ex.detail != "" {
		return ReasonUpstreamTLS
	}
	return ReasonConnect
}
