package http1

// ParseResponse parses b, exactly one complete response head, into r; the rules of
// ParseRequest about b, r and errors hold, and every error has status 502.
// requestMethod is the method of the request this answers: it decides whether a
// body follows (RFC 9112 section 6.3).
func ParseResponse(b []byte, r *Response, requestMethod []byte, lim Limits) error {
	i, f := parseStatusLine(b, r)
	if f != faultNone {
		return f.response()
	}
	if lim.Fields <= 0 {
		lim.Fields = DefaultFields
	}
	k := known{length: -1, response: true, options: r.ConnectionOptions[:0]}
	r.Fields, i, f = parseFields(b, i, r.Fields[:0], lim.Fields, &k)
	if f == faultNone && i != len(b) {
		f = faultEmptyLine
	}
	if f == faultNone {
		f = frameResponse(r, &k, requestMethod)
	}
	return f.response()
}

// parseStatusLine parses "HTTP-version SP status-code SP [reason] CRLF" (RFC 9112
// section 4) and returns the index after it. The second SP may be missing when
// there is no reason, as it is in the answers of several servers.
func parseStatusLine(b []byte, r *Response) (int, fault) {
	minor, i, f := parseVersion(b)
	if f != faultNone {
		return 0, f
	}
	if len(b)-i < len(" 200\r\n") || b[i] != ' ' {
		return 0, faultStatusLine
	}
	x, y, z := b[i+1]-'0', b[i+2]-'0', b[i+3]-'0'
	if x < 1 || x > 9 || y > 9 || z > 9 {
		return 0, faultStatusCode
	}
	i += 4
	start := i
	if b[i] == ' ' {
		start++
		i = textEnd(b, start)
	}
	if i+1 >= len(b) || b[i] != '\r' || b[i+1] != '\n' {
		f := valueFault(b, i)
		switch {
		case f != faultValueChar:
			return 0, f
		case start == i:
			return 0, faultStatusLine
		}
		return 0, faultReasonChar
	}
	r.Minor, r.Status, r.Reason = minor, int(x)*100+int(y)*10+int(z), b[start:i:i]
	return i + 2, faultNone
}

// frameResponse decides the body and what becomes of the connection (RFC 9112
// sections 6.3 and 9.3).
func frameResponse(r *Response, k *known, requestMethod []byte) fault {
	chunked, f := k.chunked(r.Minor)
	if f != faultNone {
		return f
	}
	r.KeepAlive = k.persistent(r.Minor)
	r.ConnectionOptions, r.IdleTimeout = k.options, k.idle
	r.Upgrade = nil
	if r.Status == 101 {
		r.Upgrade = k.upgradeTo(r.Minor)
	}
	switch {
	case r.Status < 200 || r.Status == 204:
		// No body and no word about one (RFC 9110 section 8.6). A server that
		// announces one here cannot be trusted about where the next message starts.
		if chunked || k.length > 0 {
			r.KeepAlive = false
		}
		if k.length >= 0 {
			r.Fields = append(r.Fields[:k.lengthAt], r.Fields[k.lengthAt+1:]...)
		}
		r.Body, r.ContentLength = BodyNone, 0
	case r.Status == 304 || string(requestMethod) == "HEAD":
		r.Body, r.ContentLength = BodyNone, k.length
	case chunked:
		r.Body, r.ContentLength = BodyChunked, -1
	case k.length > 0:
		r.Body, r.ContentLength = BodyLength, k.length
	case k.length == 0:
		r.Body, r.ContentLength = BodyNone, 0
	default:
		r.Body, r.ContentLength = BodyUntilClose, -1
		r.KeepAlive = false
	}
	return faultNone
}
