package tracing

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"turnout/internal/wire/protocol"
	"turnout/internal/wire/tracecontext"
	"turnout/proxy"
)

// Attributes of the router's own.
const (
	keyRoute  = attribute.Key("turnout.route")  // name of the Route; its namespace is k8s.namespace.name
	keyReason = attribute.Key("turnout.reason") // why the request ended, as in the access log
	keyDetail = attribute.Key("turnout.detail") // the same
	keyServer = attribute.Key("turnout.server") // the endpoint, as in the access log
)

// maker makes spans of records. It belongs to one goroutine, and keeps memory from one to the next.
type maker struct {
	of    *origin
	out   func(sdktrace.ReadOnlySpan)
	attrs []attribute.KeyValue
}

// spans makes the span of a request and those of its attempts.
func (m *maker) spans(s *proxy.Span) {
	made := make([]snapshot, 1+s.Made)
	server := &made[0]
	at := trace.SpanContextConfig{TraceID: trace.TraceID(s.Trace.Trace), SpanID: trace.SpanID(s.Trace.Span), TraceFlags: trace.FlagsSampled}
	if s.Parent.Valid() {
		server.parent = remote(&s.Parent, s.State())
		at.TraceState, at.TraceFlags = server.parent.TraceState(), server.parent.TraceFlags()|trace.FlagsSampled
	}
	method, original := knownMethod(text(s.Method()))
	name := method
	if name == semconv.HTTPRequestMethodOther.Value.AsString() {
		name = "HTTP"
	}
	attempt := name
	route := s.Path
	if s.Route != "" {
		if route == "" {
			route = "/"
		}
		name += " " + route
	}
	path, query := target(text(s.Target()))
	query = redact(query)
	m.request(s, method, original, route, path, query)
	server.of, server.name, server.context, server.kind = m.of, name, trace.NewSpanContext(at), trace.SpanKindServer
	server.start, server.end = s.Start, s.Start.Add(max(s.Total, 0))
	server.failed, server.descendants = failed(s), s.Made
	server.describe(m.attrs)
	if s.Link.Valid() {
		server.link(remote(&s.Link, nil))
	}
	if sent := text(s.SentPath()); sent != "" {
		path = sent
	}
	for i := range s.Attempts[:s.Made] {
		a, client := &s.Attempts[i], &made[1+i]
		at.SpanID = trace.SpanID(a.ID)
		client.of, client.name, client.context, client.parent, client.kind = m.of, attempt, trace.NewSpanContext(at), server.context, trace.SpanKindClient
		client.start, client.end = s.Start.Add(a.Start), s.Start.Add(max(a.End, a.Start))
		client.failed = m.attempt(s, i, method, original, path, query)
		client.describe(m.attrs)
		m.out(client)
	}
	m.out(server)
}

// request puts the attributes of the SERVER span into m.attrs.
func (m *maker) request(s *proxy.Span, method, original, route, path, query string) {
	m.attrs = m.attrs[:0]
	m.add(semconv.HTTPRequestMethodKey, method)
	m.addSome(semconv.HTTPRequestMethodOriginalKey, original)
	m.add(semconv.URLSchemeKey, scheme(s.Secure))
	m.add(semconv.URLPathKey, path)
	m.addSome(semconv.URLQueryKey, query)
	m.add(semconv.NetworkProtocolVersionKey, version(s.Spoken, s.Minor))
	host, port := authority(text(s.Host()), s.Secure)
	m.addSome(semconv.ServerAddressKey, host)
	if port > 0 {
		m.attrs = append(m.attrs, semconv.ServerPort(port))
	}
	m.peer(semconv.ClientAddressKey, semconv.ClientPortKey, s.Client)
	m.addSome(semconv.UserAgentOriginalKey, text(s.Agent()))
	if s.Status > 0 {
		m.attrs = append(m.attrs, semconv.HTTPResponseStatusCode(s.Status))
	}
	if s.Route != "" {
		m.add(semconv.HTTPRouteKey, route)
		m.add(semconv.K8SNamespaceNameKey, s.Namespace)
		m.add(keyRoute, s.Route)
	}
	m.add(keyReason, s.Reason.String())
	m.addSome(keyDetail, s.Detail)
	if failed(s) {
		m.add(semconv.ErrorTypeKey, errorType(s.Reason, s.Status))
	}
}

