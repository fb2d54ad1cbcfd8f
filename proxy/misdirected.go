package proxy

import "unsafe"

// misdirected says that a client sent a request to a connection that cannot serve its host, though another may (RFC 9110
// section 15.5.20): the host is passed through by its server name, so it has to be asked for in a ClientHello. Browsers do
// this when one certificate covers several hosts of one address (RFC 9113 section 9.1.1), and try again on 421.
func (ex *Exchange) misdirected() bool {
	if !ex.client.Secure || !ex.req.HTTP2 {
		return false
	}
	host := withoutPort(ex.req.Authority)
	return ex.table.SNI(unsafe.String(unsafe.SliceData(host), len(host))).Passthrough != nil
}
