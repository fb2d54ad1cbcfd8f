package proxy

import (
	"unsafe"

	"turnout/routing"
)

// misdirected says that a client sent a request over HTTP/2 to a connection that may not serve its host, though another may
// (RFC 9110 section 15.5.20, RFC 9113 section 9.1.1). Browsers do this when one certificate covers several hosts of one
// address, and come again on 421. docs/http2.md has the table; found is what the routes say of the request.
func (ex *Exchange) misdirected(found routing.DecisionKind) bool {
	if !ex.client.Secure || !ex.req.HTTP2 {
		return false
	}
	host := bareHost(ex.req.Authority)
	name := unsafe.String(unsafe.SliceData(host), len(host))
	if found != routing.Serve { // passed through by its server name: it has to be asked for in a ClientHello
		return ex.table.SNI(name).Passthrough != nil
	}
	// A client that named no server cannot do better. One that named this host got the certificate there is for it.
	return ex.client.ServerName != "" && ex.client.ServerName != name && ex.client.Covered != nil && !ex.client.Covered.Covers(host)
}

// bareHost is a lower-case authority without port and trailing dot, as routes and certificates name hosts.
func bareHost(authority []byte) []byte {
	host := withoutPort(authority)
	if n := len(host); n > 0 && host[n-1] == '.' {
		host = host[:n-1]
	}
	return host
}
