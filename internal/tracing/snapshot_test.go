package tracing

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TestSnapshotHasEveryMethod: a method that a later SDK asks for and snapshot does not have would be one of a nil interface.
func TestSnapshotHasEveryMethod(t *testing.T) {
	s := &snapshot{
		of:   &origin{resource: resource.Empty(), scope: instrumentation.Scope{Name: "scope"}},
		name: "GET /", context: trace.NewSpanContext(trace.SpanContextConfig{SpanID: trace.SpanID{1}}), parent: trace.NewSpanContext(trace.SpanContextConfig{SpanID: trace.SpanID{2}}),
		kind: trace.SpanKindClient, start: time.Unix(1, 0), end: time.Unix(2, 0), attributes: []attribute.KeyValue{attribute.Int("a", 1)}, dropped: 3,
		links: []sdktrace.Link{{}}, lostLinks: 4, failed: true, descendants: 5,
	}
	want := map[string]any{
		"Name": s.name, "SpanContext": s.context, "Parent": s.parent, "SpanKind": s.kind, "StartTime": s.start, "EndTime": s.end, "Attributes": s.attributes,
		"Links": s.links, "Events": []sdktrace.Event(nil), "Status": sdktrace.Status{Code: codes.Error}, "InstrumentationScope": s.of.scope, "InstrumentationLibrary": s.of.scope,
		"Resource": s.of.resource, "DroppedAttributes": 3, "DroppedLinks": 4, "DroppedEvents": 0, "ChildSpanCount": 5,
	}
	asked := reflect.TypeFor[sdktrace.ReadOnlySpan]()
	for i := range asked.NumMethod() {
		m := asked.Method(i)
		if !m.IsExported() {
			continue
		}
		expected, known := want[m.Name]
		if !known {
			t.Errorf("the interface has %s, and snapshot has not", m.Name)
			continue
		}
		if got := reflect.ValueOf(s).MethodByName(m.Name).Call(nil)[0].Interface(); !reflect.DeepEqual(got, expected) {
			t.Errorf("%s is %v, want %v", m.Name, got, expected)
		}
	}
	if s.failed = false; s.Status().Code != codes.Unset {
		t.Errorf("a span without a fault has the status %v", s.Status())
	}
}

// TestLimits: spans keep the limits of the SDK: characters of values, attributes, links.
func TestLimits(t *testing.T) {
	for variable, value := range map[string]string{"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "2", "OTEL_SPAN_LINK_COUNT_LIMIT": "1"} {
		t.Setenv(variable, value)
	}
	s := &snapshot{of: &origin{limits: sdktrace.NewSpanLimits()}}
	given := []attribute.KeyValue{attribute.String("a", "äöüß"), attribute.Int("b", 12345), attribute.String("c", "lost")}
	s.describe(given)
	s.link(trace.SpanContext{})
	if len(s.attributes) != 2 || s.attributes[0].Value.AsString() != "äöü" || s.attributes[1].Value.AsInt64() != 12345 || s.dropped != 1 || len(s.links) != 1 || s.lostLinks != 0 {
		t.Errorf("%+v", s)
	}
	if given[0].Value.AsString() != "äöüß" {
		t.Error("what was given is changed")
	}
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc", "ääää": "äää", strings.Repeat("x", 100): "xxx"} {
		if got := cut(text, 3); got != want {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
	s = &snapshot{of: &origin{limits: sdktrace.SpanLimits{AttributeCountLimit: -1, AttributeValueLengthLimit: -1}}}
	s.describe(given)
	s.link(trace.SpanContext{})
	if len(s.attributes) != 3 || s.dropped != 0 || s.attributes[0].Value.AsString() != "äöüß" || len(s.links) != 0 || s.lostLinks != 1 {
		t.Errorf("%+v", s)
	}
}
