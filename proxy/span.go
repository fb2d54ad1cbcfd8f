package proxy

import (
	"net/netip"
	"time"

	"turnout/balancer"
	"turnout/internal/wire/protocol"
	"turnout/internal/wire/tracecontext"
)

// maxSpanAttempts is how many attempts a request may have in all.
const maxSpanAttempts = 1 + maxRetries

// Longest pieces of a request that a Span keeps, in bytes.
const (
	maxSpanMethod = 32
	maxSpanHost   = 255
	maxSpanTarget = 1024
	maxSpanPath   = 512
	maxSpanAgent  = 256
	spanText      = maxSpanMethod + maxSpanHost + maxSpanTarget + maxSpanPath + maxSpanAgent + tracecontext.MaxState
)

// Span is what the collector of traces gets of one sampled request: the span of the request, and those of its attempts. Its size is fixed, and it
// refers to no memory of the exchange.
type Span struct {
	Trace  TraceRef
	Parent tracecontext.Context // the client's; the zero value = the trace begins here
	Link   tracecontext.Context // the client's where it does not count as the parent; the zero value = there is none

	Start         time.Time     // wall clock at the request head
	Total         time.Duration // to the end of the answer, or to its head where it made a tunnel
	Client, Local netip.AddrPort
	Secure        bool              // the client spoke TLS
	Spoken        protocol.Protocol // by the client: HTTP1 or HTTP2
	Minor         int               // minor version of a client of HTTP/1.x
	BytesIn       uint64            // of the body from the client
	BytesOut      uint64            // of the body to the client
	Namespace     string            // of the route; empty when no route matched
	Route, Path   string            // name and path of the route
	Status        int               // sent to the client, 0 = none
	Reason        Reason            // why it ended
	Detail        string            // see Record.Detail
	Made          int               // attempts
	Attempts      [maxSpanAttempts]SpanAttempt
	ends          [6]uint16 // of the pieces of text
	text          [spanText]byte
	_             [0]func() // a Span is not compared
}

// SpanAttempt is one attempt of a Span. Times are since Span.Start.
type SpanAttempt struct {
	ID         tracecontext.SpanID
	Start, End time.Duration
	Server     string         // reference server id of the endpoint
	Endpoint   netip.AddrPort // zero: none
	Secure     bool           // by TLS
	Status     int            // of the endpoint's answer, 0 = none
	Spoken     protocol.Protocol
	Minor      int   // of its answer
	Fault      Fault // why the attempt ended, 0 = it is the last one, and ended as the request did
}

// The pieces of text. They are cut to what a Span keeps.

// Method is that of the request.
func (s *Span) Method() []byte { return s.text[:s.ends[0]] }

// Host is the host that the request was routed by.
func (s *Span) Host() []byte { return s.piece(1) }

// Target is the request target as received.
func (s *Span) Target() []byte { return s.piece(2) }

// SentPath is the path that endpoints got, empty where it is that of the target.
func (s *Span) SentPath() []byte { return s.piece(3) }

// Agent is the User-Agent field.
func (s *Span) Agent() []byte { return s.piece(4) }

// State is the tracestate.
func (s *Span) State() []byte { return s.piece(5) }

func (s *Span) piece(i int) []byte { return s.text[s.ends[i-1]:s.ends[i]] }

// PutText puts the pieces of text in, each cut to what a Span keeps of it.
func (s *Span) PutText(method, host, target, sentPath, agent, state []byte) {
	at, pieces := 0, [...][]byte{method, host, target, sentPath, agent, state}
	for i, most := range [...]int{maxSpanMethod, maxSpanHost, maxSpanTarget, maxSpanPath, maxSpanAgent, tracecontext.MaxState} {
		at += copy(s.text[at:], pieces[i][:min(len(pieces[i]), most)])
		s.ends[i] = uint16(at)
	}
}

// openSpan is what becomes the Span of a request that is running and sampled.
type openSpan struct {
	parent, link tracecontext.Context
	agent, state []byte
	ids          [3][]byte // where endpoints are sent the id of the attempt
	made         int
	attempts     [maxSpanAttempts]openAttempt
}

// openAttempt is a SpanAttempt that may still run; times are of the loop's clock.
type openAttempt struct {
	id         tracecontext.SpanID
	start, end int64
	server     *balancer.Server
	status     int16
	minor      int8
	spoken     protocol.Protocol
	fault      Fault
}

// beginAttempt begins an attempt, which endpoints know by id.
func (o *openSpan) beginAttempt(id tracecontext.SpanID, server *balancer.Server, now int64) {
	if o.made == len(o.attempts) {
		return
	}
	o.attempts[o.made] = openAttempt{id: id, start: now, end: -1, server: server}
	o.made++
	for _, to := range o.ids {
		if to != nil {
			tracecontext.PutSpan(to, id)
		}
	}
}

// failed notes why the last attempt ended.
func (o *openSpan) failed(f Fault, now int64) {
	if o.made > 0 {
		a := &o.attempts[o.made-1]
		a.fault, a.end = f, now
	}
}

// answered notes the head of the endpoint's answer.
func (o *openSpan) answered(h *Head) {
	if o.made > 0 {
		a := &o.attempts[o.made-1]
		a.status, a.minor, a.spoken = int16(h.Status), int8(h.Minor), h.Spoken
	}
}
