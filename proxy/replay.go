package proxy

import (
	"turnout/internal/bound"
	"turnout/internal/share"
	"turnout/internal/spare"
)

// Limits of the request bodies that are kept for another attempt, in bytes.
const (
	largeBody   = 16 << 10  // of one request
	refusedBody = 128 << 10 // of a request that its endpoint may refuse, before it opens the window

	// DefaultKeptBodies is the default of Config.KeptBodies.
	DefaultKeptBodies = 4 << 20
)

// bodySizes is the number of capacities of a kept body.
const bodySizes = 3

// bodySize returns the capacity of a body of n bytes, as an index of bodies.free and in bytes.
func bodySize(n int) (step, size int) {
	switch {
	case n <= 2<<10:
		return 0, 2 << 10
	case n <= largeBody:
		return 1, largeBody
	}
	return 2, refusedBody
}

// keptBody holds the body bytes of a request that were sent before its response has begun. It
// belongs to one exchange, and only that exchange releases it. So no other request can change
// whether a request is repeatable.
type keptBody struct {
	b         []byte // its capacity is one of bodySize
	namespace string // charged for it
}

// bodies are the kept bodies of a worker. A new body that exceeds the share of its namespace is
// not kept; its request is sent once.
type bodies struct {
	share share.Pool // of the capacities
	free  [bodySizes]spare.List[keptBody]
}

// Kept returns the memory of the request bodies that are kept for another attempt, in bytes.
func (w *Worker) Kept() int { return w.bodies.share.Used() }

// lend returns an empty body with space for n bytes, at most refusedBody. It returns nil if the
// namespace has used up its share.
func (s *bodies) lend(namespace string, n int) *keptBody {
	step, size := bodySize(n)
	if !s.share.Take(namespace, size) {
		return nil
	}
	k := s.free[step].Get()
	if k == nil {
		k = &keptBody{b: make([]byte, 0, size)}
	}
	k.namespace = namespace
	return k
}

// giveBack ends the use of a body.
func (s *bodies) giveBack(k *keptBody) {
	s.share.Give(k.namespace, cap(k.b))
	k.b, k.namespace = k.b[:0], ""
	step, _ := bodySize(cap(k.b))
	s.free[step].Put(k)
}

// trim releases the memory of unused bodies, except for as many as were used since the last call.
func (s *bodies) trim() {
	for i := range s.free {
		s.free[i].Trim()
	}
}

// kept returns the body bytes that another attempt sends: those kept so far, or the whole body of
// a copy.
func (ex *Exchange) kept() []byte {
	switch {
	case ex.copied != nil:
		return ex.copied.body
	case ex.body != nil:
		return ex.body.b
	}
	return nil
}

// repeatable reports whether an attempt can send the request from its first byte: all body bytes
// received from the client are available. It is computed from the bytes themselves, so that no
// event can contradict it.
func (ex *Exchange) repeatable() bool {
	return !ex.trailed && ex.bytesIn == 0 || ex.copied != nil || !ex.trailed && ex.bytesIn == uint64(len(ex.kept()))
}

// keep stores body bytes before they are sent. If there is no space or no use for them, the
// exchange releases its kept bytes and is no longer repeatable.
func (ex *Exchange) keep(p []byte) {
	may, asked := ex.up.MayRefuse()
	most := refusedBody
	if asked {
		most = largeBody
	}
	k := ex.body
	// An HTTP/1.1 server never declares a request unprocessed.
	if !may && !ex.idemp || k != nil && len(k.b) > most {
		ex.forgetBody()
		return
	}
	n := len(ex.kept()) + len(p)
	if k == nil {
		n = max(n, int(min(ex.req.ContentLength, refusedBody+1)))
	}
	if n > most || !ex.reserve(n) {
		ex.w.Reached(bound.ReplayBodies)
		ex.forgetBody()
		return
	}
	ex.body.b = append(ex.body.b, p...)
}

// reserve makes space for n bytes in the kept body. It returns false if the namespace has used up
// its share; the body does not change then.
func (ex *Exchange) reserve(n int) bool {
	s, k := &ex.w.bodies, ex.body
	if k != nil && n <= cap(k.b) {
		return true
	}
	larger := s.lend(ex.route.Namespace(), n)
	if larger == nil {
		return false
	}
	if k != nil {
		larger.b = append(larger.b, k.b...)
		s.giveBack(k)
	}
	ex.body = larger
	return true
}

// forgetBody releases the kept body. The exchange stays repeatable only if no body byte has been
// received.
func (ex *Exchange) forgetBody() {
	if k := ex.body; k != nil {
		ex.body = nil
		ex.w.bodies.giveBack(k)
	}
}

// repeat sends the kept body again. It returns true if the endpoint is congested.
func (ex *Exchange) repeat(up Upstream) (full bool) {
	full = up.Body(ex.kept())
	if ex.reqEnd && ex.up == up {
		up.End(Section{})
	}
	return full
}
