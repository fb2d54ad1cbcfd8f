package health

import "runtime/debug"

// recovers is deferred around what is done for one check; see Config.Panicked.
func (ck *check) recovers() {
	report := ck.k.cfg.Panicked
	if report == nil {
		return
	}
	if v := recover(); v != nil {
		report(v, debug.Stack())
		ck.giveUp()
	}
}

// giveUp makes the check no more, in whatever state it is, and counts anew what the others hold.
func (ck *check) giveUp() {
	k := ck.k
	if k.checks[ck.of] == ck {
		delete(k.checks, ck.of)
	}
	ck.timer.Stop()
	if c := ck.c; c != nil {
		ck.c = nil
		c.CloseNow(true)
	}
	k.groups = [2]group{}
	for _, other := range k.checks {
		switch {
		case other.c != nil:
			other.place.due.run(other)
		case other.waits:
			other.place.due.addWaiting(other)
		}
	}
	if !ck.up {
		ck.up = true
		k.cfg.Changed(ck.of, true, Result{Outcome: Unchecked})
	}
	k.cfg.Loop.Post(k.resume)
}

// resume starts what waits and nobody else will start.
func (k *Checker) resume() {
	for i := range k.groups {
		k.startNext(&k.groups[i])
	}
}
