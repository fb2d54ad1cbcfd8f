package proxy

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/routing"
	"turnout/routing/header"
	"turnout/routing/rewrite"
)

const (
	clientTraceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpanID  = "00f067aa0ba902b7"
	clientParent  = "00-" + clientTraceID + "-" + clientSpanID + "-"
)

// spans is a queue with room for so many.
type spans struct {
	room int
	all  []*Span
}

func (q *spans) Claim() *Span {
	if len(q.all) == q.room {
		return nil
	}
	q.all = append(q.all, new(Span))
	return q.all[len(q.all)-1]
}

func (q *spans) Publish() {}

// tracedRig is a rig whose requests are traced.
func tracedRig(t *testing.T, cfg TracingConfig, change func(c *Config, s *routing.RouteSpec)) (*rig, *spans) {
	t.Helper()
	q := &spans{room: 100}
	cfg.Open = func() SpanQueue { return q }
	tracing, err := NewTracing(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *Config, s *routing.RouteSpec) {
		c.Tracing = tracing
		if change != nil {
			change(c, s)
		}
	})
	r.pooled = true
	return r, q
}

var traceNames = []string{"traceparent", "tracestate", "b3", "x-b3-traceid", "x-b3-spanid", "x-b3-sampled", "x-b3-flags", "x-b3-parentspanid"}

