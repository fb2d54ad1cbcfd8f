package tracing

import (
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// snapshot is a span that has ended, as the SDK's processor and exporters take it. It is not changed once it was handed over.
//
// The interface has a private method, which stays without a receiver: nothing calls it. TestSnapshotHasEveryMethod holds the others to it.
type snapshot struct {
	sdktrace.ReadOnlySpan // nil

	of          *origin
	name        string
	context     trace.SpanContext
	parent      trace.SpanContext // the zero value: the trace begins here
	kind        trace.SpanKind
	start, end  time.Time
	attributes  []attribute.KeyValue
	dropped     int // attributes beyond their limit
	links       []sdktrace.Link
	lostLinks   int // the same of links
	failed      bool
	descendants int // spans below it
}

// origin is what all spans of an Exporter have in common.
type origin struct {
	resource *resource.Resource
	scope    instrumentation.Scope
	limits   sdktrace.SpanLimits // of the environment
}

// The methods of sdktrace.ReadOnlySpan.

func (s *snapshot) Name() string                                { return s.name }
func (s *snapshot) SpanContext() trace.SpanContext              { return s.context }
func (s *snapshot) Parent() trace.SpanContext                   { return s.parent }
func (s *snapshot) SpanKind() trace.SpanKind                    { return s.kind }
func (s *snapshot) StartTime() time.Time                        { return s.start }
func (s *snapshot) EndTime() time.Time                          { return s.end }
func (s *snapshot) Attributes() []attribute.KeyValue            { return s.attributes }
func (s *snapshot) Links() []sdktrace.Link                      { return s.links }
func (s *snapshot) Events() []sdktrace.Event                    { return nil }
func (s *snapshot) InstrumentationScope() instrumentation.Scope { return s.of.scope }
func (s *snapshot) Resource() *resource.Resource                { return s.of.resource }
func (s *snapshot) DroppedAttributes() int                      { return s.dropped }
func (s *snapshot) DroppedLinks() int                           { return s.lostLinks }
func (s *snapshot) DroppedEvents() int                          { return 0 }
func (s *snapshot) ChildSpanCount() int                         { return s.descendants }

func (s *snapshot) Status() sdktrace.Status {
	if s.failed {
		return sdktrace.Status{Code: codes.Error}
	}
	return sdktrace.Status{}
}

// InstrumentationLibrary is the old name of InstrumentationScope, which the interface still has.
func (s *snapshot) InstrumentationLibrary() instrumentation.Scope { return s.of.scope }

// describe gives a span a copy of attributes, as far as the limits allow.
func (s *snapshot) describe(attributes []attribute.KeyValue) {
	n := len(attributes)
	if most := s.of.limits.AttributeCountLimit; most >= 0 {
		n = min(n, most)
	}
	s.attributes, s.dropped = append(make([]attribute.KeyValue, 0, n), attributes[:n]...), len(attributes)-n
	most := s.of.limits.AttributeValueLengthLimit
	for i := range s.attributes {
		a := &s.attributes[i]
		if most >= 0 && a.Value.Type() == attribute.STRING {
			a.Value = attribute.StringValue(cut(a.Value.AsString(), most))
		}
	}
}

// link gives a span its link, if the limits allow it.
func (s *snapshot) link(to trace.SpanContext) {
	if s.of.limits.LinkCountLimit == 0 {
		s.lostLinks = 1
		return
	}
	s.links = []sdktrace.Link{{SpanContext: to}}
}

// cut returns the first characters of text, most of them at most.
func cut(text string, most int) string {
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return text
	}
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}
