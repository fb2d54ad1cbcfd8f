// Package testotlp is a collector for tests: it takes traces by OTLP over gRPC and HTTP, with the messages and the service as OpenTelemetry publishes them.
package testotlp

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Span is one that the collector took, with what tests look at. Ids are in hexadecimal digits.
type Span struct {
	Trace, ID, Parent, State string
	Name, Kind               string // Kind is SERVER or CLIENT
	Error                    bool
	Attributes, Resource     map[string]string
	Links                    []string // as TRACE-SPAN
	Start, End               time.Time
	Remote                   bool // the parent is in another process
}

// Collector is a collector on both protocols.
type Collector struct {
	GRPC, HTTP string // URLs

	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	spans    []Span
	fields   metadata.MD   // of the last export that it took, names in lower case
	encoding string        // of the last export
	changed  chan struct{} // closed when spans come
	frozen   chan struct{} // closed when it is not frozen
	refuses  bool
	asked    chan struct{} // an export has begun; one slot
}

// Start starts a Collector that ends with the test and is spoken to in the clear.
func Start(t testing.TB) *Collector {
	t.Helper()
	return start(t, nil)
}

// StartTLS does the same for one that is spoken to by TLS alone, by a configuration that it does not change.
func StartTLS(t testing.TB, secure *tls.Config) *Collector {
	t.Helper()
	return start(t, secure)
}

func start(t testing.TB, secure *tls.Config) *Collector {
	t.Helper()
	c := &Collector{changed: make(chan struct{}), frozen: make(chan struct{}), asked: make(chan struct{}, 1)}
	close(c.frozen)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme, options := "http://", []grpc.ServerOption{grpc.StatsHandler(encodings{c})}
	if secure != nil {
		scheme, options = "https://", append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	server := grpc.NewServer(options...)
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	web := httptest.NewUnstartedServer(http.HandlerFunc(c.serveHTTP))
	if secure != nil {
		web.TLS = secure.Clone()
		web.StartTLS()
	} else {
		web.Start()
	}
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	t.Cleanup(c.Thaw) // before them
	c.GRPC, c.HTTP = scheme+listener.Addr().String(), web.URL
	return c
}

// Freeze has it answer nobody until Thaw, though it takes connections.
func (c *Collector) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = make(chan struct{})
}

// Thaw ends Freeze.
func (c *Collector) Thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.frozen:
	default:
		close(c.frozen)
	}
}

// Refuse has it refuse everything, for good reasons that do not change by themselves.
func (c *Collector) Refuse(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = yes
}

// Asked gets a value when an export has begun.
func (c *Collector) Asked() <-chan struct{} { return c.asked }

// Export implements collector.TraceServiceServer.
func (c *Collector) Export(ctx context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	c.mu.Lock()
	frozen, refuses := c.frozen, c.refuses
	c.mu.Unlock()
	select {
	case <-frozen:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if refuses {
		return nil, status.Error(codes.InvalidArgument, "the test refuses spans")
	}
	fields, _ := metadata.FromIncomingContext(ctx)
	c.take(request, fields)
	return &collector.ExportTraceServiceResponse{}, nil
}

// encodings keeps in which encoding messages of gRPC come, which they are taken out of before the service gets them.
type encodings struct{ c *Collector }

func (e encodings) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (e encodings) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (e encodings) HandleConn(context.Context, stats.ConnStats)                       {}

func (e encodings) HandleRPC(_ context.Context, s stats.RPCStats) {
	if head, ok := s.(*stats.InHeader); ok {
		e.c.encoded(head.Compression)
	}
}

func (c *Collector) encoded(encoding string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encoding = encoding
}

// Encoding is that of the last export, "" for none.
func (c *Collector) Encoding() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.encoding
}

func (c *Collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	var from io.Reader = r.Body
	encoding := r.Header.Get("Content-Encoding")
	c.encoded(encoding)
	if encoding == "gzip" {
		plain, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from = plain
	}
	body, err := io.ReadAll(from)
	request := &collector.ExportTraceServiceRequest{}
	kind := r.Header.Get("Content-Type")
	switch {
	case r.URL.Path != "/v1/traces":
		http.NotFound(w, r)
		return
	case err != nil:
	case kind == "application/json": // ids are in hexadecimal digits, which protojson does not read: only that it is JSON is looked at
		err = (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, request)
	default:
		err = proto.Unmarshal(body, request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fields := metadata.MD{}
	for name, values := range r.Header {
		fields.Append(name, values...)
	}
	if _, err := c.Export(metadata.NewIncomingContext(r.Context(), fields), request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", kind)
}

func (c *Collector) take(request *collector.ExportTraceServiceRequest, fields metadata.MD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fields = fields
	for _, rs := range request.ResourceSpans {
		resource := attributes(rs.Resource.GetAttributes())
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans = append(c.spans, read(s, resource))
			}
		}
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

func read(s *trace.Span, resource map[string]string) Span {
	kinds := map[trace.Span_SpanKind]string{trace.Span_SPAN_KIND_SERVER: "SERVER", trace.Span_SPAN_KIND_CLIENT: "CLIENT"}
	span := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), State: s.TraceState, Name: s.Name, Kind: kinds[s.Kind],
		Error: s.Status.GetCode() == trace.Status_STATUS_CODE_ERROR, Attributes: attributes(s.Attributes), Resource: resource,
		Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
		Remote: s.Flags&uint32(trace.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK) != 0,
	}
	for _, l := range s.Links {
		span.Links = append(span.Links, hex.EncodeToString(l.TraceId)+"-"+hex.EncodeToString(l.SpanId))
	}
	return span
}

func attributes(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			all[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			all[kv.Key] = strconv.FormatInt(v.IntValue, 10)
		default:
			all[kv.Key] = fmt.Sprint(v)
		}
	}
	return all
}

// Field returns a field of the head of the last export that it took, "" for none; several are joined by commas.
func (c *Collector) Field(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.fields.Get(name), ",")
}

// Wait returns the spans that came so far once there are n of them.
func (c *Collector) Wait(t testing.TB, n int) []Span {
	t.Helper()
	patience := time.NewTimer(30 * time.Second)
	defer patience.Stop()
	for {
		c.mu.Lock()
		spans, changed := c.spans, c.changed
		c.mu.Unlock()
		if len(spans) >= n {
			return spans
		}
		select {
		case <-changed:
		case <-patience.C:
			t.Fatalf("%d spans after 30 s, not %d", len(spans), n)
		}
	}
}
