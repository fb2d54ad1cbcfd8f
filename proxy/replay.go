package proxy

import (
	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/spare"
)

// Bodies that are kept to be sent again, in bytes.
const (
	largeBody   = 16 << 10  // the most that is kept of one request
	refusedBody = 128 << 10 // the same while the endpoint may refuse it, and has not asked for more
	maxBodies   = 4 << 20   // of all requests of a worker
)

// The memory of a body grows in so many steps.
const bodySizes = 3

// bodySize is the capacity that a body of n bytes has, as a step and in bytes.
func bodySize(n int) (step, size int) {
	switch {
	case n <= 2<<10:
		return 0, 2 << 10
	case n <= largeBody:
		return 1, largeBody
	}
	return 2, refusedBody
}

// keptBody is what was handed over of the body of a request whose answer has not begun.
type keptBody struct {
	b    []byte    // its capacity is one of bodySize
	ex   *Exchange // nil = that of a requestCopy
	node list.Node[keptBody]
}

// bodies are the kept bodies of a worker. When they would take too much the oldest goes: its request has waited for longest and is
// likely to be one that takes its time, so that a pod or client that collects such requests cannot use up what those of others need for
// a moment.
type bodies struct {
	held int                 // capacity of all
	kept list.List[keptBody] // the oldest first
	free [bodySizes]spare.List[keptBody]
}

// Kept is how many bytes of memory request bodies take that are kept to be sent again.
func (w *Worker) Kept() int { return w.bodies.held }

// lend makes an empty body with capacity for n bytes, at most refusedBody, and lets others go if that is too much.
func (s *bodies) lend(n int) *keptBody {
	step, size := bodySize(n)
	for s.held+size > maxBodies {
		s.kept.First().ex.unkeep()
	}
	k := s.free[step].Get()
	if k == nil {
		k = &keptBody{b: make([]byte, 0, size)}
	}
	s.held += size
	s.kept.Push(&k.node, k)
	return k
}

// leave takes a body out; its bytes are there until giveBack.
func (s *bodies) leave(k *keptBody) {
	s.held -= cap(k.b)
	k.node.Remove()
	k.ex = nil
}

// giveBack ends the use of a body that has left.
func (s *bodies) giveBack(k *keptBody) {
	k.b = k.b[:0]
	step, _ := bodySize(cap(k.b))
	s.free[step].Put(k)
}

// trim leaves to the collector what was kept for more bodies than there were since the last call.
func (s *bodies) trim() {
	for i := range s.free {
		s.free[i].Trim()
	}
}

// keep remembers body bytes that are about to be handed over. It is not called any more once that was too much, or of no use.
func (ex *Exchange) keep(p []byte) {
	s, k := &ex.w.bodies, ex.body
	may, asked := ex.up.MayRefuse()
	most := refusedBody
	if asked {
		most = largeBody
	}
	if !may && !ex.idemp || k != nil && len(k.b) > most { // a server of HTTP/1.1 never says that it did nothing
		ex.noRepeat()
		return
	}
	n := len(p)
	if k == nil {
		n = max(n, int(min(ex.req.ContentLength, refusedBody+1)))
	} else {
		n += len(k.b)
	}
	switch {
	case n > most:
		ex.unkeep()
		return
	case k == nil:
		ex.body = s.lend(n)
	case n > cap(k.b):
		s.leave(k)
		ex.body = s.lend(n)
		ex.body.b = append(ex.body.b, k.b...)
		s.giveBack(k)
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
		if k.ex == nil {
			return // it is of a copy
		}
		ex.w.bodies.leave(k)
		ex.w.bodies.giveBack(k)
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
