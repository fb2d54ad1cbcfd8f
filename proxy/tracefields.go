package proxy

import (
	"turnout/internal/wire/field"
	"turnout/internal/wire/tracecontext"
)

// traceField is what a field says of a trace.
type traceField uint8

const (
	traceNothing traceField = iota
	traceParent
	traceState
	traceB3
	traceB3Trace
	traceB3Span
	traceB3Sampled
	traceB3Flags
	traceB3Parent
	traceFields
)

// formatOf is the format that a traceField belongs to.
func (f traceField) format() TraceFormats {
	switch f {
	case traceNothing:
		return 0
	case traceParent, traceState:
		return TraceW3C
	case traceB3:
		return TraceB3
	}
	return TraceB3Multi
}

func classifyTrace(name []byte) traceField {
	if len(name) == 0 || name[0] != 't' && name[0] != 'b' && name[0] != 'x' {
		return traceNothing
	}
	switch string(name) {
	case "traceparent":
		return traceParent
	case "tracestate":
		return traceState
	case "b3":
		return traceB3
	case "x-b3-traceid":
		return traceB3Trace
	case "x-b3-spanid":
		return traceB3Span
	case "x-b3-sampled":
		return traceB3Sampled
	case "x-b3-flags":
		return traceB3Flags
	case "x-b3-parentspanid":
		return traceB3Parent
	}
	return traceNothing
}

// clientTrace is what a client says of its trace.
type clientTrace struct {
	context tracecontext.Context
	state   tracecontext.State // empty without a traceparent
}

// takeContext takes what the client says of its trace out of a request: the fields of the formats that are in use, each of which is sent anew. A
// context that breaks the grammar, or is there twice, is none (Trace Context section 3.2), and then neither is its state (section 3.3). nil: there
// is no context. What is returned is valid until the next call.
func (t *tracer) takeContext(h *Head) *clientTrace {
	formats, first := t.cfg.Formats, -1
	for i := range h.Fields {
		if classifyTrace(h.Fields[i].Name).format()&formats != 0 {
			first = i
			break
		}
	}
	if first < 0 {
		return nil
	}
	var seen [traceFields]int
	var values [traceFields][]byte
	found := &t.found
	*found = clientTrace{}
	stateful := true
	kept := h.Fields[:first]
	for _, f := range h.Fields[first:] {
		what := classifyTrace(f.Name)
		if what.format()&formats == 0 {
			kept = append(kept, f)
			continue
		}
		seen[what]++
		values[what] = f.Value
		if what == traceState {
			stateful = stateful && found.state.AddLine(f.Value)
		}
	}
	clear(h.Fields[len(kept):])
	h.Fields = kept
	known := false
	if seen[traceParent] == 1 {
		found.context, known = tracecontext.ParseParent(values[traceParent])
	}
	if !known || !stateful {
		found.state = tracecontext.State{}
	}
	if !known && seen[traceB3] == 1 {
		found.context, known = tracecontext.ParseB3(values[traceB3])
	}
	if !known && max(seen[traceB3Trace], seen[traceB3Span], seen[traceB3Sampled], seen[traceB3Flags]) == 1 {
		multi := tracecontext.B3Fields{Trace: values[traceB3Trace], Span: values[traceB3Span], Sampled: values[traceB3Sampled], Flags: values[traceB3Flags]}
		found.context, known = multi.Parse()
	}
	if !known {
		return nil
	}
	return found
}

// append adds the fields that tell endpoints of a trace, in which c is the span above theirs. It returns where the id of that span stands in each of
// them.
func (formats TraceFormats) append(h *Head, m *field.Arena, c *tracecontext.Context, state []byte) (ids [3][]byte) {
	if formats&TraceW3C != 0 {
		v := m.End(tracecontext.AppendParent(m.Begin(tracecontext.ParentSize), c))
		h.addField("traceparent", v)
		if len(state) > 0 {
			h.addField("tracestate", state)
		}
		ids[0] = v[tracecontext.ParentSpan:]
	}
	if formats&TraceB3 != 0 {
		v := m.End(tracecontext.AppendB3(m.Begin(tracecontext.B3Size), c))
		h.addField("b3", v)
		ids[1] = v[tracecontext.B3Span:]
	}
	if formats&TraceB3Multi != 0 {
		h.addField("x-b3-traceid", m.End(tracecontext.AppendHex(m.Begin(2*len(c.Trace)), c.Trace[:])))
		ids[2] = m.End(tracecontext.AppendHex(m.Begin(2*len(c.Span)), c.Span[:]))
		h.addField("x-b3-spanid", ids[2])
		h.addField("x-b3-sampled", constant(tracecontext.B3Sampled(c)))
	}
	return ids
}
