package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"turnout/internal/spare"
	"turnout/internal/wire/tracecontext"
)

// TraceRef names what a request is in a trace, for logs and exemplars. The zero value is a request that is not traced.
type TraceRef struct {
	Trace   tracecontext.TraceID
	Span    tracecontext.SpanID // the router's own, of the request
	Sampled bool                // spans are recorded of it
}

// TraceContexts says what the trace context of clients counts for.
type TraceContexts uint8

// What it can count for.
const (
	TraceTrust  TraceContexts = iota // the request belongs to the client's trace
	TraceLink                        // it begins a trace, which is linked to the client's
	TraceIgnore                      // it begins a trace
)

// TraceFormats are fields in which the context of a trace is read from requests and sent to endpoints. Fields of others are passed on as they are.
type TraceFormats uint8

// The formats. Of several in a request the first of these counts.
const (
	TraceW3C     TraceFormats = 1 << iota // traceparent, tracestate
	TraceB3                               // b3
	TraceB3Multi                          // x-b3-traceid, x-b3-spanid, x-b3-sampled
)

// TracingConfig is what NewTracing needs.
type TracingConfig struct {
	Formats       TraceFormats  // 0 = contexts are neither read nor sent
	Plain, Secure TraceContexts // by the port that a client came to
	Ratio         float64       // of traces that are sampled, 0 to 1
	ParentBased   bool          // the decision of a client counts, where its context does; Ratio is for traces that begin here

	// ClientRate is how many requests a second are sampled because a client says so, beyond those that Ratio has sampled; of the rest
	// Ratio decides. 0 = any number.
	ClientRate int

	// Open makes the queue for the spans of one worker. It is called by NewWorker, once for each.
	Open func() SpanQueue
}

// Tracing is how requests are traced. It is shared by all workers.
type Tracing struct {
	cfg   TracingConfig
	bound uint64       // trace ids below it are sampled, see sampledID
	every int64        // ns between two samples by the word of clients; 0 = any number
	last  atomic.Int64 // when the latest of these would have come at that pace, ns since 1970
}

// SpanQueue takes what is recorded of the requests of one worker. It never blocks.
type SpanQueue interface {
	// Claim gives the Span to fill in, nil when the queue is full. Publish follows, before the next Claim.
	Claim() *Span
	// Publish hands over what was claimed.
	Publish()
}

// NewTracing checks the configuration.
func NewTracing(cfg TracingConfig) (*Tracing, error) {
	switch {
	case cfg.Open == nil:
		return nil, errors.New("cannot trace requests: Open is required")
	case !(cfg.Ratio >= 0 && cfg.Ratio <= 1):
		return nil, fmt.Errorf("cannot trace requests: the ratio is %v, allowed: 0 to 1", cfg.Ratio)
	case cfg.ClientRate < 0:
		return nil, fmt.Errorf("cannot trace requests: the rate of clients is %d, allowed: 0 (any) and above", cfg.ClientRate)
	}
	t := &Tracing{cfg: cfg, bound: uint64(cfg.Ratio * (1 << 63))}
	if cfg.ClientRate > 0 {
		t.every = 1e9 / int64(cfg.ClientRate)
	}
	return t, nil
}

// sampledID is the decision by the trace id: the same as that of the sampler traceidratio of OpenTelemetry, so that services with one ratio
// sample the same traces.
func (t *Tracing) sampledID(id tracecontext.TraceID) bool {
	return binary.BigEndian.Uint64(id[8:])>>1 < t.bound
}

// grant says whether one more request may be sampled because a client says so; now is in ns since 1970. What was not used in the last second
// may be used at once.
func (t *Tracing) grant(now int64) bool {
	for t.every > 0 {
		last := t.last.Load()
		next := max(last, now-1e9) + t.every
		if next > now {
			return false
		}
		if t.last.CompareAndSwap(last, next) {
			break
		}
	}
	return true
}

// maxOpenSpans is how many requests of a worker that are sampled run at the same time; others are not sampled.
const maxOpenSpans = 8192

// tracer is the tracing of one worker.
type tracer struct {
	*Tracing // nil: requests are not traced
	queue    SpanQueue
	rng      *rand.ChaCha8
	found    clientTrace          // of the request at hand
	free     spare.List[openSpan] // memory of requests that are sampled
	open     int                  // how many of them run
}

// newTracer makes ids from a seed, 0: from another one each time. They are not made by the generator that chooses endpoints: everybody sees
// ids of traces, and nobody is to know what is chosen next.
func newTracer(t *Tracing, seed uint64, rehearse bool) tracer {
	if t == nil {
		return tracer{}
	}
	var key [32]byte
	for i := 0; i < len(key); i += 8 {
		word := seed + uint64(i)
		if seed == 0 {
			word = rand.Uint64()
		}
		binary.LittleEndian.PutUint64(key[i:], word)
	}
	r := tracer{Tracing: t, rng: rand.NewChaCha8(key)}
	if !rehearse {
		r.queue = t.cfg.Open()
	}
	return r
}

// spanID makes the id of a span.
func (t *tracer) spanID() (id tracecontext.SpanID) {
	for id == (tracecontext.SpanID{}) {
		binary.BigEndian.PutUint64(id[:], t.rng.Uint64())
	}
	return id
}

// traceID makes the id of a trace.
func (t *tracer) traceID() (id tracecontext.TraceID) {
	binary.BigEndian.PutUint64(id[:8], t.rng.Uint64())
	for binary.BigEndian.Uint64(id[8:]) == 0 {
		binary.BigEndian.PutUint64(id[8:], t.rng.Uint64())
	}
	return id
}

// chance is a decision that no id has a say in.
func (t *tracer) chance() bool { return t.rng.Uint64()>>1 < t.bound }
