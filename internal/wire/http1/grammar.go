package http1

// What other codecs check with, so that whatever they let through can be said in HTTP/1.1: none of it can end a line, a head or a message
// that this package writes.

// ValidToken says whether b is a token (RFC 9110 section 5.6.2).
func ValidToken(b []byte) bool { return isToken(b) }

// ValidName says whether b is a field name in lower case (RFC 9110 section 5.1).
func ValidName(b []byte) bool {
	for _, c := range b {
		if lowerToken[c] != c || c == 0 {
			return false
		}
	}
	return len(b) > 0
}

// ValidValue says whether b is a field value without blanks around it (RFC 9110 section 5.5).
func ValidValue(b []byte) bool {
	return allOf(b, classValue) && (len(b) == 0 || !isBlank(b[0]) && !isBlank(b[len(b)-1]))
}

// ValidTarget says whether b holds only bytes that a request-target may hold (RFC 9112 section 3.2).
func ValidTarget(b []byte) bool { return len(b) > 0 && allOf(b, classTarget) }

// ValidHost says whether b may be a Host: one host with an optional port, no list, no userinfo, no path (RFC 9110 section 7.2).
func ValidHost(b []byte) bool { return checkHost(b) == faultNone }

// ParseLength reads a Content-Length: digits only, within int64 (RFC 9110 section 8.6).
func ParseLength(b []byte) (int64, bool) { return parseLength(b) }
