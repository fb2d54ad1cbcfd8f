package explain

import (
	"bytes"
	"time"

	"turnout/balancer"
	"turnout/internal/wire/field"
	"turnout/proxy"
	"turnout/proxy/detached"
	"turnout/routing"
)

// rehearsal is one run of a request through the pipeline. It is its clock, client, endpoint and access log, and keeps what each of them
// gets.
type rehearsal struct {
	now func() int64

	forwarded *proxy.Head        // that the endpoint got, nil = none
	endpoint  *balancer.Endpoint // that was chosen, nil = none
	answered  *proxy.Head        // that the client got, nil = none
	logged    bool
	record    proxy.Record // its byte slices are of no use
	aborted   bool         // the client's connection was broken off
	failed    error        // a panic of the rules
}

// Now implements proxy.Clock.
func (r *rehearsal) Now() int64 { return r.now() }

// Wall implements proxy.Clock.
func (r *rehearsal) Wall() time.Time { return time.Now() }

// NewTimer implements proxy.Clock. Time does not pass.
func (r *rehearsal) NewTimer(func()) proxy.Timer { return stopped{} }

// Post implements proxy.Clock.
func (r *rehearsal) Post(func()) bool { return false }

// stopped is a timer that never fires.
type stopped struct{}

func (stopped) Reset(time.Duration) {}
func (stopped) Stop()               {}

// Log implements proxy.AccessLog.
func (r *rehearsal) Log(rec *proxy.Record) { r.logged, r.record = true, *rec }

// Acquire implements proxy.Upstreams: each endpoint has a connection.
func (r *rehearsal) Acquire(e *balancer.Endpoint, _ *proxy.Exchange, _ bool) proxy.Upstream {
	r.endpoint = e
	return (*endpointHalf)(r)
}

// Cancel implements proxy.Upstreams.
func (r *rehearsal) Cancel(*proxy.Exchange) {}

// endpointHalf is the rehearsal as the endpoint.
type endpointHalf rehearsal

func (u *endpointHalf) Head(h *proxy.Head, _ bool)         { u.forwarded = copyHead(h) }
func (u *endpointHalf) Body([]byte) bool                   { return false }
func (u *endpointHalf) End(proxy.Section)                  {}
func (u *endpointHalf) Abort(proxy.Fault)                  {}
func (u *endpointHalf) MayRefuse() (may, asked bool)       { return false, false }
func (u *endpointHalf) Plain() (none detached.Conn)        { return none }
func (u *endpointHalf) Spliced(uint64)                     {}
func (u *endpointHalf) Pause()                             {}
func (u *endpointHalf) Resume()                            {}
func (u *endpointHalf) Progress() (taken uint64, left int) { return 0, 0 }

// clientHalf is the rehearsal as the client.
type clientHalf rehearsal

func (d *clientHalf) Congested() bool             { return false }
func (d *clientHalf) Informational(proxy.Section) {}
func (d *clientHalf) Head(s proxy.Section, _ bool) {
	d.answered = copyHead(s.Head())
}
func (d *clientHalf) Body([]byte) bool                   { return false }
func (d *clientHalf) End(proxy.Section)                  {}
func (d *clientHalf) Abort(proxy.Fault)                  { d.aborted = true }
func (d *clientHalf) Upgrade(*proxy.Head) proxy.Joiner   { return nil }
func (d *clientHalf) Plain() (none detached.Conn)        { return none }
func (d *clientHalf) Spliced(uint64)                     {}
func (d *clientHalf) Pause()                             {}
func (d *clientHalf) Resume()                            {}
func (d *clientHalf) Progress() (taken uint64, left int) { return 0, 0 }

// through is the rehearsal as a connection that is passed through.
type through rehearsal

func (t *through) Dial(e *balancer.Endpoint) { t.endpoint = e }
func (t *through) Join() (end func())        { return func() {} }
func (t *through) Close()                    { t.aborted = true }
func (t *through) Reset()                    { t.aborted = true }

// copyHead copies a head whose memory is somebody else's.
func copyHead(h *proxy.Head) *proxy.Head {
	c := *h
	c.Method, c.Target, c.Authority = bytes.Clone(h.Method), bytes.Clone(h.Target), bytes.Clone(h.Authority)
	c.Path, c.Query, c.Reason = bytes.Clone(h.Path), bytes.Clone(h.Query), bytes.Clone(h.Reason)
	c.Fields = make([]field.Field, len(h.Fields))
	for i, f := range h.Fields {
		c.Fields[i] = field.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	return &c
}

// worker is a worker that rehearses with a table.
func (r *rehearsal) worker(d *Deciding, table *routing.Table) (*proxy.Worker, error) {
	cfg := d.Proxy
	cfg.Store, cfg.Clock, cfg.Upstreams, cfg.AccessLog, cfg.Rehearse = routing.Showing(table), r, r, r, true
	cfg.Recent = nil
	cfg.Panicked = func(v any, _ []byte) { r.failed = panicked{v} }
	return proxy.NewWorker(cfg)
}

// exchange runs a request through the pipeline, up to an answer 200 of the endpoint that has no fields.
func (r *rehearsal) exchange(w *proxy.Worker, client *proxy.Client, h *proxy.Head, none bool) {
	ex := w.Acquire((*clientHalf)(r), client)
	ex.Request(h, none)
	if r.forwarded != nil && !r.logged {
		ex.ResponseHead(&proxy.Head{Status: 200, Minor: 1, Spoken: h.Spoken}, true)
	}
}