// attempt puts the attributes of a CLIENT span into m.attrs. wrong: it is an error.
func (m *maker) attempt(s *proxy.Span, i int, method, original, path, query string) (wrong bool) {
	a := &s.Attempts[i]
	m.attrs = m.attrs[:0]
	m.add(semconv.HTTPRequestMethodKey, method)
	m.addSome(semconv.HTTPRequestMethodOriginalKey, original)
	url := scheme(a.Secure) + "://" + a.Endpoint.String() + path
	if query != "" {
		url += "?" + query
	}
	m.add(semconv.URLFullKey, url)
	m.peer(semconv.ServerAddressKey, semconv.ServerPortKey, a.Endpoint)
	m.peer(semconv.NetworkPeerAddressKey, semconv.NetworkPeerPortKey, a.Endpoint)
	m.add(keyServer, a.Server)
	if i > 0 {
		m.attrs = append(m.attrs, semconv.HTTPRequestResendCount(i))
	}
	if a.Status > 0 {
		m.add(semconv.NetworkProtocolVersionKey, version(a.Spoken, a.Minor))
		m.attrs = append(m.attrs, semconv.HTTPResponseStatusCode(a.Status))
	}
	kind := ""
	switch {
	case a.Fault != 0:
		kind = a.Fault.String()
	case failing(s.Reason):
		kind = s.Reason.String()
	case a.Status >= 400:
		kind = strconv.Itoa(a.Status)
	}
	m.addSome(semconv.ErrorTypeKey, kind)
	return kind != ""
}

func (m *maker) add(key attribute.Key, value string) { m.attrs = append(m.attrs, key.String(value)) }

// addSome leaves out what is empty.
func (m *maker) addSome(key attribute.Key, value string) {
	if value != "" {
		m.add(key, value)
	}
}

func (m *maker) peer(address, port attribute.Key, addr netip.AddrPort) {
	if addr.IsValid() {
		m.attrs = append(m.attrs, address.String(addr.Addr().Unmap().String()), port.Int(int(addr.Port())))
	}
}

// failed says that the request is an error of this side.
func failed(s *proxy.Span) bool { return s.Status >= 500 || failing(s.Reason) }

// failing says that a request that ended for this reason is an error whatever its status: the answer may have begun well.
func failing(r proxy.Reason) bool {
	switch r {
	case proxy.ReasonUpstreamReset, proxy.ReasonUpstreamHead, proxy.ReasonServerTimeout, proxy.ReasonConnect, proxy.ReasonUpstreamTLS, proxy.ReasonInternal, proxy.ReasonShutdown:
		return true
	}
	return false
}

// errorType is the status of the endpoint's answer, or why there is none that is whole.
func errorType(r proxy.Reason, status int) string {
	if r == proxy.ReasonOK {
		return strconv.Itoa(status)
	}
	return r.String()
}

// remote is a position in a trace that the client sent.
func remote(c *tracecontext.Context, state []byte) trace.SpanContext {
	cfg := trace.SpanContextConfig{TraceID: trace.TraceID(c.Trace), SpanID: trace.SpanID(c.Span), Remote: true}
	if c.Sampling == tracecontext.Sampled {
		cfg.TraceFlags = trace.FlagsSampled
	}
	cfg.TraceFlags = cfg.TraceFlags.WithRandom(c.Random)
	if len(state) > 0 {
		cfg.TraceState, _ = trace.ParseTraceState(string(state)) // what the SDK does not take is left out
	}
	return trace.NewSpanContext(cfg)
}

// knownMethod is the method as spans name it, and as it was where that is another name.
func knownMethod(m string) (method, original string) {
	switch m {
	case "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE":
		return m, ""
	}
	return semconv.HTTPRequestMethodOther.Value.AsString(), m
}

func scheme(secure bool) string {
	if secure {
		return "https"
	}
	return "http"
}

func version(spoken protocol.Protocol, minor int) string {
	switch {
	case spoken == protocol.HTTP2:
		return "2"
	case minor == 0:
		return "1.0"
	}
	return "1.1"
}

// authority splits a host with a port, which is that of the scheme where none was sent.
func authority(host string, secure bool) (name string, port int) {
	if host == "" {
		return "", 0
	}
	name, digits, err := net.SplitHostPort(host)
	if err == nil {
		port, _ = strconv.Atoi(digits)
		return name, port
	}
	if secure {
		return strings.Trim(host, "[]"), 443
	}
	return strings.Trim(host, "[]"), 80
}

// target splits a request target, of which only path and query are of interest.
func target(t string) (path, query string) {
	if _, rest, ok := strings.Cut(t, "://"); ok && !strings.HasPrefix(t, "/") {
		if slash := strings.IndexAny(rest, "/?"); slash >= 0 {
			t = rest[slash:]
		} else {
			t = "/"
		}
	}
	path, query, _ = strings.Cut(t, "?")
	if path == "" {
		path = "/"
	}
	return path, query
}

// text is what somebody sent, as a string that OTLP takes: one that is not UTF-8 would cost the whole batch.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }
