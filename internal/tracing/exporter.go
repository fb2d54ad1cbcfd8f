// Package tracing makes spans of OpenTelemetry of what event loops recorded of requests, and exports them by OTLP.
//
//	loop ─ proxy.Span ─► ring ─┐
//	loop ─ proxy.Span ─► ring ─┴─► one goroutine ─ spans ─► batch processor of the SDK ─► collector
//
// Each loop has a ring of its own, which is bounded: when the collector is slow or frozen the processor's queue fills, then the goroutine waits, then
// the rings fill, and what the loops record besides is dropped and counted. No request ever waits. What to sample was decided before (proxy.Tracing);
// names and attributes are those of the semantic conventions for HTTP.
//
// The SDK reads variables of the environment that are about the processor, limits of spans, the resource and the connection with the collector;
// docs/tracing.md has them.
package tracing

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"turnout/proxy"
)

// Protocol is how the collector is spoken to.
type Protocol uint8

// The protocols of OTLP.
const (
	HTTPProtobuf Protocol = iota
	HTTPJSON
	GRPC
)

// Config is what an Exporter needs. The zero value exports to a collector on this machine.
type Config struct {
	Protocol Protocol
	Endpoint string // URL of the collector, used as it is; "" = the default of the protocol on localhost
	Service  string // name of the service where the environment has none; "" = turnout
	Version  string // of the build
	Host     string // name of the machine; "" = spans do not say it
	// Slots is how many requests each event loop can have recorded before spans are made of them, rounded up to a power of two. 0 = 512.
	Slots int
	// Delay is how long requests gather before spans are made of them, unless a ring is half full. 0 = 100 ms.
	Delay time.Duration
	// Notify is called with what is wrong with the export: the first time that it fails and, by nil, the first time that it succeeds again; of other
	// errors of the SDK one in 10 s. Any goroutine may call it. nil = nobody is.
	Notify func(err error)
}

// Stats are the counters of an Exporter since it was made.
type Stats struct {
	Exported uint64 // spans that the collector took
	Failed   uint64 // spans of batches that it did not take, or not whole
	Dropped  uint64 // sampled requests of which nothing was exported, because it was too slow
}

// Exporter takes what event loops record. All its methods may be called from any goroutine.
type Exporter struct {
	cfg       Config
	processor sdktrace.SpanProcessor
	maker     maker

	mu    sync.Mutex
	rings []*ring

	asleep atomic.Bool   // the goroutine waits on wake
	wake   chan struct{} // one slot
	hurry  chan struct{} // one slot: a ring is half full
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when the goroutine has ended
	once   sync.Once

	exported, failed atomic.Uint64
	failing          atomic.Bool
	complained       atomic.Int64 // when Notify was last called for an error of the SDK, ns since 1970
}

// New starts an Exporter and its goroutine, which Close ends. The collector need not be there.
func New(cfg Config) (*Exporter, error) {
	if cfg.Service == "" {
		cfg.Service = "turnout"
	}
	if cfg.Slots <= 0 {
		cfg.Slots = 512
	}
	if cfg.Delay <= 0 {
		cfg.Delay = 100 * time.Millisecond
	}
	if cfg.Notify == nil {
		cfg.Notify = func(error) {}
	}
	e := &Exporter{cfg: cfg, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(e.complain)) // the SDK knows no other way
	otel.SetLogger(funcr.New(func(_, args string) { e.complain(fmt.Errorf("%s", args)) }, funcr.Options{}))
	out, err := newClient(&cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot export traces: %w", err)
	}
	e.processor = sdktrace.NewBatchSpanProcessor(&counted{SpanExporter: out, e: e}, sdktrace.WithBlocking())
	e.maker = maker{out: e.processor.OnEnd, of: &origin{
		resource: about(&cfg), limits: sdktrace.NewSpanLimits(), scope: instrumentation.Scope{Name: "turnout", Version: cfg.Version, SchemaURL: semconv.SchemaURL},
	}}
	go e.run()
	return e, nil
}

// newClient makes the SDK's exporter, which connects when there is something to export.
func newClient(cfg *Config) (sdktrace.SpanExporter, error) {
	if cfg.Protocol == GRPC {
		var options []otlptracegrpc.Option
		if cfg.Endpoint != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(cfg.Endpoint))
		}
		return otlptracegrpc.New(context.Background(), options...)
	}
	encoding := otlptracehttp.EncodingProtobuf
	if cfg.Protocol == HTTPJSON {
		encoding = otlptracehttp.EncodingJSON
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEncoding(encoding)}
	if cfg.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(cfg.Endpoint))
	}
	return otlptracehttp.New(context.Background(), options...)
}

