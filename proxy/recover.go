package proxy

import "runtime/debug"

// recoverRules makes an exchange fail, and it alone, when the rules for its message panic: nothing that others share has been
// touched by then. A panic elsewhere ends connections (reactor.Config.Panicked), because nobody knows in what state it left things.
// It is deferred by the functions that carry out rules.
func (ex *Exchange) recoverRules(failed *Reason) {
	notify := ex.cfg.Panicked
	if notify == nil {
		return
	}
	if v := recover(); v != nil {
		*failed = ReasonInternal
		notify(v, debug.Stack())
	}
}

// Interrupted tells that something on this worker's loop panicked outside the rules for a message, and that the panic was
// recovered. The exchange or relay that was at work, if one was, is given up, whatever state it is in: both its connections end,
// its server and what else it holds is given back, and its memory is not used again.
func (w *Worker) Interrupted() {
	a := w.current
	w.current = nil
	if a == nil || a.state == stateFree {
		return
	}
	if a.timer != nil {
		a.timer.Stop()
	}
	for _, step := range []func(){
		a.self.abandon,
		func() {
			if a.state = stateDone; !a.over { // else finish has counted it
				a.over = true
				increment(&w.counts.reasons[ReasonInternal], 1)
			}
			a.giveBack()
		},
		a.self.reset,
	} {
		recovered(step)
	}
}

// recovered does what may fail for the same reason as what it follows.
func recovered(f func()) {
	defer func() { _ = recover() }()
	f()
}

// reset implements party.
func (ex *Exchange) reset() {
	if ex.gzip != nil {
		ex.gzip = nil // its state is unknown: no other response uses it
		ex.w.compressing.Give(ex.route.Namespace(), 1)
	}
	ex.dropSpan()
	ex.forgetBody()
	ex.endCopy(CopyFailed)
	if ex.copies != nil {
		ex.dropCopies()
	}
	ex.down.Abort(FaultInternal)
}

// statusOfRules is the status of an answer to a request that the rules for messages ended.
func (r Reason) statusOfRules() int {
	switch r {
	case ReasonLoop:
		return 508
	case ReasonMatchWork:
		return 431
	}
	return 500
}
