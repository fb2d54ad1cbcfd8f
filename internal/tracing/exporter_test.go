package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit/testotlp"
	"turnout/internal/tracing"
	"turnout/proxy"
)

// quick has the SDK export at once.
func quick(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
}

// start makes an Exporter that ends with the test; what it notifies of goes to the channel.
func start(t *testing.T, cfg tracing.Config) (*tracing.Exporter, <-chan error) {
	t.Helper()
	notes := make(chan error, 100)
	cfg.Notify = func(err error) { notes <- err }
	e, err := tracing.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.Close(ctx)
	})
	return e, notes
}

// record fills one request in.
func record(t *testing.T, q proxy.SpanQueue, fill func(s *proxy.Span)) {
	t.Helper()
	s := q.Claim()
	if s == nil {
		t.Fatal("the queue is full")
	}
	*s = proxy.Span{Status: 200}
	s.Trace.Trace[0], s.Trace.Span[0], s.Trace.Sampled = 1, 2, true
	s.Start = time.Unix(1_700_000_000, 5)
	if fill != nil {
		fill(s)
	}
	q.Publish()
}

// putText is Span.PutText of strings.
func putText(s *proxy.Span, method, host, target, sentPath, agent, state string) {
	s.PutText([]byte(method), []byte(host), []byte(target), []byte(sentPath), []byte(agent), []byte(state))
}

