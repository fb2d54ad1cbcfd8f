package tracing

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"turnout/proxy"
)

// TestFullAfterDrain: a loop that records as fast as spans are made finds a place in its ring at once, although the ring never was less than half full.
func TestFullAfterDrain(t *testing.T) {
	const slots, spans = 16, 100
	made := make(chan struct{}, spans)
	e := &Exporter{
		cfg:  Config{Slots: slots, Delay: time.Hour},
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	q := e.Open()
	publish := func() bool {
		s := q.Claim()
		if s == nil {
			return false
		}
		*s = proxy.Span{Status: 200}
		s.Trace.Trace[0], s.Trace.Span[0] = 1, 2
		q.Publish()
		return true
	}
	left := spans
	e.maker = maker{out: func(sdktrace.ReadOnlySpan) {
		for left > 0 && publish() {
			left--
		}
		made <- struct{}{}
	}, of: &origin{resource: resource.Empty(), limits: sdktrace.NewSpanLimits(), scope: instrumentation.Scope{Name: "turnout"}}}
	for left > 0 && publish() {
		left--
	}
	go e.run()
	defer func() { close(e.stop); <-e.done }()
	patience := time.After(20 * time.Second)
	for i := range spans - slots {
		select {
		case <-made:
		case <-patience:
			t.Fatalf("%d spans, then the rings were left alone", i)
		}
	}
}