// about describes this process. What the environment says wins.
func about(cfg *Config) *resource.Resource {
	own := resource.NewSchemaless(semconv.ServiceName(cfg.Service), semconv.ServiceVersion(cfg.Version))
	if cfg.Host != "" {
		own, _ = resource.Merge(own, resource.NewSchemaless(semconv.HostName(cfg.Host), semconv.ServiceInstanceID(cfg.Host)))
	}
	detected, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		otel.Handle(err) // what could be read is there
	}
	if all, err := resource.Merge(own, detected); err == nil {
		return all
	}
	return own
}

// Open makes the queue of an event loop. It is proxy.TracingConfig.Open.
func (e *Exporter) Open() proxy.SpanQueue {
	size := 1
	for size < e.cfg.Slots {
		size *= 2
	}
	r := &ring{slots: make([]proxy.Span, size), wake: e.rouse, hurry: func() { tell(e.hurry) }}
	e.mu.Lock()
	e.rings = append(e.rings, r)
	e.mu.Unlock()
	return r
}

// queues are all rings.
func (e *Exporter) queues() []*ring {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rings // it only grows
}

// rouse tells the goroutine that there is something to do.
func (e *Exporter) rouse() {
	if e.asleep.Load() && e.asleep.CompareAndSwap(true, false) {
		tell(e.wake)
	}
}

// tell puts a value into a channel of one slot, unless there is one.
func tell(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// run is the goroutine: sleep until there is something, let requests gather for Delay, make spans of them.
func (e *Exporter) run() {
	defer close(e.done)
	gather := time.NewTimer(e.cfg.Delay)
	defer gather.Stop()
	for {
		e.drain()
		e.asleep.Store(true)
		if e.waiting() { // recorded before it could see asleep
			e.asleep.Store(false)
		} else {
			select {
			case <-e.wake:
			case <-e.stop:
				e.drain()
				return
			}
		}
		if e.pressing() { // drain stopped at its bound, and no crossing of the half will tell
			continue
		}
		gather.Reset(e.cfg.Delay)
		select {
		case <-gather.C:
		case <-e.hurry:
		case <-e.stop:
			e.drain()
			return
		}
	}
}

// waiting says that there is something in a ring.
func (e *Exporter) waiting() bool {
	for _, r := range e.queues() {
		if r.oldest() != nil {
			return true
		}
	}
	return false
}

// pressing says that a ring is half full, or more.
func (e *Exporter) pressing() bool {
	for _, r := range e.queues() {
		if r.used() >= r.half() {
			return true
		}
	}
	return false
}

// drain makes spans of what is in the rings, at most as many of each as it has slots.
func (e *Exporter) drain() {
	for _, r := range e.queues() {
		for range r.slots { // then it is another one's turn
			s := r.oldest()
			if s == nil {
				break
			}
			e.maker.spans(s)
			r.release()
		}
	}
}

// Stats returns the counters as they are now.
func (e *Exporter) Stats() Stats {
	s := Stats{Exported: e.exported.Load(), Failed: e.failed.Load()}
	for _, r := range e.queues() {
		s.Dropped += r.dropped.Load()
	}
	return s
}

// Close exports what is left, until ctx is done. It may be called more than once.
func (e *Exporter) Close(ctx context.Context) error {
	e.once.Do(func() { close(e.stop) })
	select {
	case <-e.done:
	case <-ctx.Done(): // the collector is slow; the SDK tells the same of its own
	}
	if err := e.processor.Shutdown(ctx); err != nil {
		return fmt.Errorf("cannot export the last spans: %w", err)
	}
	return nil
}

// complain passes an error of the SDK on, unless there was one a moment ago.
func (e *Exporter) complain(err error) {
	now, last := time.Now().UnixNano(), e.complained.Load()
	if now-last >= int64(10*time.Second) && e.complained.CompareAndSwap(last, now) {
		e.cfg.Notify(fmt.Errorf("OpenTelemetry: %w", err))
	}
}

// counted is an exporter of the SDK, with what comes of it.
type counted struct {
	sdktrace.SpanExporter
	e *Exporter
}

// ExportSpans implements sdktrace.SpanExporter.
func (c *counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := c.SpanExporter.ExportSpans(ctx, spans); err != nil {
		c.e.failed.Add(uint64(len(spans)))
		if !c.e.failing.Swap(true) {
			c.e.cfg.Notify(fmt.Errorf("cannot export spans: %w", err))
		}
		return nil // it is counted, and Notify was called
	}
	c.e.exported.Add(uint64(len(spans)))
	if c.e.failing.Swap(false) {
		c.e.cfg.Notify(nil)
	}
	return nil
}
