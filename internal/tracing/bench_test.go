package tracing_test

import (
	"net/netip"
	"testing"

	"turnout/internal/testkit/testotlp"
	"turnout/internal/tracing"
	"turnout/proxy"
)

// BenchmarkExport is what a sampled request with one attempt costs beside the loop: its spans, their export over gRPC, and a collector in the same
// process.
func BenchmarkExport(b *testing.B) {
	c := testotlp.Start(b)
	e, err := tracing.New(tracing.Config{Protocol: tracing.GRPC, Endpoint: c.GRPC})
	if err != nil {
		b.Fatal(err)
	}
	q := e.Open()
	b.ReportAllocs()
	for b.Loop() {
		s := q.Claim()
		for s == nil { // the benchmark is faster than the export
			s = q.Claim()
		}
		s.Trace.Trace[0], s.Trace.Span[0], s.Status, s.Namespace, s.Route, s.Made = 1, 2, 200, "ns", "app", 1
		s.PutText([]byte("GET"), []byte("app.test"), []byte("/path?query"), nil, []byte("curl/8"), nil)
		s.Attempts[0] = proxy.SpanAttempt{Server: "pod:a:app:http:10.0.0.1:8080", Endpoint: netip.MustParseAddrPort("10.0.0.1:8080"), Status: 200}
		s.Attempts[0].ID[0] = 3
		q.Publish()
	}
	if err := e.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
