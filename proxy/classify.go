package proxy

import "bytes"

type kind uint8

const (
	kindPlain       kind = iota
	kindHop              // ends at this hop, or the codec makes a new one
	kindIdentity         // only the router may set it
	kindHost             //
	kindCookie           //
	kindForwarded        // X-Forwarded-* and Forwarded
	kindUpgrade          //
	kindSetCookie        //
	kindTE               //
	kindGuarded          // end-to-end, whatever Connection lists
	kindHops             // as kindGuarded, and counted
	kindCredentials      // may authenticate the connection
)

// classify is the one table of names that the pipeline treats specially.
func classify(name []byte) kind {
	switch string(name) {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "http2-settings":
		return kindHop
	case "proxy", "x-ssl", "x-ssl-client-cn", "x-ssl-client-der", "x-ssl-client-dn", "x-ssl-client-notafter",
		"x-ssl-client-notbefore", "x-ssl-client-sha1", "x-ssl-client-serial", "x-ssl-client-subject",
		"x-ssl-client-verify", "x-ssl-client-version", "x-ssl-issuer":
		return kindIdentity
	case "host":
		return kindHost
	case "cookie":
		return kindCookie
	case "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-forwarded-proto-version", "forwarded":
		return kindForwarded
	case "upgrade":
		return kindUpgrade
	case "set-cookie":
		return kindSetCookie
	case "te":
		return kindTE
	case "trailer", "expect":
		return kindGuarded
	case "cdn-loop":
		return kindHops
	case "authorization", "proxy-authorization":
		return kindCredentials
	}
	if len(name) > 4 && name[0] == 'x' && bytes.IndexByte(name, '_') > 0 {
		return classifyTwin(name)
	}
	return kindPlain
}

// classifyTwin is classify for a name with underscores: a gateway that hands fields on as variables cannot distinguish it from the one with
// hyphens (RFC 3875 section 4.1.18), so it is of the same kind where that is about trust.
func classifyTwin(name []byte) kind {
	var twin [32]byte
	if len(name) > len(twin) {
		return kindPlain
	}
	n := copy(twin[:], name)
	for i := range n {
		if twin[i] == '_' {
			twin[i] = '-'
		}
	}
	switch k := classify(twin[:n]); k {
	case kindIdentity, kindForwarded:
		return k
	}
	return kindPlain
}
