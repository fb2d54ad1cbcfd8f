package h1

import (
	"turnout/internal/spare"
	"turnout/internal/wire/http1"
	"turnout/proxy"
)

// ReadHead reads p, which begins with a request head, as a connection with these limits does, and copies it. none says that the request
// has no body. If it is refused, or not complete, it is answered with a status other than 0; detail is what Record.Detail says then.
func ReadHead(p []byte, limits http1.Limits) (h *proxy.Head, none bool, status int, detail string) {
	p = p[http1.SkipEmptyLines(p):]
	end, err := http1.FindHeadEnd(p, 0, limits)
	if err == nil && end == 0 {
		return nil, false, 400, incompleteHead
	}
	rq := new(request)
	if err == nil {
		err = rq.parse(p[:end], new(spare.List[largeHead]), limits)
	}
	if err != nil {
		status, detail = verdict(err)
		return nil, false, status, detail
	}
	return &rq.head, rq.bodyless(), 0, ""
}

// incompleteHead is the detail of a head that ended too early.
const incompleteHead = "incomplete-head"
