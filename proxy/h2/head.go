package h2

import (
	"turnout/internal/wire/field"
	"turnout/internal/wire/h2frame"
	"turnout/internal/wire/h2session"
	"turnout/proxy"
)

// ReadHead reads a header list, pseudo-fields first and names in lower case, as a request of a client's connection; end says that no body follows.
// If it is refused it is answered with a status, or, status 0 and no head, its stream is reset; detail says why.
func ReadHead(fields []field.Field, end bool) (h *proxy.Head, status int, detail string) {
	b := new(h2frame.Block)
	b.Reset(h2frame.Request, new(h2session.Config).HeadLimits())
	for _, f := range fields {
		b.AddField(f.Name, f.Value)
	}
	if f := b.Finish(end); f != h2frame.FaultNone {
		return nil, f.Status(), f.Reason()
	}
	head := requestHead(b, end)
	return &head, 0, ""
}
