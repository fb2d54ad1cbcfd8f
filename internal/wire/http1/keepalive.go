package http1

import (
	"bytes"

	"turnout/internal/wire/field"
)

// maxKeepAlive is the longest time that is taken from a Keep-Alive field, in seconds.
const maxKeepAlive = 3600

// keepAliveTimeout returns the seconds for which the sender of a Keep-Alive field
// (RFC 2068 section 19.7.1.1, "timeout=5, max=100") leaves an idle connection open: 0
// if it does not say, -1 if that is no time at all.
func keepAliveTimeout(value []byte) int {
	const name = "timeout="
	for len(value) > 0 {
		var param []byte
		param, value, _ = bytes.Cut(value, []byte{','})
		param = field.Trim(param)
		if len(param) <= len(name) || !is(param[:len(name)], name) {
			continue
		}
		n := 0
		for _, c := range param[len(name):] {
			if c < '0' || c > '9' {
				return 0
			}
			n = min(n*10+int(c-'0'), maxKeepAlive)
		}
		if n == 0 {
			return -1
		}
		return n
	}
	return 0
}