// TestTraceOfEndpoints: what endpoints are sent of the trace, by what the client says and how its word counts. T, S are its ids, and t, s others; what
// follows "link" is linked.
func TestTraceOfEndpoints(t *testing.T) {
	always, never := TracingConfig{Formats: TraceW3C, Ratio: 1, ParentBased: true}, TracingConfig{Formats: TraceW3C, ParentBased: true}
	with := func(c TracingConfig, change func(c *TracingConfig)) TracingConfig {
		change(&c)
		return c
	}
	both := with(always, func(c *TracingConfig) { c.Formats |= TraceB3 | TraceB3Multi })
	b3 := with(always, func(c *TracingConfig) { c.Formats = TraceB3 })
	multi := with(always, func(c *TracingConfig) { c.Formats = TraceB3Multi })
	link := with(always, func(c *TracingConfig) { c.Plain = TraceLink })
	for _, c := range []struct {
		cfg    TracingConfig
		fields []string
		want   string
		parent string // of the span: its client's, "" = none; "no span" when it is not sampled
	}{
		{always, nil, "traceparent: 00-t-s-01", ""},
		{always, []string{"traceparent: P01"}, "traceparent: 00-T-s-01", "S"},
		{always, []string{"traceparent: P03"}, "traceparent: 00-T-s-03", "S"}, // the client knows that its id is random
		{always, []string{"traceparent: P00"}, "traceparent: 00-T-s-00", "no span"},
		{never, []string{"traceparent: P01"}, "traceparent: 00-T-s-01", "S"},
		{never, []string{"traceparent: P00"}, "traceparent: 00-T-s-00", "no span"},
		{never, nil, "traceparent: 00-t-s-00", "no span"},
		{with(never, func(c *TracingConfig) { c.ParentBased = false }), []string{"traceparent: P01"}, "traceparent: 00-T-s-00", "no span"},
		{with(always, func(c *TracingConfig) { c.ParentBased = false }), []string{"traceparent: P00"}, "traceparent: 00-T-s-01", "S"},
		{always, []string{"traceparent: P01", "traceparent: P01", "tracestate: a=1"}, "traceparent: 00-t-s-01", ""},
		{always, []string{"traceparent: Pff-"}, "traceparent: 00-t-s-01", ""},
		{always, []string{"tracestate: a=1"}, "traceparent: 00-t-s-01", ""},
		{always, []string{"tracestate: a=1", "traceparent: P01", "tracestate: b=2"}, "traceparent: 00-T-s-01, tracestate: a=1,b=2", "S a=1,b=2"},
		{always, []string{"traceparent: P01", "tracestate: A=1"}, "traceparent: 00-T-s-01", "S"},
		{always, []string{"traceparent: P01", "tracestate: a=1,x=" + strings.Repeat("x", 250) + ",y=" + strings.Repeat("y", 250) + ",b=" + strings.Repeat("z", 100)},
			"traceparent: 00-T-s-01, tracestate: a=1,x=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("z", 100), "S a=1,x=" + strings.Repeat("x", 250) + ",b=" + strings.Repeat("z", 100)},
		{link, []string{"traceparent: P01", "tracestate: a=1"}, "traceparent: 00-t-s-01", "link S"},
		{link, []string{"traceparent: P00"}, "traceparent: 00-t-s-01", "link S"},
		{with(link, func(c *TracingConfig) { c.Ratio = 0 }), []string{"traceparent: P01"}, "traceparent: 00-t-s-00", "no span"},
		{with(always, func(c *TracingConfig) { c.Plain = TraceIgnore }), []string{"traceparent: P00", "tracestate: a=1"}, "traceparent: 00-t-s-01", ""},
		{with(always, func(c *TracingConfig) { c.Secure = TraceIgnore }), []string{"traceparent: P01"}, "traceparent: 00-T-s-01", "S"}, // that is about the other port
		// Fields of formats that are not in use are the pod's business.
		{always, []string{"b3: T-S-0", "x-b3-flags: 1"}, "b3: T-S-0, x-b3-flags: 1, traceparent: 00-t-s-01", ""},
		{b3, []string{"b3: T-S-1", "traceparent: P00"}, "traceparent: P00, b3: T-s-1", "S"},
		{b3, []string{"b3: T-S-0"}, "b3: T-s-0", "no span"},
		{b3, []string{"b3: T-S"}, "b3: T-s-1", "S"},
		{b3, []string{"b3: 0"}, "b3: t-s-0", "no span"},
		{b3, []string{"b3: T-S-1", "b3: T-S-1"}, "b3: t-s-1", ""},
		{multi, []string{"x-b3-traceid: T", "x-b3-spanid: S", "x-b3-parentspanid: S", "x-b3-flags: 1"}, "x-b3-traceid: T, x-b3-spanid: s, x-b3-sampled: 1", "S"},
		{multi, []string{"x-b3-traceid: T", "x-b3-spanid: S", "x-b3-sampled: 0"}, "x-b3-traceid: T, x-b3-spanid: s, x-b3-sampled: 0", "no span"},
		{multi, []string{"x-b3-traceid: T", "x-b3-traceid: T", "x-b3-spanid: S"}, "x-b3-traceid: t, x-b3-spanid: s, x-b3-sampled: 1", ""},
		{both, []string{"b3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-0", "traceparent: P01"}, "traceparent: 00-T-s-01, b3: T-s-1, x-b3-traceid: T, x-b3-spanid: s, x-b3-sampled: 1", "S"},
		{both, []string{"b3: T-S-1", "traceparent: no"}, "traceparent: 00-T-s-01, b3: T-s-1, x-b3-traceid: T, x-b3-spanid: s, x-b3-sampled: 1", "S"},
		{TracingConfig{Ratio: 1}, []string{"traceparent: no", "tracestate: =", "b3: -"}, "traceparent: no, tracestate: =, b3: -", ""}, // no format
	} {
		r, q := tracedRig(t, c.cfg, nil)
		ids := strings.NewReplacer("P", clientParent, "T", clientTraceID, "S", clientSpanID)
		for i, f := range c.fields {
			name, value, _ := strings.Cut(f, ": ")
			c.fields[i] = name + ": " + ids.Replace(value)
		}
		r.ask("GET /", c.fields...)
		r.answer(200, true)
		rec := r.ended(ReasonOK, 200)
		trace, span := fmt.Sprintf("%x", rec.Trace.Trace), fmt.Sprintf("%x", rec.Trace.Span)
		parent := "no span"
		if len(q.all) == 1 {
			s := q.all[0]
			span = fmt.Sprintf("%x", s.Attempts[0].ID)
			parent = strings.TrimSuffix(fmt.Sprintf("%x %s", s.Parent.Span, s.State()), " ")
			if s.Parent.Trace != s.Trace.Trace {
				parent = ""
			}
			if s.Link.Valid() {
				parent = fmt.Sprintf("link %x", s.Link.Span)
			}
		}
		parent = strings.ReplaceAll(parent, clientSpanID, "S")
		got := strings.NewReplacer(clientParent, "P", clientTraceID, "T", clientSpanID, "S", trace, "t", span, "s").Replace(fieldsOf(&r.sent, traceNames...))
		if c.want = strings.ReplaceAll(c.want, clientParent, "P"); got != c.want || parent != c.parent {
			t.Errorf("%q: the endpoint gets %q, want %q; the parent is %q, want %q", c.fields, got, c.want, parent, c.parent)
		}
		if rec.Trace.Sampled != (len(q.all) == 1) {
			t.Errorf("%q: %q in the log as %+v", c.fields, got, rec.Trace)
		}
	}
}

// TestUntracedRequestsPass: without tracing nobody looks at what a request says of traces.
func TestUntracedRequestsPass(t *testing.T) {
	r := newRig(t, nil)
	r.pooled = true
	r.ask("GET /", "traceparent: odd", "tracestate: ,=", "b3: x", "traceparent: twice")
	r.answer(200, true)
	if got := fieldsOf(&r.sent, traceNames...); got != "traceparent: odd, tracestate: ,=, b3: x, traceparent: twice" {
		t.Errorf("the endpoint gets %q", got)
	}
	if rec := r.ended(ReasonOK, 200); rec.Trace != (TraceRef{}) {
		t.Errorf("in the log as %+v", rec.Trace)
	}
}

// TestActionsDoNotTouchTheTrace: what a route says of its fields is not what endpoints are sent.
func TestActionsDoNotTouchTheTrace(t *testing.T) {
	actions, errs := header.Compile(header.Request, []header.Action{{Name: "traceparent", Value: "mine"}, {Name: "x-other", Value: "1"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	r, _ := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1, ParentBased: true}, func(_ *Config, s *routing.RouteSpec) { s.Policy.RequestActions = actions })
	r.ask("GET /", "traceparent: "+clientParent+"01", "tracestate: a=1")
	if got := fieldsOf(&r.sent, traceNames...); !strings.HasPrefix(got, "traceparent: 00-"+clientTraceID) || strings.Count(got, "trace") != 2 || !strings.HasSuffix(got, "tracestate: a=1") {
		t.Errorf("the endpoint gets %q", got)
	}
}

// TestSpansOfAttempts: each attempt has a span, whose id the endpoint got, and why it ended.
func TestSpansOfAttempts(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1}, func(_ *Config, s *routing.RouteSpec) { s.Policy.Rewrite = rewrite.Compile("/", "/v2/") })
	r.pooled = false
	r.ask("GET /a?b", "user-agent: test")
	r.clock.now += 5e6
	r.ex.UpstreamFault(FaultConnect)
	r.clock.now += 1e6
	r.ready()
	var sent []string
	sent = append(sent, fieldsOf(&r.sent, "traceparent"))
	r.clock.now += 1e6
	r.ex.UpstreamFault(FaultUnprocessed)
	r.clock.now += 1e6
	r.ready()
	sent = append(sent, fieldsOf(&r.sent, "traceparent"))
	r.clock.now += 2e6
	r.answer(204, true)
	rec := r.ended(ReasonOK, 204)
	if len(q.all) != 1 {
		t.Fatalf("%d spans", len(q.all))
	}
	s := q.all[0]
	if s.Trace != rec.Trace || !s.Trace.Sampled || s.Start != rec.Start || s.Total != 10*time.Millisecond || s.Status != 204 || s.Reason != ReasonOK || s.Made != 3 ||
		s.Namespace != "ns" || s.Route != "app" || s.Client != rec.Client {
		t.Errorf("the span is %+v", s)
	}
	if got := fmt.Sprintf("%s %s %s %s %s", s.Method(), s.Host(), s.Target(), s.SentPath(), s.Agent()); got != "GET app.test /a?b /v2/a test" {
		t.Error(got)
	}
	var got []string
	for _, a := range s.Attempts[:s.Made] {
		got = append(got, fmt.Sprintf("%s %v %v-%v %v %d", a.Server, a.Endpoint, a.Start, a.End, a.Fault, a.Status))
	}
	if want := "a 10.0.0.97:80 0s-5ms connect 0, b 10.0.0.98:80 5ms-7ms unprocessed 0, b 10.0.0.98:80 7ms-10ms none 204"; strings.Join(got, ", ") != want {
		t.Errorf("attempts %s, want %s", strings.Join(got, ", "), want)
	}
	for i, field := range sent {
		if want := fmt.Sprintf("traceparent: 00-%x-%x-01", s.Trace.Trace, s.Attempts[i+1].ID); field != want {
			t.Errorf("the endpoint was sent %s, want %s", field, want)
		}
	}
	if s.Attempts[0].ID == s.Attempts[1].ID || s.Attempts[1].ID == s.Attempts[2].ID {
		t.Error("attempts with one id")
	}
}

