package proxy

import (
	"unsafe"

	"turnout/internal/wire/protocol"
	"turnout/routing"
)

// misdirected says that a client sent a request over HTTP/2 to a connection that may not serve its host, though another may
// (RFC 9110 section 15.5.20, RFC 9113 section 9.1.1). Browsers do this when one certificate covers several hosts of one
// address, and come again on 421. docs/http2.md has the table; found is what the routes say of the request.
func (ex *Exchange) misdirected(found routing.DecisionKind) bool {
	if found == routing.Misdirected {
		return true // over HTTP/1.1 as well: the client was asked for something else than the host asks for, or is at another listener
	}
	if !ex.client.Secure || ex.req.Spoken != protocol.HTTP2 {
		return false
	}
	host := bareHost(ex.req.Authority)
	name := unsafe.String(unsafe.SliceData(host), len(host))
	if found == routing.Serve && ex.client.ServerName == name {
		return false // the client got the certificate there is for this host
	}
	port := ""
	if at := ex.client.Arrival; at != nil {
		port = at.Port
	}
	if ex.table.SNIAt(port, name).Passthrough != nil {
		return true // it has to be asked for in a ClientHello, also where a wildcard route would take the request
	}
	if port != "" {
		return false // of a port with listeners the listener decides, and Match has looked at that
	}
	// A client that named no server cannot do better.
	return found == routing.Serve && ex.client.ServerName != "" && ex.client.Covered != nil && !ex.client.Covered.Covers(host)
}

// strange answers a client whose certificate the subject filter refuses. For a host that asks clients for something else it may
// come again on another connection.
func (ex *Exchange) strange(h *Head) {
	ex.table = ex.cfg.Store.Load()
	if ex.match(h).Kind == routing.Misdirected {
		ex.answer(421, ReasonMisdirected)
		return
	}
	ex.answer(403, ReasonSubject)
}

// bareHost is a lower-case authority without port and trailing dot, as routes and certificates name hosts.
func bareHost(authority []byte) []byte {
	host := withoutPort(authority)
	if n := len(host); n > 0 && host[n-1] == '.' {
		host = host[:n-1]
	}
	return host
}
