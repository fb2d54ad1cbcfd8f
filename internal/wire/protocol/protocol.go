// Package protocol names what is spoken on a connection, below routing and proxying: what a client speaks, what an endpoint is
// configured to speak, and what a TLS handshake agreed on are values of one type.
package protocol

// Protocol is what is spoken on a connection. TLS is a separate dimension: the same protocol is spoken with and without it. The
// zero value is HTTP1.
type Protocol uint8

// The protocols.
const (
	HTTP1 Protocol = iota // HTTP/1.1 and HTTP/1.0 (RFC 9112); what is spoken over TLS when nothing was agreed on
	HTTP2                 // HTTP/2 (RFC 9113)
	TCP                   // bytes, not looked at; it has no name in ALPN
)

// String returns the name that is registered for ALPN (RFC 7301 section 6), "tcp" for TCP, which has none.
func (p Protocol) String() string {
	switch p {
	case HTTP1:
		return "http/1.1"
	case HTTP2:
		return "h2"
	case TCP:
		return "tcp"
	}
	return "unknown"
}

// Agreed is what is spoken after a TLS handshake that selected a name by ALPN. No name, or one of a version of HTTP before 2, is
// HTTP1; nobody selects a name that was not offered.
func Agreed(name string) Protocol {
	if name == "h2" {
		return HTTP2
	}
	return HTTP1
}

// Names are the names of protocols for ALPN, in their order; nil without protocols, which means that no ALPN is offered.
func Names(offer []Protocol) []string {
	var names []string
	for _, p := range offer {
		names = append(names, p.String())
	}
	return names
}
