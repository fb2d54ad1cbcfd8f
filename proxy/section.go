package proxy

import (
	"turnout/internal/bound"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing/header"
)

// Section is a header section that has passed the policy of its direction: the head of an interim,
// final or local response, or trailers. Codecs get every section for a client, and trailers for an
// endpoint, in this form only. responsePolicy, requestTrailers and Worker.Refusal make it; the zero
// value is an empty trailer section. A Section is valid for the call that it is passed to.
type Section struct {
	head *Head
}

// Head is the section as a head, nil if the section is empty. Only the fields of trailers are set.
// Callers do not change it.
func (s Section) Head() *Head { return s.head }

// Fields are the fields of the section in their order.
func (s Section) Fields() []Field {
	if s.head == nil {
		return nil
	}
	return s.head.Fields
}

// sectionKind is the place of a header section in a response.
type sectionKind uint8

const (
	interimSection sectionKind = iota // 1xx response of an endpoint, other than 101
	finalSection                      // final response of an endpoint, or its 101
	localSection                      // response that the router makes
	trailerSection                    // trailers of an endpoint's response
)

// Bounds of the interim responses to one request. They are optional for clients (RFC 9110 section
// 15.2), so an endpoint cannot make the router hold more of them.
const (
	// MaxInterim is the number of interim responses that an endpoint may send before a final one.
	MaxInterim = 16
	// maxInterimBytes is the limit of names and values of fields that go to the client. Interim
	// responses beyond it are dropped, except 100 (Continue), which is sent without fields.
	maxInterimBytes = 64 << 10
)

// smallHead is the size of the largest final head or trailer section that is sent while the client
// takes no output, in bytes of names and values. So streams of a connection do not delay each
// other's responses, and queue no more than their bodies.
const smallHead = 4 << 10

// Holds reports whether a response head has to wait because the client does not take its output. It
// pauses the upstream then. The codec presents the head again after Resume. If an interim head
// cannot wait, the codec calls DropInterim. 100 (Continue) and 101 never wait.
func (ex *Exchange) Holds(h *Head) bool {
	if ex.state != stateSend || h.Status == 100 || h.Status == 101 || !ex.down.Congested() {
		return false
	}
	if h.Status >= 200 && fieldBytes(h.Fields) <= smallHead {
		return false
	}
	was, _ := ex.enter(eventHead)
	ex.holdResponse()
	ex.w.leave(was)
	return true
}

// HoldsTrailers is Holds for the trailers that end a response.
func (ex *Exchange) HoldsTrailers(fields []Field) bool {
	if ex.state != stateBody || len(fields) == 0 || !ex.down.Congested() || fieldBytes(fields) <= smallHead {
		return false
	}
	was, _ := ex.enter(eventAnswerEnd)
	ex.holdResponse()
	ex.w.leave(was)
	return true
}

// fieldBytes returns the bytes of names and values of fields.
func fieldBytes(fields []Field) (n int) {
	for i := range fields {
		n += len(fields[i].Name) + len(fields[i].Value)
	}
	return n
}

// responseInformational relays an interim response.
func (ex *Exchange) responseInformational(h *Head) {
	ex.lastUp = ex.cfg.Clock.Now()
	if ex.req.Minor == 0 || ex.copied != nil {
		return
	}
	ex.interimBytes += fieldBytes(h.Fields)
	spent := ex.interimBytes > maxInterimBytes
	if spent {
		ex.Reached(bound.InterimResponses)
	}
	switch {
	case h.Status == 100: // the client may wait for it (RFC 9110 section 10.1.1)
		if spent || ex.down.Congested() {
			h.Fields = h.Fields[:0]
		}
	case spent:
		return
	}
	switch s, failed := ex.responsePolicy(interimSection, h); failed {
	case ReasonOK:
		ex.down.Informational(s)
	case ReasonMatchWork: // it is dropped
	default:
		ex.abandon()
		ex.answer(500, failed)
	}
}

// DropInterim counts an interim response that a codec drops because its client takes no output.
func (ex *Exchange) DropInterim() { ex.Reached(bound.InterimResponses) }

// holdResponse pauses the endpoint until the client takes its output.
func (ex *Exchange) holdResponse() {
	if ex.downFull {
		return
	}
	ex.downFull = true
	ex.lastDown = ex.cfg.Clock.Now()
	ex.noteProgress(ex.down)
	if ex.up != nil {
		ex.up.Pause()
	}
}

// responseTrailers is responsePolicy for trailers.
func (ex *Exchange) responseTrailers(fields []Field) (Section, Reason) {
	return ex.responsePolicy(trailerSection, ex.local.trailers(fields))
}

// requestTrailers is the only way of a request's trailers to an endpoint. It removes the fields
// that the request policy removes, replaces or adds in a head, so that trailers carry nothing that
// a head could not. Trailers that would cost too much are dropped: they are optional for a
// recipient (RFC 9110 section 6.5.1).
func (ex *Exchange) requestTrailers(fields []Field) Section {
	if len(fields) == 0 || ex.route == nil {
		return Section{}
	}
	h := ex.local.trailers(fields)
	if ex.restrictRequest(h) != ReasonOK {
		return Section{}
	}
	return Section{head: h}
}

func (ex *Exchange) restrictRequest(h *Head) (failed Reason) {
	defer ex.recoverRules(&failed)
	pol, cfg := ex.route.Policy(), ex.cfg
	lists := [...]*header.Actions{cfg.RequestActions, pol.RequestActions, nil}
	if b := ex.backend; b != nil {
		lists[2] = b.RequestActions()
	}
	cost := 2 * work.Fields(len(h.Fields))
	for _, a := range lists {
		cost += a.RestrictWork(len(h.Fields))
	}
	if !ex.spare(cost) {
		return ReasonMatchWork
	}
	kept := h.Fields[:0]
	for _, f := range h.Fields {
		switch name := f.Name; {
		case classify(name) != kindPlain, field.AboutAuthentication(name), ex.req.Options != nil && nominated(ex.req.Options, name),
			cfg.UniqueID != nil && string(name) == string(cfg.UniqueID.name),
			ex.w.tracer.Tracing != nil && classifyTrace(name).format()&ex.w.tracer.cfg.Formats != 0,
			pol.SessionHeader.IsSet() && string(name) == pol.SessionHeader.String(),
			ex.client.Identity != nil && field.Index(ex.client.Identity.Fields, string(name)) >= 0:
			continue
		}
		kept = append(kept, f)
	}
	clear(h.Fields[len(kept):])
	h.Fields = kept
	for _, a := range lists {
		h.Fields = a.Restrict(h.Fields)
	}
	return ReasonOK
}
