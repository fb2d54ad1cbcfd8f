package proxy

import (
	"time"

	"turnout/internal/bound"
	"turnout/internal/wire/field"
	"turnout/internal/wire/tracecontext"
)

// openTrace begins the trace of a request, or its part of the client's, and takes out of the head what the client says of it.
func (ex *Exchange) openTrace(h *Head) {
	t, ref := &ex.w.tracer, &ex.trace
	contexts := t.cfg.Plain
	if ex.client.Secure {
		contexts = t.cfg.Secure
	}
	var parent, link tracecontext.Context
	if found := t.takeContext(h); found != nil {
		switch contexts {
		case TraceTrust:
			parent = found.context
			if parent.Valid() && !found.state.Empty() {
				m := &ex.scratch
				ex.traceState = m.End(found.state.Append(m.Begin(tracecontext.MaxState)))
			}
		case TraceLink:
			if found.context.Valid() {
				link = found.context
			}
		}
	}
	if ref.Trace = parent.Trace; !parent.Valid() {
		ref.Trace = t.traceID()
	}
	ref.Span = t.spanID()
	ex.traceRandom = parent.Random
	if ref.Sampled = !ex.cfg.Rehearse && ex.sample(&parent); !ref.Sampled {
		return
	}
	if t.open == maxOpenSpans {
		ex.Reached(bound.OpenSpans)
		ref.Sampled = false
		return
	}
	ex.openSpan(h, &parent, &link)
}

// sample decides whether a request is sampled; parent is what the client said, where that counts.
func (ex *Exchange) sample(parent *tracecontext.Context) bool {
	t := &ex.w.tracer
	switch {
	case t.cfg.ParentBased && parent.Sampling == tracecontext.NotSampled:
		return false
	case t.cfg.ParentBased && parent.Sampling == tracecontext.Sampled:
		return t.chance() || ex.granted()
	case parent.Valid() && t.cfg.Ratio < 1: // the client has chosen the id that decides
		return t.sampledID(parent.Trace) && ex.granted()
	}
	return t.sampledID(ex.trace.Trace)
}

// granted says whether the request may be sampled because its client says so.
func (ex *Exchange) granted() bool {
	if ex.w.tracer.grant(ex.cfg.Clock.Wall().UnixNano()) {
		return true
	}
	ex.Reached(bound.ClientSampling)
	return false
}

// openSpan begins to record a request.
func (ex *Exchange) openSpan(h *Head, parent, link *tracecontext.Context) {
	t := &ex.w.tracer
	o := t.free.Get()
	if o == nil {
		o = new(openSpan)
	}
	t.open++
	if ex.began.IsZero() {
		ex.began = ex.cfg.Clock.Wall()
	}
	if o.link = *link; parent.Valid() {
		o.parent = *parent
	}
	agent := field.Get(h.Fields, "user-agent") // its field may be changed
	o.agent = ex.scratch.Copy(agent[:min(len(agent), maxSpanAgent)])
	o.state = ex.traceState
	ex.span = o
}

// tellTrace tells endpoints of the trace. What is not recorded has one span for them, which nobody has ever heard of.
func (ex *Exchange) tellTrace(h *Head) {
	t := &ex.w.tracer
	if ex.cfg.RequestActions != nil || ex.route.Policy().RequestActions != nil {
		t.takeContext(h) // that of an action
	}
	c := tracecontext.Context{Trace: ex.trace.Trace, Span: ex.trace.Span, Sampling: tracecontext.NotSampled, Random: ex.traceRandom}
	if ex.trace.Sampled {
		c.Sampling = tracecontext.Sampled
	}
	ids := t.cfg.Formats.append(h, &ex.scratch, &c, ex.traceState)
	if ex.span != nil {
		ex.span.ids = ids
	}
}

// closeSpan hands over what was recorded of a request, if it was.
func (ex *Exchange) closeSpan(reason Reason) {
	o := ex.span
	if o == nil {
		return
	}
	if s := ex.w.tracer.queue.Claim(); s != nil {
		ex.fill(s, o, reason)
		ex.w.tracer.queue.Publish()
	}
	ex.dropSpan()
}

// dropSpan gives the memory of a span back.
func (ex *Exchange) dropSpan() {
	if o := ex.span; o != nil {
		ex.span = nil
		*o = openSpan{}
		ex.w.tracer.open--
		ex.w.tracer.free.Put(o)
	}
}

func (ex *Exchange) fill(s *Span, o *openSpan, reason Reason) {
	now := ex.cfg.Clock.Now()
	s.Trace, s.Parent, s.Link = ex.trace, o.parent, o.link
	s.Start, s.Total = ex.began, time.Duration(now-ex.start)
	s.Client, s.Local, s.Secure, s.Spoken, s.Minor = ex.client.Addr, ex.client.Local, ex.client.Secure, ex.req.Spoken, ex.req.Minor
	s.BytesIn, s.BytesOut = ex.bytesIn, ex.bytesOut
	s.Status, s.Reason, s.Detail = ex.status, reason, ex.detailOf(reason)
	s.Namespace, s.Route, s.Path = "", "", ""
	var sent []byte
	if r := ex.route; r != nil {
		s.Namespace, s.Route, s.Path = r.Namespace(), r.Name(), r.Path()
		if r.Policy().Rewrite != nil {
			sent = ex.req.Path
		}
	}
	s.PutText(ex.req.Method, ex.host, ex.req.Target, sent, o.agent, o.state)
	s.Made = o.made
	for i := range o.attempts[:o.made] {
		a := &o.attempts[i]
		if a.end < 0 {
			a.end = now
		}
		e := a.server.Endpoint()
		s.Attempts[i] = SpanAttempt{
			ID: a.id, Start: time.Duration(a.start - ex.start), End: time.Duration(a.end - ex.start), Server: a.server.ID(), Endpoint: e.Addr(), Secure: e.TLS() != nil,
			Status: int(a.status), Spoken: a.spoken, Minor: int(a.minor), Fault: a.fault,
		}
	}
}
