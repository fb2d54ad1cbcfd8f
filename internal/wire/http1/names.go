package http1

import "bytes"

// IsHopByHop says whether the field called name (lower-case) ends at this hop
// (RFC 9110 section 7.6.1). What Connection nominates comes on top, see
// Request.ConnectionOptions. TE is hop-by-hop, but who forwards trailers sends
// "te: trailers" on for Request.Trailers. Trailer is end-to-end (section 6.6.2).
func IsHopByHop(name []byte) bool {
	switch string(name) {
	case "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade",
		"http2-settings": // RFC 7540 section 3.2.1: part of the h2c upgrade, which ends here
		return true
	}
	return false
}

// isProtected says whether name may not be removed by being nominated in
// Connection: fields that route, frame, identify or describe the message, and
// those the pipeline writes itself. RFC 9110 section 7.6.1: a field meant for all
// recipients of the content must not be nominated.
func isProtected(name []byte) bool {
	for _, prefix := range [...]string{"x-forwarded-", "x-ssl", "x_ssl", "content-", "sec-", "access-control-", "if-"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	switch string(name) {
	case "host", "transfer-encoding", "trailer", "expect", "forwarded", "x-real-ip", "x-client-ip",
		"authorization", "proxy-authorization", "www-authenticate", "proxy-authenticate",
		"cookie", "set-cookie", "origin", "referer", "range", "via", "max-forwards",
		"cache-control", "date", "etag", "expires", "last-modified", "location", "vary",
		"strict-transport-security":
		return true
	}
	return false
}

// IsForbiddenTrailer says whether a field called name (lower-case) has no place
// in trailers (RFC 9110 section 6.5.1): framing, routing, authentication, request
// modifiers, control data and content description, which a receiver must not
// learn after the body.
func IsForbiddenTrailer(name []byte) bool {
	if IsHopByHop(name) || isProtected(name) {
		return true
	}
	switch string(name) {
	case "age", "allow", "authentication-info", "pragma", "proxy-authentication-info", "retry-after",
		"server", "user-agent", "warning":
		return true
	}
	return bytes.HasPrefix(name, []byte("accept-")) || string(name) == "accept"
}
