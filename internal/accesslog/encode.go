package accesslog

import (
	"crypto/tls"
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
func (o *output) appendLine(b []byte, s *slot) []byte {
	r := &s.rec
	b = append(b, `{"level":"info","ts":"`...)
	b = r.Start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, `","msg":"request","client":"`...)
	if r.Client.IsValid() {
		b = r.Client.AppendTo(b)
	}
	b = append(b, `","tls":`...)
	b = strconv.AppendBool(b, r.Secure)
	b = o.appendSession(b, r)
	b = append(b, `,"method":`...)
	b = appendText(b, r.Method)
	b = append(b, `,"host":`...)
	b = appendText(b, r.Host)
	b = append(b, `,"target":`...)
	b = appendText(b, r.Target)
	b = append(b, `,"proto":"`...)
	if len(r.Method) > 0 { // else the head was not read
		b = appendProtocol(b, r.Spoken, r.Minor)
	}
	b = append(b, '"')
	if r.UserAgent != nil {
		b = appendText(append(b, `,"user_agent":`...), r.UserAgent)
	}
	if r.Referer != nil {
		b = appendText(append(b, `,"referer":`...), r.Referer)
	}
	b = append(b, `,"namespace":`...)
	b = appendText(b, r.Namespace)
	b = append(b, `,"route":`...)
	b = appendText(b, r.Route)
	b = append(b, `,"server":`...)
	b = appendText(b, r.Server)
	b = append(b, `,"endpoint":"`...)
	if r.Endpoint.IsValid() {
		b = r.Endpoint.AppendTo(b)
	}
	b = append(b, '"')
	if r.Answered {
		b = append(appendProtocol(append(b, `,"upstream_proto":"`...), r.AnsweredIn, r.AnsweredMinor), '"')
	}
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(r.Status), 10)
	b = append(b, `,"reason":`...)
	b = appendText(b, r.Reason.String())
	if o.links != nil {
		b = append(b, o.links[r.Reason]...)
	}
	if r.Detail != "" {
		b = append(b, `,"detail":`...)
		b = appendText(b, r.Detail)
	}
	b = appendBytes(b, r)
	b = append(b, `,"retries":`...)
	b = strconv.AppendInt(b, int64(r.Retries), 10)
	b = appendCauses(b, r)
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
	if r.Private {
		b = append(b, `,"private":true`...)
	}
	if o.l.cfg.Filter.sampled(r) {
		b = append(b, `,"sample":`...)
		b = strconv.AppendFloat(b, o.l.cfg.Filter.Sample, 'g', -1, 64)
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

// appendBytes appends sizes, without heads and with them.
func appendBytes(b []byte, r *proxy.Record) []byte {
	b = append(b, `,"bytes_in":`...)
	b = strconv.AppendUint(b, r.BytesIn, 10)
	b = append(b, `,"bytes_out":`...)
	b = strconv.AppendUint(b, r.BytesOut, 10)
	b = append(b, `,"total_bytes_in":`...)
	b = strconv.AppendUint(b, r.HeadIn+r.BytesIn, 10)
	b = append(b, `,"total_bytes_out":`...)
	return strconv.AppendUint(b, r.HeadOut+r.BytesOut, 10)
}

// appendSession appends what is known of the client's TLS.
func (o *output) appendSession(b []byte, r *proxy.Record) []byte {
	if r.TLSVersion != 0 {
		b = append(append(append(b, `,"tls_version":"`...), tls.VersionName(r.TLSVersion)...), '"')
		b = append(append(append(b, `,"tls_cipher":"`...), o.cipher(r.CipherSuite)...), '"')
	}
	if r.ServerName != "" {
		b = appendText(append(b, `,"sni":`...), r.ServerName)
	}
	if r.Negotiated {
		b = append(append(append(b, `,"alpn":"`...), r.Agreed.String()...), '"')
	}
	return b
}

// cipher is the name of a suite. There are few.
func (o *output) cipher(suite uint16) string {
	name, ok := o.ciphers[suite]
	if !ok {
		if name = tls.CipherSuiteName(suite); o.l.cfg.CipherName != nil {
			name = o.l.cfg.CipherName(suite)
		}
		o.ciphers[suite] = name
	}
	return name
}

func appendProtocol(b []byte, spoken protocol.Protocol, minor int) []byte {
	if spoken == protocol.HTTP2 {
		return append(b, "HTTP/2.0"...)
	}
	return strconv.AppendInt(append(b, "HTTP/1."...), int64(minor), 10)
}

// appendCauses appends why there were attempts after the first, in their order.
func appendCauses(b []byte, r *proxy.Record) []byte {
	if r.Retries == 0 {
		return b
	}
	b = append(b, `,"retry_causes":[`...)
	for i, f := range r.Causes[:min(r.Retries, len(r.Causes))] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f.String()...), '"')
	}
	return append(b, ']')
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
