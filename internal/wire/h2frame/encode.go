package h2frame

import "strconv"

// The encoder writes fields as literals without indexing (RFC 7541 section 6.2.2), with names of the static table where it has them, and
// never fills the dynamic table of the peer: it keeps no state, so blocks may be encoded in one order and sent in another.
// docs/decisions/0005-http2-codec.md says what that costs.

// EmptyTable is a dynamic table size update to 0 (RFC 7541 section 6.3). It begins the first block of a connection, after which no change
// of SETTINGS_HEADER_TABLE_SIZE ever asks for another.
const EmptyTable = 0x20

const (
	literal      = 0x00 // 4-bit prefix
	neverIndexed = 0x10 // 4-bit prefix: not even by those who forward it (RFC 7541 section 7.1.3)
	indexed      = 0x80 // 7-bit prefix
)

// AppendField appends one field; name is lower-case.
func AppendField(b, name, value []byte) []byte {
	kind := byte(literal)
	switch string(name) {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		kind = neverIndexed
	}
	if i := staticIndex(name); i > 0 {
		b = appendInt(b, kind, 4, i)
	} else {
		b = appendString(append(b, kind), name)
	}
	return appendString(b, value)
}

// AppendStatus appends the pseudo-field of a response.
func AppendStatus(b []byte, status int) []byte {
	switch status {
	case 200:
		return append(b, indexed|8)
	case 204:
		return append(b, indexed|9)
	case 206:
		return append(b, indexed|10)
	case 304:
		return append(b, indexed|11)
	case 400:
		return append(b, indexed|12)
	case 404:
		return append(b, indexed|13)
	case 500:
		return append(b, indexed|14)
	}
	return append(b, literal|8, 3, byte('0'+status/100%10), byte('0'+status/10%10), byte('0'+status%10))
}

// AppendContentLength appends a Content-Length field.
func AppendContentLength(b []byte, n int64) []byte {
	b = appendInt(b, literal, 4, 28)
	b = append(b, 0)
	at := len(b)
	b = strconv.AppendInt(b, n, 10)
	b[at-1] = byte(len(b) - at)
	return b
}

// AppendRequestLine appends the pseudo-fields of a request other than CONNECT. path and query are the two parts of :path.
func AppendRequestLine(b, method []byte, secure bool, authority, path, query []byte) []byte {
	switch string(method) {
	case "GET":
		b = append(b, indexed|2)
	case "POST":
		b = append(b, indexed|3)
	default:
		b = appendString(append(b, literal|2), method)
	}
	if secure {
		b = append(b, indexed|7)
	} else {
		b = append(b, indexed|6)
	}
	if len(authority) > 0 { // it is left out where the request names none (RFC 9113 section 8.3.1)
		b = appendString(append(b, literal|1), authority)
	}
	b = appendInt(append(b, literal|4), 0, 7, len(path)+len(query))
	return append(append(b, path...), query...)
}

func appendString(b, s []byte) []byte { return append(appendInt(b, 0, 7, len(s)), s...) }

// appendInt appends an integer with a prefix of n bits (RFC 7541 section 5.1); first holds the bits before it.
func appendInt(b []byte, first byte, n, v int) []byte {
	limit := 1<<n - 1
	if v < limit {
		return append(b, first|byte(v))
	}
	b = append(b, first|byte(limit))
	for v -= limit; v >= 128; v >>= 7 {
		b = append(b, byte(v)|128)
	}
	return append(b, byte(v))
}

// staticIndex is the place of a name in the static table (RFC 7541 appendix A), 0 without one.
func staticIndex(name []byte) int {
	switch string(name) {
	case "accept-charset":
		return 15
	case "accept-encoding":
		return 16
	case "accept-language":
		return 17
	case "accept-ranges":
		return 18
	case "accept":
		return 19
	case "access-control-allow-origin":
		return 20
	case "age":
		return 21
	case "allow":
		return 22
	case "authorization":
		return 23
	case "cache-control":
		return 24
	case "content-disposition":
		return 25
	case "content-encoding":
		return 26
	case "content-language":
		return 27
	case "content-location":
		return 29
	case "content-range":
		return 30
	case "content-type":
		return 31
	case "cookie":
		return 32
	case "date":
		return 33
	case "etag":
		return 34
	case "expect":
		return 35
	case "expires":
		return 36
	}
	return staticIndexTail(name)
}

func staticIndexTail(name []byte) int {
	switch string(name) {
	case "from":
		return 37
	case "if-match":
		return 39
	case "if-modified-since":
		return 40
	case "if-none-match":
		return 41
	case "if-range":
		return 42
	case "if-unmodified-since":
		return 43
	case "last-modified":
		return 44
	case "link":
		return 45
	case "location":
		return 46
	case "max-forwards":
		return 47
	case "proxy-authenticate":
		return 48
	case "proxy-authorization":
		return 49
	case "range":
		return 50
	case "referer":
		return 51
	case "refresh":
		return 52
	case "retry-after":
		return 53
	case "server":
		return 54
	case "set-cookie":
		return 55
	case "strict-transport-security":
		return 56
	case "user-agent":
		return 58
	case "vary":
		return 59
	case "via":
		return 60
	case "www-authenticate":
		return 61
	}
	return 0
}