// TestSpansOfLocalAnswers: what never gets to an endpoint is a span too; probes of the monitor path are none.
func TestSpansOfLocalAnswers(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1}, func(c *Config, _ *routing.RouteSpec) { c.MonitorPath = "/alive" })
	r.begin(Client{})
	h, end := request("GET /")
	h.Authority = []byte("other.test")
	r.ex.Request(h, end)
	r.ended(ReasonNoRoute, 503)
	r.ask("TRACE /")
	r.ended(ReasonRefused, 405)
	r.ask("GET /alive")
	if len(q.all) != 2 || q.all[0].Reason != ReasonNoRoute || q.all[0].Made != 0 || q.all[0].Namespace != "" || q.all[1].Status != 405 {
		t.Errorf("spans %+v", q.all)
	}
}

// TestSpansOfTunnelsEndWithTheHead: nobody waits for days, and nothing is kept of the request meanwhile.
func TestSpansOfTunnelsEndWithTheHead(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1}, nil)
	r.begin(Client{})
	h, end := request("GET /ws")
	h.Upgrade = []byte("websocket")
	r.ex.Request(h, end)
	r.ex.ResponseHead(r.switching("websocket"), false)
	if len(q.all) != 1 || q.all[0].Status != 101 || q.all[0].Attempts[0].Status != 101 || r.w.tracer.open != 0 {
		t.Fatalf("spans %+v, %d open", q.all, r.w.tracer.open)
	}
	r.over()
	if rec := r.ended(ReasonTunnelClosed, 101); len(q.all) != 1 || rec.Trace != q.all[0].Trace {
		t.Errorf("%d spans, the log has %+v", len(q.all), rec.Trace)
	}
}

