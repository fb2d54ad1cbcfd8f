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
	if k.checks.Get(ck.of) == ck {
		k.checks.Delete(ck.of)
	}
	k.unschedule(ck)
	if t := ck.turn; t != nil {
		c := t.c
		ck.rest()
		if c != nil {
			c.CloseNow(true)
		}
	}
	k.groups = [2]group{}
	for other := range k.checks.All() {
		switch t := other.turn; {
		case t == nil:
		case t.c != nil:
			t.place.due.run(other)
		case t.waits:
			t.place.due.addWaiting(other)
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
