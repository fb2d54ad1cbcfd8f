//go:build !race

package h1_test

import (
	"net"
	"strings"
	"testing"

	"turnout/internal/testkit"
	"turnout/proxy"
)

// oneSpan is a queue whose taker is always ready.
type oneSpan struct {
	span proxy.Span
	n    int
}

func (q *oneSpan) Claim() *proxy.Span { return &q.span }
func (q *oneSpan) Publish()           { q.n++ }

// TestNoAllocationForTraces: neither does a request that belongs to a trace cost one, sampled or not.
func TestNoAllocationForTraces(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	for name, flag := range map[string]string{"sampled": "01", "not sampled": "00", "invalid": "xx"} {
		t.Run(name, func(t *testing.T) {
			q := &oneSpan{}
			tracing, err := proxy.NewTracing(proxy.TracingConfig{
				Formats: proxy.TraceW3C | proxy.TraceB3 | proxy.TraceB3Multi, ParentBased: true, Open: func() proxy.SpanQueue { return q },
			})
			if err != nil {
				t.Fatal(err)
			}
			r := testkit.StartRouter(t, 1, discard{}, func(c *proxy.Config) { c.Tracing = tracing })
			r.Publish(t, testkit.Spec("app.test", testkit.Answering(t, answer)))
			c, err := net.Dial("tcp", r.Addr.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			request := []byte("GET / HTTP/1.1\r\nHost: app.test\r\nUser-Agent: test\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-" + flag +
				"\r\nTracestate: a=1,b=" + strings.Repeat("x", 250) + ",c=" + strings.Repeat("y", 250) + ",d=" + strings.Repeat("z", 100) + "\r\nb3: 0\r\n\r\n")
			trip, _ := warmed(t, c, request)
			if got := testing.AllocsPerRun(1000, trip); got != 0 {
				t.Errorf("%v allocations per request, want 0", got)
			}
			if (q.n > 0) != (name == "sampled") {
				t.Errorf("%d spans", q.n)
			}
		})
	}
}