// TestClientsForceFewSamples: what clients can have sampled by their word is bounded, and the rest has the same chance as everybody's; a second
// later they may again.
func TestClientsForceFewSamples(t *testing.T) {
	for _, byID := range []bool{false, true} {
		cfg := TracingConfig{Formats: TraceW3C, ClientRate: 10, ParentBased: true}
		parent := clientParent + "01"
		if byID { // a client that knows how ids decide
			cfg.ParentBased, cfg.Ratio = false, 0.001
			parent = "00-" + strings.Repeat("0", 31) + "1-" + clientSpanID + "-00"
		}
		r, q := tracedRig(t, cfg, nil)
		flood := func(n int) {
			for range n {
				r.ask("GET /", "traceparent: "+parent)
				r.answer(200, true)
				r.ended(ReasonOK, 200)
			}
		}
		flood(100)
		if n := len(q.all); n != 10 || r.bounds.Of(bound.ClientSampling) != 90 {
			t.Errorf("%d sampled, the bound was reached %d times", n, r.bounds.Of(bound.ClientSampling))
		}
		if got := fieldsOf(&r.sent, "traceparent"); !strings.HasSuffix(got, "-00") {
			t.Errorf("the endpoint of one that is not sampled gets %s", got)
		}
		r.clock.now += 5e8
		flood(100)
		if n := len(q.all); n != 15 {
			t.Errorf("%d sampled after half a second more", n)
		}
		r.clock.now += 10e9
		flood(30)
		if n := len(q.all); n != 25 {
			t.Errorf("%d sampled after ten seconds more", n)
		}
	}
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, ParentBased: true}, nil) // any number
	for range 50 {
		r.ask("GET /", "traceparent: "+clientParent+"01")
		r.answer(200, true)
		r.ended(ReasonOK, 200)
	}
	if len(q.all) != 50 || r.bounds.Of(bound.ClientSampling) != 0 {
		t.Errorf("%d of 50 sampled", len(q.all))
	}
}

