package proxy

// tlsError is a reason why there is no TLS session, with its word for the log.
type tlsError struct{ text, detail string }

func (e *tlsError) Error() string { return "cannot reach endpoint by TLS: " + e.text }

// Detail is what Record.Detail says.
func (e *tlsError) Detail() string { return e.detail }

// Reasons of upstreams for Exchange.UpstreamInsecure, besides those of the package that does TLS.
var (
	ErrNoTLS   error = &tlsError{"nobody does it here", "tls-unavailable"}
	ErrSlowTLS error = &tlsError{"the handshake took longer than connecting may", "tls-timeout"}
)
