package h2session

import "turnout/internal/wire/h2frame"

// Windows in bytes. A stream begins with what RFC 9113 section 6.9.2 gives it and doubles whenever half of its window was
// used without its sink having been paused; a connection does the same.
//
// What waits in paused streams is bounded by their windows alone: that of the connection is opened again for every byte that
// has arrived, so that streams whose sinks are slow shut their own windows and nobody else's. Their sum is bounded by the
// number of streams, and by what all windows of a connection may grow together.
const (
	firstWindow   = 65535
	maxWindow     = 1 << 20
	connWindow    = 256 << 10
	maxConnWindow = 4 << 20
	maxGrown      = 4 << 20
	// grownWaiting is how many bytes may wait in the streams of a loop while windows still grow.
	grownWaiting = 16 << 20
	// maxGrants bounds the WINDOW_UPDATEs that are queued for a peer that does not read; the others follow when it does.
	maxGrants = 100
)

// inWindow is a window that the peer sends into.
type inWindow struct {
	size   int32 // what it is filled up to
	left   int32 // what the peer may still send
	used   int32 // used since the last update
	paused bool  // since the last update
}

// takeBytes notes n received bytes; false when the peer sent more than it may.
func (w *inWindow) takeBytes(n int) bool {
	if n > int(w.left) {
		return false
	}
	w.left -= int32(n)
	return true
}

// use notes that n of the taken bytes are out of the way. True: it is time to open the window again.
func (w *inWindow) use(n int) bool {
	w.used += int32(n)
	return w.used >= w.size/2
}

// open returns by how much to open the window, which grows by most at the most.
func (w *inWindow) open(most int32) uint32 {
	more := w.used
	if !w.paused && most > 0 {
		grown := min(w.size, most)
		more += grown
		w.size += grown
	}
	w.used, w.paused = 0, false
	w.left += more
	return uint32(more)
}

// mayGrant says that a WINDOW_UPDATE may be queued.
func (s *Session) mayGrant() bool {
	if !s.out.Congested() {
		return true
	}
	s.granted++
	return s.granted <= maxGrants
}

// credit opens the connection's window for n bytes that have arrived.
func (s *Session) credit(n int) {
	if s.in.use(n) && !s.over && s.mayGrant() {
		s.commit(h2frame.AppendWindowUpdate(s.begin(), 0, s.in.open(maxConnWindow-s.in.size)))
	}
}

// used opens the stream's window for n bytes its sink took.
func (st *Stream) used(n int) {
	s := st.s
	if st.early || !st.win.use(n) || s == nil || st.recvEnd || !s.mayGrant() {
		return
	}
	most := min(maxWindow-st.win.size, maxGrown-s.grown)
	if s.cfg.Buffers.waiting() > grownWaiting {
		most = 0
	}
	before := st.win.size
	more := st.win.open(most)
	s.grown += st.win.size - before
	s.commit(h2frame.AppendWindowUpdate(s.begin(), st.id, more))
}

// grant opens the windows that were not opened because the peer did not read.
func (s *Session) grant() {
	if s.granted == 0 {
		return
	}
	s.granted = 0
	s.credit(0)
	for _, st := range s.open {
		st.used(0)
	}
}