// TestRatio: so many of those that begin here are sampled, whatever clients say by ids of their choice.
func TestRatio(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, ParentBased: true, Ratio: 0.1}, nil)
	q.room = 10_000
	for range 4000 {
		r.ask("GET /")
		r.answer(200, true)
		r.ended(ReasonOK, 200)
	}
	if n := len(q.all); n < 300 || n > 500 {
		t.Errorf("%d of 4000 sampled", n)
	}
}

// TestOpenSpansAreBounded: requests beyond the bound are served, and not recorded.
func TestOpenSpansAreBounded(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1}, nil)
	r.w.tracer.open = maxOpenSpans - 1
	r.ask("GET /")
	first := r.ex
	r.ask("GET /")
	if got := fieldsOf(&r.sent, "traceparent"); !strings.HasSuffix(got, "-00") || r.bounds.Of(bound.OpenSpans) != 1 {
		t.Errorf("the endpoint gets %s, the bound was reached %d times", got, r.bounds.Of(bound.OpenSpans))
	}
	r.answer(200, true)
	r.ex = first
	r.answer(200, true)
	if len(q.all) != 1 || r.w.tracer.open != maxOpenSpans-1 {
		t.Errorf("%d spans, %d open", len(q.all), r.w.tracer.open)
	}
}

// TestSpansEndWithTheirRequests: however it ends, and whether or not anybody takes what was recorded.
func TestSpansEndWithTheirRequests(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1}, nil)
	q.room = 2
	r.ask("POST / 10")
	r.ex.DownstreamGone(FaultReset)
	r.ended(ReasonClientGone, 0)
	r.ask("GET /")
	r.clock.advance(time.Minute)
	r.ended(ReasonServerTimeout, 504)
	if len(q.all) != 2 || q.all[0].Reason != ReasonClientGone || q.all[1].Status != 504 || q.all[1].Attempts[0].Status != 0 {
		t.Fatalf("spans %+v", q.all)
	}
	r.ask("GET /") // the queue is full
	r.answer(200, true)
	r.ended(ReasonOK, 200)
	r.ask("GET /")
	r.panicAt = "down head"
	if !r.recovering(func() { r.answer(200, false) }) {
		t.Fatal("no panic")
	}
	if r.w.tracer.open != 0 || len(q.all) != 2 {
		t.Errorf("%d open, %d spans", r.w.tracer.open, len(q.all))
	}
}

