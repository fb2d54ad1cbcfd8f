package tlsmux

import "iter"

// routine is a coroutine (iter.Pull) that computes one handshake after the other. crypto/tls makes its stack grow to 16 KiB, in
// steps that copy it; that happens once. It has to be resumed on the thread where it was made.
type routine struct {
	h     *handshake // that it computes
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

func newRoutine() *routine {
	r := new(routine)
	r.next, r.stop = iter.Pull(r.run)
	return r
}

// run is the coroutine.
func (r *routine) run(yield func(struct{}) bool) {
	r.yield = yield
	for more := true; more; more = yield(struct{}{}) {
		r.h.run()
	}
}

// idleRoutines is how many routines without a handshake are kept at most where others have one.
const idleRoutines = 32

// routines are those of one thread. Those without a handshake are kept while there is another one with one, so nobody has to
// end them.
type routines struct {
	bound int // have a handshake
	idle  []*routine
}

// routineFor returns a routine for h.
func (rs *routines) routineFor(h *handshake) (r *routine) {
	rs.bound++
	if n := len(rs.idle); n > 0 {
		r, rs.idle = rs.idle[n-1], rs.idle[:n-1]
	} else {
		r = newRoutine()
	}
	r.h = h
	return r
}

// giveBack takes back the routine of a handshake that has ended.
func (rs *routines) giveBack(r *routine) {
	rs.bound--
	r.h = nil
	rs.idle = append(rs.idle, r)
	if rs.bound > 0 && len(rs.idle) <= idleRoutines {
		return
	}
	keep := idleRoutines
	if rs.bound == 0 {
		keep = 0
	}
	for _, r := range rs.idle[keep:] {
		r.stop()
	}
	clear(rs.idle[keep:])
	rs.idle = rs.idle[:keep]
}
