package http1

import (
	"strconv"

	"turnout/internal/wire/field"
)

// AdjustName gives the bytes to send for a lower-case field name, for peers that
// insist on a case. It must not change the letters themselves, nor write to name.
type AdjustName func(name []byte) []byte

// The Append functions write what they are given: names, values, methods and
// targets come from a parser or from checked configuration.

// AppendRequestLine appends "method target HTTP/1.minor" and CRLF. path and query are the two parts of the target, as
// Request has them: what an origin server is sent is the origin-form, or "*".
func AppendRequestLine(dst, method, path, query []byte, minor int) []byte {
	dst = append(dst, method...)
	dst = append(dst, ' ')
	dst = append(append(dst, path...), query...)
	if minor == 0 {
		return append(dst, " HTTP/1.0\r\n"...)
	}
	return append(dst, " HTTP/1.1\r\n"...)
}

// AppendStatusLine appends "HTTP/1.minor status reason" and CRLF. A nil reason
// means the standard phrase; an empty one stays empty.
func AppendStatusLine(dst []byte, minor, status int, reason []byte) []byte {
	if minor == 0 {
		dst = append(dst, "HTTP/1.0 "...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
	}
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	if reason == nil {
		dst = append(dst, ReasonPhrase(status)...)
	} else {
		dst = append(dst, reason...)
	}
	return append(dst, '\r', '\n')
}

// AppendField appends one field line. A nil adjust sends name as it is.
func AppendField(dst, name, value []byte, adjust AdjustName) []byte {
	if adjust != nil {
		name = adjust(name)
	}
	dst = append(dst, name...)
	dst = append(dst, ':', ' ')
	dst = append(dst, value...)
	return append(dst, '\r', '\n')
}

// AppendFields appends field lines in order, names by adjust as in AppendField.
func AppendFields(dst []byte, fields []field.Field, adjust AdjustName) []byte {
	for i := range fields {
		dst = AppendField(dst, fields[i].Name, fields[i].Value, adjust)
	}
	return dst
}

// AppendContentLength appends a Content-Length line, its name by adjust as in
// AppendField.
func AppendContentLength(dst []byte, n int64, adjust AdjustName) []byte {
	name := nameContentLength
	if adjust != nil {
		name = adjust(name)
	}
	dst = append(append(dst, name...), ':', ' ')
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, '\r', '\n')
}

var nameContentLength = []byte("content-length")

// AppendHeadEnd appends the empty line that ends a head.
func AppendHeadEnd(dst []byte) []byte { return append(dst, '\r', '\n') }

// AppendChunkHeader appends the size line of a chunk of n bytes. n is positive: a
// chunk of 0 bytes would end the body (RFC 9112 section 7.1).
func AppendChunkHeader(dst []byte, n int) []byte {
	dst = strconv.AppendUint(dst, uint64(n), 16)
	return append(dst, '\r', '\n')
}

// AppendChunkEnd appends the CRLF after the data of a chunk.
func AppendChunkEnd(dst []byte) []byte { return append(dst, '\r', '\n') }

// AppendLastChunk appends the last chunk, the trailers, and the empty line that
// ends the body. Names by adjust as in AppendField.
func AppendLastChunk(dst []byte, trailers []field.Field, adjust AdjustName) []byte {
	dst = append(dst, '0', '\r', '\n')
	dst = AppendFields(dst, trailers, adjust)
	return append(dst, '\r', '\n')
}
