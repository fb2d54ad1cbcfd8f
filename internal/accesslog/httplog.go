package accesslog

import (
	"bytes"
	"strconv"
	"time"

	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// passed says that the record is of a TLS connection that was passed through.
func passed(r *proxy.Record) bool { return r.Frontend == "public_ssl" }

// transport is the front end, with "~" where TLS ends.
func transport(r *proxy.Record) string {
	switch r.Frontend {
	case "fe_sni":
		return "fe_sni~"
	case "fe_no_sni":
		return "fe_no_sni~"
	}
	return r.Frontend
}

// appendBackend appends the backend that served the request; who got no further than the front end has that one.
func appendBackend(b []byte, r *proxy.Record) []byte {
	switch {
	case r.Reason == proxy.ReasonNoRoute:
		return append(b, "openshift_default"...)
	case r.Backend == "" || r.Reason == proxy.ReasonRedirect:
		return append(b, r.Frontend...)
	}
	b = append(append(append(b, r.Backend...), ':'), r.Namespace...)
	return append(append(b, ':'), r.Route...)
}

func serverName(r *proxy.Record) string {
	if r.Server == "" {
		return "<NOSRV>"
	}
	return r.Server
}

func statusOf(r *proxy.Record) int64 {
	if r.Status == 0 {
		return -1
	}
	return int64(r.Status)
}

func appendVersion(b []byte, r *proxy.Record) []byte {
	if r.Spoken == protocol.HTTP2 {
		return append(b, "HTTP/2.0"...)
	}
	return strconv.AppendInt(append(b, "HTTP/1."...), int64(r.Minor), 10)
}

// appendURI appends a target, or the part of one, as HAProxy has it: whole, with scheme and host, over HTTP/2.
func appendURI(b []byte, r *proxy.Record, target []byte) []byte {
	if r.Spoken == protocol.HTTP2 && bytes.HasPrefix(target, []byte{'/'}) {
		scheme := "http://"
		if r.Secure {
			scheme = "https://"
		}
		b = appendPlain(append(b, scheme...), r.Host, encodeURI)
	}
	return appendPlain(b, target, encodeURI)
}

// pathOf is the path of a target, without what precedes and follows it.
func pathOf(target []byte) []byte {
	target, _, _ = bytes.Cut(target, []byte{'?'})
	if _, after, ok := bytes.Cut(target, []byte("://")); ok && target[0] != '/' {
		if i := bytes.IndexByte(after, '/'); i >= 0 {
			return after[i:]
		}
		return []byte{'/'}
	}
	return target
}

// millis is a duration in milliseconds, -1 for a phase that was not reached.
func millis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

// headTime is 0: the clock of a request starts with its complete head. There is none of what was no request, and of
// who was turned away by address.
func headTime(r *proxy.Record) int64 {
	if len(r.Method) == 0 && !passed(r) || r.Reason == proxy.ReasonDenied || r.Reason == proxy.ReasonRateLimited {
		return -1
	}
	return 0
}

func queueTime(r *proxy.Record) int64 {
	if r.Server == "" && r.Queue == 0 {
		return -1
	}
	return millis(r.Queue)
}

// dataTime is that from the head of the answer to its end.
func dataTime(r *proxy.Record) int64 {
	if r.Response < 0 {
		return -1
	}
	return max(millis(r.Total-r.Queue-max(r.Connect, 0)-r.Response), 0)
}

func requestHeaders(r *proxy.Record) [][]byte {
	if r.Captures == nil || len(r.Captured) == 0 {
		return nil
	}
	return r.Captured[:len(r.Captures.Request)]
}

func responseHeaders(r *proxy.Record) [][]byte {
	if r.Captures == nil || len(r.Captured) == 0 {
		return nil
	}
	n := len(r.Captures.Request)
	return r.Captured[n : n+len(r.Captures.Response)]
}

// cookieOf is the captured cookie of the request (0) or of the answer (1).
func cookieOf(r *proxy.Record, i int) []byte {
	if r.Captures == nil || r.Captures.Cookie.Name == "" || len(r.Captured) < 2 {
		return nil
	}
	return r.Captured[len(r.Captured)-2+i]
}

// braces appends captured headers as {a|b}, nothing if there are none.
func (p *piece) braces(b []byte, values [][]byte) []byte {
	if len(values) == 0 {
		return b
	}
	if p.Quote {
		b = append(b, '"')
	}
	for i, v := range values {
		b = appendPlain(append(b, "{|"[min(i, 1)]), v, encodeHeader)
	}
	b = append(b, '}')
	if p.Quote {
		b = append(b, '"')
	}
	return b
}

// list appends captured headers one by one.
func (p *piece) list(b []byte, values [][]byte) []byte {
	for i, v := range values {
		if i > 0 {
			b = append(b, ' ')
		}
		switch {
		case p.Quote:
			b = append(appendPlain(append(b, '"'), v, encodeHeader), '"')
		case v == nil:
			b = append(b, '-')
		default:
			b = appendPlain(b, v, encodeHeader)
		}
	}
	return b
}

// phase is how far a request had come: R it was being read, Q it waited for a server, C a server was being connected,
// H its head was awaited, D the answer was on its way.
func phase(r *proxy.Record) byte {
	switch {
	case r.Response >= 0:
		return 'D'
	case r.Connect >= 0 && passed(r):
		return 'D'
	case r.Connect >= 0:
		return 'H'
	case r.Server != "":
		return 'C'
	case r.Queue > 0:
		return 'Q'
	}
	return 'R'
}

// beforeAnswer is the phase of a request that was given up before anything of an answer went out.
func beforeAnswer(r *proxy.Record) byte {
	if at := phase(r); at != 'D' {
		return at
	}
	return 'H'
}

// termination is who ended the exchange, and when: the first two characters of HAProxy's termination state (its
// configuration manual, section 8.5).
func termination(r *proxy.Record) string {
	switch r.Reason {
	case proxy.ReasonOK, proxy.ReasonTunnelClosed:
		return "--"
	case proxy.ReasonRedirect, proxy.ReasonMonitor, proxy.ReasonPreflight:
		return "LR"
	case proxy.ReasonNoRoute, proxy.ReasonNoEndpoint, proxy.ReasonConnect, proxy.ReasonUpstreamTLS, proxy.ReasonBackend:
		return "SC"
	case proxy.ReasonQueueTimeout:
		return "sQ"
	case proxy.ReasonUpstreamReset:
		return state('S', phase(r))
	case proxy.ReasonServerTimeout, proxy.ReasonRequestTimeout:
		return state('s', phase(r))
	case proxy.ReasonUpstreamHead:
		return "PH"
	case proxy.ReasonClientGone:
		return state('C', phase(r))
	case proxy.ReasonClientTimeout:
		return state('c', phase(r))
	case proxy.ReasonShutdown:
		return state('K', phase(r))
	case proxy.ReasonOverload, proxy.ReasonRouteShare:
		return state('R', phase(r))
	case proxy.ReasonInternal:
		return state('I', beforeAnswer(r))
	case proxy.ReasonRewrite:
		return state('P', beforeAnswer(r))
	case proxy.ReasonBadRequest:
		if r.Detail == "incomplete-head" {
			return "CR"
		}
	}
	return state('P', phase(r)) // refused for what it is
}

func state(who, when byte) string { return string([]byte{who, when}) }

// stickiness is the third and fourth character: what the client's sticky cookie was, and whether it got one.
func stickiness(r *proxy.Record) string {
	if r.Sticky == proxy.StickyOff || r.Reason == proxy.ReasonRedirect {
		return "--"
	}
	asked := "-NVDI"[min(r.Sticky, proxy.StickyUnknown)]
	if r.Inserted {
		return state(asked, 'I')
	}
	return state(asked, 'N')
}
