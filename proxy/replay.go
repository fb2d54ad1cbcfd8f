package proxy

import (
	"turnout/internal/bound"
	"turnout/internal/spare"
)

// Bodies that are kept to be sent again, in bytes.
const (
	smallBody = 2 << 10  // the room that a body gets first
	largeBody = 16 << 10 // the most that is kept of one request
	maxBodies = 4 << 20  // of all requests of a worker
)

// Refuser is implemented by an Upstream whose peer can say that it did nothing with a request (FaultUnprocessed), though some of
// its body has been sent.
type Refuser interface {
	// MayRefuse says that it still can.
	MayRefuse() bool
}

// keptBody is what was handed over of the body of a request whose answer has not begun.
type keptBody struct {
	b            []byte // its capacity is smallBody or largeBody
	ex           *Exchange
	older, newer *keptBody
}

// bodies are the kept bodies of a worker. When they would take too much the oldest goes: its request has waited for longest and is
// likely to be one that takes its time, so that whoever collects such requests cannot use up what those of others need for
// a moment.
type bodies struct {
	held           int // capacity of all
	oldest, newest *keptBody
	small, large   spare.List[keptBody]
}

// Kept is how many bytes of memory request bodies take that are kept to be sent again.
func (w *Worker) Kept() int { return w.bodies.held }

// take gives an empty body room for n bytes, at most largeBody, and lets others go if there is none.
func (s *bodies) take(n int) *keptBody {
	list, size := &s.small, smallBody
	if n > smallBody {
		list, size = &s.large, largeBody
	}
	for s.held+size > maxBodies {
		s.oldest.ex.unkeep()
	}
	k := list.Get()
	if k == nil {
		k = &keptBody{b: make([]byte, 0, size)}
	}
	s.held += size
	if k.older = s.newest; k.older != nil {
		k.older.newer = k
	} else {
		s.oldest = k
	}
	s.newest = k
	return k
}

// leave takes a body out; its bytes are there until put.
func (s *bodies) leave(k *keptBody) {
	s.held -= cap(k.b)
	if k.older != nil {
		k.older.newer = k.newer
	} else {
		s.oldest = k.newer
	}
	if k.newer != nil {
		k.newer.older = k.older
	} else {
		s.newest = k.older
	}
	k.ex, k.older, k.newer = nil, nil, nil
}

// put gives a body that has left back.
func (s *bodies) put(k *keptBody) {
	k.b = k.b[:0]
	if cap(k.b) == smallBody {
		s.small.Put(k)
	} else {
		s.large.Put(k)
	}
}

// keep remembers body bytes that are about to be handed over. It is not called any more once that was too much.
func (ex *Exchange) keep(p []byte) {
	s, k := &ex.w.bodies, ex.body
	n := len(p)
	if k == nil {
		if !ex.idemp { // a server of HTTP/1.1 never says that it did nothing
			if r, ok := ex.up.(Refuser); !ok || !r.MayRefuse() {
				ex.bodySent = true
				return
			}
		}
		n = max(n, int(min(ex.req.ContentLength, largeBody+1)))
	} else {
		n += len(k.b)
	}
	switch {
	case n > largeBody:
		ex.unkeep()
		return
	case k == nil:
		ex.body = s.take(n)
	case n > cap(k.b):
		s.leave(k)
		ex.body = s.take(n)
		ex.body.b = append(ex.body.b, k.b...)
		s.put(k)
	}
	ex.body.ex = ex
	ex.body.b = append(ex.body.b, p...)
}

// unkeep gives up to keep the body because of a bound: what was handed over of it cannot be sent again.
func (ex *Exchange) unkeep() {
	ex.w.Reached(bound.ReplayBodies)
	ex.noRepeat()
}

// noRepeat lets go of the body: the request is not sent again any more.
func (ex *Exchange) noRepeat() {
	ex.bodySent = true
	if k := ex.body; k != nil {
		ex.body = nil
		ex.w.bodies.leave(k)
		ex.w.bodies.put(k)
	}
}

// repeat hands the kept body over once more. True: the endpoint has enough for now.
func (ex *Exchange) repeat(up Upstream) (full bool) {
	full = up.Body(ex.body.b)
	if ex.reqEnd && ex.up == up {
		up.End(nil)
	}
	return full
}
