package accesslog

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"turnout/internal/wire/protocol"
	"turnout/internal/wire/tracecontext"
	"turnout/proxy"
)

// appendLine appends the JSON line of s, newline included. What the client sent
// can contain any byte; what is appended is one line of printable JSON.
func appendLine(b []byte, s *slot) []byte {
	r := &s.rec
	b = append(b, `{"level":"info","ts":"`...)
	b = r.Start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, `","msg":"request","client":"`...)
	if r.Client.IsValid() {
		b = r.Client.AppendTo(b)
	}
	b = append(b, `","tls":`...)
	b = strconv.AppendBool(b, r.Secure)
	b = append(b, `,"method":`...)
	b = appendText(b, r.Method)
	b = append(b, `,"host":`...)
	b = appendText(b, r.Host)
	b = append(b, `,"target":`...)
	b = appendText(b, r.Target)
	b = append(b, `,"proto":"`...)
	switch {
	case len(r.Method) == 0: // the head was not read
	case r.Spoken == protocol.HTTP2:
		b = append(b, "HTTP/2.0"...)
	default:
		b = strconv.AppendInt(append(b, "HTTP/1."...), int64(r.Minor), 10)
	}
	b = append(b, `","namespace":`...)
	b = appendText(b, r.Namespace)
	b = append(b, `,"route":`...)
	b = appendText(b, r.Route)
	b = append(b, `,"server":`...)
	b = appendText(b, r.Server)
	b = append(b, `,"endpoint":"`...)
	if r.Endpoint.IsValid() {
		b = r.Endpoint.AppendTo(b)
	}
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(r.Status), 10)
	b = append(b, `,"reason":`...)
	b = appendText(b, r.Reason.String())
	if r.Detail != "" {
		b = append(b, `,"detail":`...)
		b = appendText(b, r.Detail)
	}
	b = append(b, `,"bytes_in":`...)
	b = strconv.AppendUint(b, r.BytesIn, 10)
	b = append(b, `,"bytes_out":`...)
	b = strconv.AppendUint(b, r.BytesOut, 10)
	b = append(b, `,"retries":`...)
	b = strconv.AppendInt(b, int64(r.Retries), 10)
	if r.Queue > 0 {
		b = appendMillis(b, `,"queue_ms":`, r.Queue)
	}
	b = appendMillis(b, `,"connect_ms":`, r.Connect)
	b = appendMillis(b, `,"response_ms":`, r.Response)
	b = appendMillis(b, `,"total_ms":`, r.Total)
	b = appendTrace(b, &r.Trace)
	b = appendCaptured(b, r)
	if r.Tunnel {
		b = append(b, `,"tunnel":true`...)
	}
	if s.truncated {
		b = append(b, `,"truncated":true`...)
	}
	return append(b, '}', '\n')
}

// appendTrace appends what connects the line with a trace, nothing for a request that is not traced.
func appendTrace(b []byte, t *proxy.TraceRef) []byte {
	if *t == (proxy.TraceRef{}) {
		return b
	}
	b = tracecontext.AppendHex(append(b, `,"trace_id":"`...), t.Trace[:])
	b = tracecontext.AppendHex(append(b, `","span_id":"`...), t.Span[:])
	b = append(b, `","trace_sampled":`...)
	return strconv.AppendBool(b, t.Sampled)
}

// appendCaptured appends what was captured of messages: two objects by header name, two
// cookie pairs. What was not there is left out.
func appendCaptured(b []byte, r *proxy.Record) []byte {
	if r.Captures == nil {
		return b
	}
	b = appendHeaders(b, `,"request_headers":{`, r.Captures.Request, r.Captured)
	b = appendHeaders(b, `,"response_headers":{`, r.Captures.Response, r.Captured[len(r.Captures.Request):])
	if r.Captures.Cookie.Name == "" {
		return b
	}
	cookies := r.Captured[len(r.Captured)-2:]
	for i, key := range [...]string{`,"request_cookie":`, `,"response_cookie":`} {
		if cookies[i] != nil {
			b = appendText(append(b, key...), cookies[i])
		}
	}
	return b
}

func appendHeaders(b []byte, key string, names []proxy.Capture, values [][]byte) []byte {
	if len(names) == 0 {
		return b
	}
	b = append(b, key...)
	first := true
	for i := range names {
		if values[i] == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, names[i].Name), ':')
		b = appendText(b, values[i])
	}
	return append(b, '}')
}

// appendMillis appends key and d in milliseconds with three decimals, or nothing
// for a phase that was not reached.
func appendMillis(b []byte, key string, d time.Duration) []byte {
	if d < 0 {
		return b
	}
	b = append(b, key...)
	return strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', 3, 64)
}

const hexDigits = "0123456789abcdef"

// appendText appends s as a JSON string (RFC 8259 section 7). Quotes and
// backslashes are escaped, and so is every character that is not printable:
// C0 and C1 controls (terminal escapes among them), line and paragraph
// separators, bidirectional overrides. Bytes that are not UTF-8 become U+FFFD.
func appendText[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			b = appendASCII(b, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		switch {
		case r == utf8.RuneError && size <= 1:
			b, size = append(b, `\ufffd`...), 1
		case unicode.IsPrint(r):
			b = append(b, s[i:i+size]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b = appendEscape(appendEscape(b, hi), lo)
		default:
			b = appendEscape(b, r)
		}
		i += size
	}
	return append(b, '"')
}

func appendASCII(b []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c >= 0x20 && c < 0x7f:
		return append(b, c)
	case c == '\n':
		return append(b, '\\', 'n')
	case c == '\r':
		return append(b, '\\', 'r')
	case c == '\t':
		return append(b, '\\', 't')
	}
	return appendEscape(b, rune(c))
}

// appendEscape appends one UTF-16 code unit as \uXXXX.
func appendEscape(b []byte, u rune) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
