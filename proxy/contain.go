package proxy

import "runtime/debug"

// contain makes an exchange fail, and it alone, when the rules for its message panic: nothing that others share has been
// touched by then. A panic elsewhere ends connections (reactor.Config.Panicked), because nobody knows what it left behind.
// It is deferred by the functions that carry out rules.
func (ex *Exchange) contain(failed *Reason) {
	told := ex.w.cfg.Panicked
	if told == nil {
		return
	}
	if v := recover(); v != nil {
		*failed = ReasonInternal
		told(v, debug.Stack())
	}
}

// Interrupted tells that something on this worker's loop panicked outside the rules for a message. The exchange that was at
// work is given up, whatever state it is in: both its connections end, its server and what else it holds is given back, and
// its memory is not used again.
func (w *Worker) Interrupted() {
	ex := w.current
	w.current = nil
	if ex == nil || ex.down == nil {
		return
	}
	down := ex.down
	ex.timer.Stop()
	for _, end := range []func(){
		ex.abandon,
		func() {
			if ex.state != stateDone { // else account has counted it
				ex.state = stateDone
				add(&w.counts.reasons[ReasonInternal], 1)
			}
			if ex.gzip != nil {
				ex.gzip = nil
				w.compressing-- // it is not used again either
			}
			w.tunnels.leave(ex.tunnel)
			ex.noRepeat()
			ex.ticket.Leave()
			ex.giveBack()
			if ex.leased {
				ex.leased = false
				ex.lease.Release()
			}
		},
		func() { down.Abort(FaultInternal) },
	} {
		attempt(end)
	}
}

// attempt does what may fail for the same reason as what it follows.
func attempt(f func()) {
	defer func() { _ = recover() }()
	f()
}
