package http1

import "bytes"

// ParseRequest parses b, exactly one complete request head as FindHeadEnd found
// it, into r. b is modified (names and Connection become lower-case) and must live
// as long as r is used. A non-nil error is an *Error; r is then undefined and the
// connection is to be closed after the answer: where the message ends is unknown.
func ParseRequest(b []byte, r *Request, lim Limits) error {
	i, f := parseRequestLine(b, r)
	if f != faultNone {
		return f.request()
	}
	if lim.TargetBytes > 0 && len(r.Target) > lim.TargetBytes {
		return faultTargetSize.request()
	}
	if lim.Fields <= 0 {
		lim.Fields = DefaultFields
	}
	k := known{length: -1, options: r.ConnectionOptions[:0]}
	r.Fields, i, f = parseFields(b, i, r.Fields[:0], lim.Fields, &k)
	if f == faultNone && i != len(b) {
		f = faultEmptyLine
	}
	if f == faultNone {
		f = splitTarget(r)
	}
	if f == faultNone {
		f = route(r, &k)
	}
	if f == faultNone {
		f = frameRequest(r, &k)
	}
	return f.request()
}

// parseRequestLine parses "method SP request-target SP HTTP-version CRLF" (RFC
// 9112 section 3) and returns the index after it.
func parseRequestLine(b []byte, r *Request) (int, fault) {
	i := 0
	for i < len(b) && lowerToken[b[i]] != 0 {
		i++
	}
	if i == 0 && len(b) > 0 {
		return 0, badStart(b)
	}
	if i == len(b) || b[i] != ' ' {
		return 0, lineFault(b, i, faultMethod)
	}
	r.Method = b[:i:i]
	i++
	start := i
	for i < len(b) && charClass[b[i]]&classTarget != 0 {
		i++
	}
	if i == start || i == len(b) || b[i] != ' ' {
		if i == start && i < len(b) && isBlank(b[i]) {
			return 0, faultRequestLine
		}
		return 0, lineFault(b, i, faultTargetChar)
	}
	r.Target = b[start:i:i]
	i++
	minor, n, f := parseVersion(b[i:])
	if f != faultNone {
		return 0, f
	}
	i += n
	if len(b)-i < 2 || b[i] != '\r' || b[i+1] != '\n' {
		return 0, lineFault(b, i, faultVersion)
	}
	r.Minor = minor
	return i + 2, faultNone
}

// lineFault tells why a request line may not go on with b[i].
func lineFault(b []byte, i int, otherwise fault) fault {
	if i >= len(b) || b[i] == '\r' && i+1 == len(b) {
		return faultIncomplete
	}
	switch c := b[i]; {
	case c == 0:
		return faultNUL
	case c == '\n':
		return faultBareLF
	case c == '\r' && b[i+1] != '\n':
		return faultBareCR
	case c == '\r':
		return faultRequestLine // HTTP/0.9 among others
	}
	return otherwise
}

// parseVersion parses HTTP-version (RFC 9112 section 2.3) at the start of b.
func parseVersion(b []byte) (minor, n int, f fault) {
	const size = len("HTTP/1.1")
	if len(b) < size {
		return 0, 0, faultVersion
	}
	if string(b[:size]) == "HTTP/1.1" {
		return 1, size, faultNone
	}
	major, digit := b[5], b[7]
	if string(b[:5]) != "HTTP/" || major < '0' || major > '9' || b[6] != '.' || digit < '0' || digit > '9' {
		return 0, 0, faultVersion
	}
	if major != '1' {
		return 0, 0, faultVersionUnsupported
	}
	return min(int(digit-'0'), 1), size, faultNone
}

var (
	slash    = []byte("/")
	asterisk = []byte("*")
	// httpSchemes are the schemes this codec serves (RFC 9110 section 4.2).
	httpSchemes = [...]string{"http", "https"}
)

// splitTarget finds the form of the target and its parts (RFC 9112 section 3.2).
func splitTarget(r *Request) fault {
	t := r.Target
	r.Scheme, r.Path, r.Query, r.Authority = nil, nil, nil, nil
	switch {
	case string(r.Method) == "CONNECT":
		r.Form, r.Authority = FormAuthority, t
		return checkConnect(t)
	case t[0] == '/':
		r.Form = FormOrigin
		r.Path, r.Query = splitQuery(t)
		return faultNone
	case len(t) == 1 && t[0] == '*':
		if string(r.Method) != "OPTIONS" {
			return faultTargetForm
		}
		r.Form, r.Path = FormAsterisk, t
		return faultNone
	}
	return splitAbsolute(r)
}

// splitAbsolute takes an absolute-form apart (RFC 9112 section 3.2.2).
func splitAbsolute(r *Request) fault {
	colon := bytes.IndexByte(r.Target, ':')
	if colon <= 0 || colon+2 >= len(r.Target) || r.Target[colon+1] != '/' || r.Target[colon+2] != '/' {
		return faultTargetForm
	}
	scheme, rest := r.Target[:colon], r.Target[colon+3:]
	if !is(scheme, httpSchemes[0]) && !is(scheme, httpSchemes[1]) {
		return faultScheme
	}
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	switch checkHost(authority) {
	case faultNone:
	case faultUserinfo:
		return faultUserinfo
	default:
		return faultTargetAuthority
	}
	r.Form, r.Scheme, r.Authority = FormAbsolute, scheme, authority
	r.Path, r.Query = splitQuery(rest[end:])
	switch {
	case len(r.Path) > 0:
	case len(r.Query) == 0 && string(r.Method) == "OPTIONS":
		r.Path = asterisk // (RFC 9112 section 3.2.4)
	default:
		r.Path = slash
	}
	return faultNone
}

func splitQuery(t []byte) (path, query []byte) {
	if q := bytes.IndexByte(t, '?'); q >= 0 {
		return t[:q:q], t[q:]
	}
	return t, nil
}

// checkConnect checks an authority-form, uri-host ":" port (RFC 9112 section 3.2.3).
func checkConnect(t []byte) fault {
	colon := bytes.LastIndexByte(t, ':')
	if colon <= 0 || checkHost(t[:colon]) != faultNone {
		return faultTargetForm
	}
	if _, ok := parseLength(t[colon+1:]); !ok {
		return faultTargetForm
	}
	return faultNone
}

// route decides the authority (RFC 9112 sections 3.2 and 3.3).
func route(r *Request, k *known) fault {
	if k.hosts == 0 && r.Minor > 0 {
		return faultHostMissing
	}
	switch r.Form {
	case FormAbsolute:
		if k.hosts > 0 && !equalFold(k.host, r.Authority) {
			return faultHostTarget
		}
	case FormOrigin, FormAsterisk:
		r.Authority = k.host
	}
	return faultNone
}

// frameRequest decides the body and what the connection is for (RFC 9112 section
// 6.3 and RFC 9110 sections 7.6.1, 7.8 and 10.1.1).
func frameRequest(r *Request, k *known) fault {
	chunked, f := k.chunked(r.Minor)
	if f != faultNone {
		return f
	}
	r.Body, r.ContentLength = BodyNone, 0
	switch {
	case chunked:
		r.Body, r.ContentLength = BodyChunked, -1
	case k.length > 0:
		r.Body, r.ContentLength = BodyLength, k.length
	}
	r.KeepAlive = k.persistent(r.Minor)
	r.Upgrade = k.upgradeTo(r.Minor)
	r.Expect100 = k.continues && r.Minor > 0 && r.Body != BodyNone
	r.Trailers = k.trailers
	r.ConnectionOptions = k.options
	return faultNone
}
