package proxy

import "turnout/internal/work"

// IterationRequests is the number of requests that a connection of a client may begin in one
// iteration of its loop, in either protocol. The rest begins in later iterations, after the events
// of other connections. A request whose rules take much work counts as several, see iterationWork.
const IterationRequests = 16

// IterationAnswers is the number of response heads that a connection of a pod may have relayed in
// one iteration. A pod may hold back many responses and send all of them at once. A head whose
// rules take much work counts as several.
const IterationAnswers = 16

// iterationWork is the work of IterationRequests requests or IterationAnswers heads. It is a small
// part of the work that one request may take, so such a request ends the turn of its connection.
const iterationWork = work.Request / 4

// weigh returns the number of further requests that an event of ex counts as. taken is the work
// that the exchange had taken before. The event may have ended and released it.
func (ex *Exchange) weigh(w *Worker, taken int) (further int) {
	after := w.taken
	if after < 0 {
		after = ex.worked()
	}
	w.taken = -1
	return max(after-taken, 0) * IterationRequests / iterationWork
}

// worked returns the work that the exchange has taken, of one whose request has begun.
func (ex *Exchange) worked() int { return work.Request - ex.work.Left() }