// TestSpansCutWhatIsLong: a Span has one size, and its pieces do not run into each other.
func TestSpansCutWhatIsLong(t *testing.T) {
	r, q := tracedRig(t, TracingConfig{Formats: TraceW3C, Ratio: 1, ParentBased: true}, func(_ *Config, s *routing.RouteSpec) { s.Policy.Rewrite = rewrite.Compile("/", "/v2/") })
	long := strings.Repeat("x", 5000)
	r.ask("GET"+long+" /"+long, "user-agent: "+long, "traceparent: "+clientParent+"01", "tracestate: a="+strings.Repeat("y", 200)+",b="+strings.Repeat("z", 200))
	r.answer(200, true)
	s := q.all[0]
	for i, c := range []struct {
		got  []byte
		want string
	}{
		{s.Method(), ("GET" + long)[:32]}, {s.Host(), "app.test"}, {s.Target(), ("/" + long)[:1024]}, {s.SentPath(), ("/v2/" + long)[:512]}, {s.Agent(), long[:256]},
		{s.State(), "a=" + strings.Repeat("y", 200) + ",b=" + strings.Repeat("z", 200)},
	} {
		if !bytes.Equal(c.got, []byte(c.want)) {
			t.Errorf("piece %d is %.40q of %d bytes", i, c.got, len(c.got))
		}
	}
}

func TestTracingMistakes(t *testing.T) {
	open := func() SpanQueue { return &spans{} }
	for _, cfg := range []TracingConfig{{}, {Open: open, Ratio: 1.5}, {Open: open, Ratio: -1}, {Open: open, ClientRate: -1}} {
		if _, err := NewTracing(cfg); err == nil || !strings.HasPrefix(err.Error(), "cannot trace requests: ") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// lastSpan is a queue that keeps one.
type lastSpan struct{ Span }

func (q *lastSpan) Claim() *Span { return &q.Span }
func (*lastSpan) Publish()       {}

// BenchmarkTraces is what traces cost a request in the pipeline: off, on and not sampled, sampled.
func BenchmarkTraces(b *testing.B) {
	for _, c := range []struct {
		name  string
		on    bool
		ratio float64
	}{{"off", false, 0}, {"not sampled", true, 0}, {"sampled", true, 1}} {
		b.Run(c.name, func(b *testing.B) {
			ends := &silent{}
			cfg := Config{Store: routing.NewStore(), Clock: &virtual{}, Upstreams: ends, Timeouts: DefaultTimeouts()}
			if c.on {
				var err error
				if cfg.Tracing, err = NewTracing(TracingConfig{Formats: TraceW3C, Ratio: c.ratio, ParentBased: true, Open: func() SpanQueue { return &lastSpan{} }}); err != nil {
					b.Fatal(err)
				}
			}
			table, rejected := routing.Compile(routing.Options{Registry: balancer.NewRegistry()}, nil, []routing.RouteSpec{{
				RouteKey: routing.RouteKey{Namespace: "ns", Name: "app", UID: "1"}, Host: "app.test", Targets: targets("a"),
				Policy: routing.Policy{ServerTimeout: time.Second, Forwarded: routing.ForwardedReplace},
			}})
			if len(rejected) > 0 {
				b.Fatal(rejected)
			}
			cfg.Store.Publish(table)
			w, err := NewWorker(cfg)
			if err != nil {
				b.Fatal(err)
			}
			client := Client{Addr: netip.MustParseAddrPort("192.0.2.7:4711")}
			h, _ := request("GET /path?query", "host: app.test", "user-agent: curl/8", "accept: */*", "accept-encoding: gzip", "accept-language: en", "cache-control: no-cache", "cookie: a=b")
			fields, room := h.Fields, make([]Field, 0, 32)
			answer := &Head{Status: 200, Minor: 1}
			for b.Loop() {
				h.Fields = append(room[:0], fields...)
				ex := w.Acquire(ends, &client)
				ex.Request(h, true)
				ex.ResponseHead(answer, true)
			}
		})
	}
}
