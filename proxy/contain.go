package proxy

import "runtime/debug"

// contain makes an exchange fail, and it alone, when the rules for its message panic: nothing that others share has been
// touched by then. A panic anywhere else ends the process, because nobody knows what it left behind. It is deferred by the
// functions that carry out rules.
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
