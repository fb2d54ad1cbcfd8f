package field

import "bytes"

// NextCookie returns the first pair of a Cookie value (RFC 6265 section 4.2.1), without white
// space around it, and the value after its semicolon, nil at the end. The pair may be empty.
func NextCookie(value []byte) (pair, rest []byte) {
	if i := bytes.IndexByte(value, ';'); i >= 0 {
		return Trim(value[:i]), value[i+1:]
	}
	return Trim(value), nil
}

// CookieValue returns the value of a pair, without the quotes around it (RFC 6265 section 4.1.1),
// if the pair has the name.
func CookieValue(pair []byte, name string) (value []byte, ok bool) {
	if len(pair) <= len(name) || pair[len(name)] != '=' || string(pair[:len(name)]) != name {
		return nil, false
	}
	return unquote(pair[len(name)+1:]), true
}

// CutCookie returns name and value of a pair; a pair without "=" is a name.
func CutCookie(pair []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(pair, []byte("="))
	return name, unquote(value)
}

func unquote(value []byte) []byte {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		return value[1 : n-1]
	}
	return value
}
