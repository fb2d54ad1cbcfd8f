package session

import "turnout/proxy/h2/wire"

// Windows in bytes. A stream begins with what RFC 9113 section 6.9.2 gives it and doubles whenever half of its window was
// used without its sink having been paused; a connection does the same.
const (
	firstWindow   = 65535
	maxWindow     = 1 << 20
	connWindow    = 256 << 10
	maxConnWindow = 4 << 20
	// freeWaiting is how many bytes of paused streams a connection's window is opened again for: a few streams
	// whose sinks are slow do not hold up the others, many of them do.
	freeWaiting = 256 << 10
)

// inWindow is a window that the peer sends into.
type inWindow struct {
	size   int32 // what it is filled up to
	left   int32 // what the peer may still send
	most   int32 // what size may grow to
	used   int32 // used since the last update
	paused bool  // since the last update
}

// take notes n received bytes; false when the peer sent more than it may.
func (w *inWindow) take(n int) bool {
	if n > int(w.left) {
		return false
	}
	w.left -= int32(n)
	return true
}

// use notes that n of the taken bytes are out of the way and returns by how much to open the window now, 0 = not yet.
func (w *inWindow) use(n int) uint32 {
	w.used += int32(n)
	if w.used < w.size/2 {
		return 0
	}
	more := w.used
	if !w.paused && w.size < w.most {
		grown := min(2*w.size, w.most)
		more += grown - w.size
		w.size = grown
	}
	w.used, w.paused = 0, false
	w.left += more
	return uint32(more)
}

// credit opens the connection's window for bytes that are used, or wait within the free allowance.
func (s *Session) credit(n int) {
	s.owed += n
	free := s.owed - max(s.held-freeWaiting, 0)
	if free <= 0 {
		return
	}
	s.owed -= free
	if more := s.in.use(free); more > 0 && !s.over {
		s.commit(wire.AppendWindowUpdate(s.begin(), 0, more))
	}
}

// used opens the stream's window for bytes its sink took.
func (st *Stream) used(n int) {
	if more := st.win.use(n); more > 0 && !st.recvEnd && st.s != nil {
		st.s.commit(wire.AppendWindowUpdate(st.s.begin(), st.id, more))
	}
}
