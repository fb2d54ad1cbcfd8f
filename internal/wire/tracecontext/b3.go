package tracecontext

// B3Size is the length of what AppendB3 appends, and B3Span where the id of the span stands in it.
const (
	B3Size = 51
	B3Span = 33
)

// ParseB3 reads the field b3: TRACE-SPAN, TRACE-SPAN-SAMPLING or TRACE-SPAN-SAMPLING-PARENT, where SAMPLING is 0, 1 or d; or SAMPLING alone,
// which gives a context without ids. false: it is none of these.
func ParseB3(v []byte) (c Context, ok bool) {
	if len(v) == 1 {
		return c, c.sampling(v)
	}
	n := 32
	if len(v) > 16 && v[16] == '-' { // a trace id of 64 bits
		n = 16
	}
	if len(v) < n+17 || v[n] != '-' || !c.b3Trace(v[:n]) || !unhex(c.Span[:], v[n+1:n+17]) || !c.Valid() {
		return Context{}, false
	}
	rest := v[n+17:]
	switch {
	case len(rest) == 0:
		return c, true
	case rest[0] != '-' || len(rest) < 2 || !c.sampling(rest[1:2]):
		return Context{}, false
	}
	var parent SpanID
	if rest = rest[2:]; len(rest) > 0 && (rest[0] != '-' || !unhex(parent[:], rest[1:])) {
		return Context{}, false
	}
	return c, true
}

// B3Fields are the values of the fields x-b3-traceid, x-b3-spanid, x-b3-sampled and x-b3-flags, nil where there is none.
type B3Fields struct{ Trace, Span, Sampled, Flags []byte }

// Parse reads them. Without ids there may be a decision alone, which gives a context without ids. false: they break the grammar, or say nothing.
func (f *B3Fields) Parse() (c Context, ok bool) {
	switch {
	case f.Flags != nil && string(f.Flags) != "0" && string(f.Flags) != "1":
		return Context{}, false
	case string(f.Flags) == "1": // debug implies it
		c.Sampling = Sampled
	case f.Sampled == nil:
	case string(f.Sampled) == "true": // as before the specification
		c.Sampling = Sampled
	case string(f.Sampled) == "false":
		c.Sampling = NotSampled
	case string(f.Sampled) == "d" || !c.sampling(f.Sampled):
		return Context{}, false
	}
	if f.Trace == nil && f.Span == nil {
		return c, c.Sampling != Undecided
	}
	if !c.b3Trace(f.Trace) || !unhex(c.Span[:], f.Span) || !c.Valid() {
		return Context{}, false
	}
	return c, true
}

// sampling reads 0, 1 or d, which is debug and implies 1.
func (c *Context) sampling(v []byte) bool {
	switch string(v) {
	case "0":
		c.Sampling = NotSampled
	case "1", "d":
		c.Sampling = Sampled
	default:
		return false
	}
	return true
}

// b3Trace reads a trace id of 128 or 64 bits.
func (c *Context) b3Trace(v []byte) bool {
	if len(v) == 16 {
		return unhex(c.Trace[8:], v)
	}
	return unhex(c.Trace[:], v)
}

// AppendB3 appends the field b3, B3Size bytes. The id of the span begins at B3Span of them.
func AppendB3(b []byte, c *Context) []byte {
	b = AppendHex(b, c.Trace[:])
	b = append(b, '-')
	b = AppendHex(b, c.Span[:])
	return append(b, '-', B3Sampled(c)[0])
}

// B3Sampled is the decision as x-b3-sampled says it: "1" or "0".
func B3Sampled(c *Context) string {
	if c.Sampling == Sampled {
		return "1"
	}
	return "0"
}