// TestProtocols: each way to speak to a collector gets spans there, with what they say of this process.
func TestProtocols(t *testing.T) {
	quick(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=router-1,service.version=mine")
	c := testotlp.Start(t)
	for i, cfg := range []tracing.Config{
		{Protocol: tracing.GRPC, Endpoint: c.GRPC}, {Protocol: tracing.HTTPProtobuf, Endpoint: c.HTTP + "/v1/traces"}, {Protocol: tracing.HTTPJSON, Endpoint: c.HTTP + "/v1/traces"},
	} {
		cfg.Version, cfg.Host = "v1", "box"
		e, _ := start(t, cfg)
		record(t, e.Open(), nil)
		s := c.Wait(t, i+1)[i]
		want := map[string]string{"service.name": "turnout", "service.version": "mine", "service.instance.id": "box", "host.name": "box", "k8s.pod.name": "router-1"}
		for k, v := range want {
			if s.Resource[k] != v {
				t.Errorf("%s is %q, want %q", k, s.Resource[k], v)
			}
		}
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := e.Stats(); got != (tracing.Stats{Exported: 1}) {
			t.Errorf("counted %+v", got)
		}
	}
	t.Setenv("OTEL_SERVICE_NAME", "edge")
	e, _ := start(t, tracing.Config{Endpoint: c.HTTP + "/v1/traces"})
	record(t, e.Open(), nil)
	if s := c.Wait(t, 4)[3]; s.Resource["service.name"] != "edge" {
		t.Errorf("the service is called %q", s.Resource["service.name"])
	}
}

// TestCloseExportsTheRest: what was recorded before is not lost, whatever the delays are.
func TestCloseExportsTheRest(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	c := testotlp.Start(t)
	e, _ := start(t, tracing.Config{Endpoint: c.HTTP + "/v1/traces", Delay: time.Hour})
	q := e.Open()
	for range 300 {
		record(t, q, nil)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.Stats(); got != (tracing.Stats{Exported: 300}) {
		t.Errorf("counted %+v", got)
	}
}

// TestHalfFullRingsAreEmptied: requests gather until there are many.
func TestHalfFullRingsAreEmptied(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	e, _ := start(t, tracing.Config{Endpoint: c.HTTP + "/v1/traces", Delay: time.Hour, Slots: 16})
	e.Open()
	q := e.Open()
	deadline := time.Now().Add(20 * time.Second)
	for range 100 {
		s := q.Claim()
		for ; s == nil; s = q.Claim() {
			if time.Now().After(deadline) {
				t.Fatal("nobody empties the ring")
			}
			runtime.Gosched()
		}
		s.Trace.Trace[0], s.Trace.Span[0] = 1, 3
		q.Publish()
	}
	c.Wait(t, 100-15)
}

// TestFrozenCollectorDelaysNobody: who records never waits; what there is no room for is counted, and the rest gets there later.
func TestFrozenCollectorDelaysNobody(t *testing.T) {
	quick(t)
	for name, value := range map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5", "OTEL_BSP_EXPORT_TIMEOUT": "60000", "OTEL_EXPORTER_OTLP_TIMEOUT": "60000"} {
		t.Setenv(name, value)
	}
	for _, protocol := range []tracing.Protocol{tracing.GRPC, tracing.HTTPProtobuf} {
		c := testotlp.Start(t)
		c.Freeze()
		cfg := tracing.Config{Protocol: protocol, Endpoint: c.GRPC, Slots: 16, Delay: time.Millisecond}
		if protocol != tracing.GRPC {
			cfg.Endpoint = c.HTTP + "/v1/traces"
		}
		e, _ := start(t, cfg)
		q := e.Open()
		record(t, q, nil)
		<-c.Asked() // from now on the SDK waits
		refused := 0
		for range 10_000 {
			s := q.Claim()
			if s == nil {
				refused++
				continue
			}
			s.Trace.Trace[0], s.Trace.Span[0] = 1, 3
			q.Publish()
		}
		if got := e.Stats(); refused < 9000 || got.Dropped != uint64(refused) || got.Exported != 0 {
			t.Errorf("%d were refused, counted %+v", refused, got)
		}
		c.Thaw()
		c.Wait(t, 10_001-refused)
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := e.Stats(); got.Exported+got.Dropped != 10_001 || got.Failed != 0 {
			t.Errorf("counted %+v at the end", got)
		}
	}
}

// TestFrozenCollectorDelaysNoStop: the end waits no longer than it may.
func TestFrozenCollectorDelaysNoStop(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	c.Freeze()
	e, _ := start(t, tracing.Config{Protocol: tracing.GRPC, Endpoint: c.GRPC})
	record(t, e.Open(), nil)
	<-c.Asked()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}

// TestFailuresAreToldOnce: a collector that refuses is one line, and one when it takes spans again.
func TestFailuresAreToldOnce(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	c.Refuse(true)
	e, notes := start(t, tracing.Config{Endpoint: c.HTTP + "/v1/traces"})
	q := e.Open()
	for range 5 {
		record(t, q, nil)
		<-c.Asked()
	}
	c.Refuse(false)
	record(t, q, nil)
	c.Wait(t, 1)
	if err := <-notes; err == nil || !strings.Contains(err.Error(), "cannot export spans") || !strings.Contains(err.Error(), "the test refuses spans") {
		t.Errorf("notified of %v", err)
	}
	if err := <-notes; err != nil || len(notes) != 0 {
		t.Errorf("notified of %v and %d more", err, len(notes))
	}
	if got := e.Stats(); got != (tracing.Stats{Exported: 1, Failed: 5}) {
		t.Errorf("counted %+v", got)
	}
}

// TestSpans: names, attributes, times and relations, by the semantic conventions.
func TestSpans(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	e, _ := start(t, tracing.Config{Endpoint: c.HTTP + "/v1/traces"})
	q := e.Open()
	at := time.Unix(1_700_000_000, 5)
	record(t, q, func(s *proxy.Span) {
		s.Parent.Trace, s.Parent.Span[0], s.Parent.Sampling = s.Trace.Trace, 9, 2
		s.Client, s.Total = netip.MustParseAddrPort("192.0.2.7:4711"), 10*time.Millisecond
		s.Namespace, s.Route, s.Path, s.Status, s.Reason, s.Minor = "shop", "front", "/app", 502, proxy.ReasonUpstreamReset, 1
		putText(s, "GET", "www.example.com:8443", "/app/x?a=1&access_token=hunter2", "/x", "curl/8", "a=1")
		s.Secure, s.Made = true, 2
		s.Attempts[0] = proxy.SpanAttempt{Start: time.Millisecond, End: 2 * time.Millisecond, Server: "pod:a", Endpoint: netip.MustParseAddrPort("10.0.0.1:8080"), Fault: proxy.FaultConnect}
		s.Attempts[1] = proxy.SpanAttempt{Start: 2 * time.Millisecond, End: 10 * time.Millisecond, Server: "pod:b", Endpoint: netip.MustParseAddrPort("[2001:db8::1]:443"), Secure: true, Status: 200, Spoken: 1}
		s.Attempts[0].ID[0], s.Attempts[1].ID[0] = 3, 4
	})
	spans := c.Wait(t, 3)
	slices.SortFunc(spans, func(a, b testotlp.Span) int { return strings.Compare(a.ID, b.ID) })
	want := []string{
		"SERVER GET /app 02 below 09 remote a=1 0s-10ms error client.address=192.0.2.7 client.port=4711 error.type=upstream-reset http.request.method=GET http.response.status_code=502 http.route=/app " +
			"k8s.namespace.name=shop network.protocol.version=1.1 server.address=www.example.com server.port=8443 turnout.reason=upstream-reset turnout.route=front " +
			"url.path=/app/x url.query=a=1&access_token=REDACTED url.scheme=https user_agent.original=curl/8",
		"CLIENT GET 03 below 02 a=1 1ms-2ms error error.type=connect http.request.method=GET network.peer.address=10.0.0.1 network.peer.port=8080 server.address=10.0.0.1 server.port=8080 " +
			"turnout.server=pod:a url.full=http://10.0.0.1:8080/x?a=1&access_token=REDACTED",
		"CLIENT GET 04 below 02 a=1 2ms-10ms error error.type=upstream-reset http.request.method=GET http.request.resend_count=1 http.response.status_code=200 " +
			"network.peer.address=2001:db8::1 network.peer.port=443 network.protocol.version=2 server.address=2001:db8::1 server.port=443 turnout.server=pod:b " +
			"url.full=https://[2001:db8::1]:443/x?a=1&access_token=REDACTED",
	}
	for i, s := range spans {
		if got := line(s, at); got != want[i] || s.Trace != "01000000000000000000000000000000" {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
}

// line is a span as the tests write it; ids by their first byte, times since at.
func line(s testotlp.Span, at time.Time) string {
	out := fmt.Sprintf("%s %s %.2s", s.Kind, s.Name, s.ID)
	if s.Parent != "" {
		out += " below " + s.Parent[:2]
	}
	if s.Remote {
		out += " remote"
	}
	for _, l := range s.Links {
		out += " link " + l[33:35]
	}
	if s.State != "" {
		out += " " + s.State
	}
	out += fmt.Sprintf(" %v-%v", s.Start.Sub(at), s.End.Sub(at))
	if s.Error {
		out += " error"
	}
	for _, k := range slices.Sorted(maps.Keys(s.Attributes)) {
		out += " " + k + "=" + s.Attributes[k]
	}
	return out
}

// TestOddSpans: what clients send that is odd, and how requests end that never got to an endpoint.
func TestOddSpans(t *testing.T) {
	quick(t)
	c := testotlp.Start(t)
	e, _ := start(t, tracing.Config{Endpoint: c.HTTP + "/v1/traces"})
	q := e.Open()
	for i, x := range []struct {
		fill func(s *proxy.Span)
		want string
	}{
		{func(s *proxy.Span) { // no route, no host, an unknown method, no UTF-8
			s.Status, s.Reason = 503, proxy.ReasonNoRoute
			putText(s, "BREW", "", "/\xff?\xff=\xfe", "", "\xc3(", "")
		}, "SERVER HTTP 02 0s-0s error error.type=no-route http.request.method=_OTHER http.request.method_original=BREW http.response.status_code=503 network.protocol.version=1.0 " +
			"turnout.reason=no-route url.path=/\ufffd url.query=\ufffd=\ufffd url.scheme=http user_agent.original=\ufffd("},
		{func(s *proxy.Span) { // a link, the client's fault, an absolute target
			s.Link.Trace[0], s.Link.Span[0] = 7, 8
			s.Status, s.Reason, s.Spoken = 421, proxy.ReasonMisdirected, 1
			putText(s, "GET", "[2001:db8::1]", "http://user:secret@x?q", "", "", "")
		}, "SERVER GET 02 link 08 0s-0s http.request.method=GET http.response.status_code=421 network.protocol.version=2 server.address=2001:db8::1 server.port=80 turnout.reason=misdirected " +
			"url.path=/ url.query=q url.scheme=http"},
		{func(s *proxy.Span) { // the client left
			s.Status, s.Reason = 0, proxy.ReasonClientGone
			putText(s, "GET", "a", "*", "", "", "")
		}, "SERVER GET 02 0s-0s http.request.method=GET network.protocol.version=1.0 server.address=a server.port=80 turnout.reason=client-gone url.path=* url.scheme=http"},
		{func(s *proxy.Span) { // 5xx of the pod; a tracestate that cannot be
			s.Parent.Trace, s.Parent.Span[0] = s.Trace.Trace, 9
			s.Status, s.Namespace, s.Route = 500, "ns", "r"
			putText(s, "POST", "a", "/", "", "", "=,=")
		}, "SERVER POST / 02 below 09 remote 0s-0s error error.type=500 http.request.method=POST http.response.status_code=500 http.route=/ k8s.namespace.name=ns network.protocol.version=1.0 " +
			"server.address=a server.port=80 turnout.reason=ok turnout.route=r url.path=/ url.scheme=http"},
	} {
		record(t, q, x.fill)
		if got := line(c.Wait(t, i+1)[i], time.Unix(1_700_000_000, 5)); got != x.want {
			t.Errorf("got  %s\nwant %s", got, x.want)
		}
	}
}
