package proxy

// Progress is implemented by a Downstream or Upstream that knows how many bytes its
// peer has taken: a side that takes them slowly is waited for, one that takes none
// is not.
type Progress interface {
	// Progress is how many bytes the peer has taken so far, and how many it has yet to.
	Progress() (taken uint64, left int)
}

// noteProgress remembers how far a side is that has just become congested.
func (ex *Exchange) noteProgress(side any) {
	if p, ok := side.(Progress); ok {
		ex.taken, _ = p.Progress()
	}
}

// progressed reports that the side that is waited for has bytes to take and took some
// since it was looked at last: it has its whole time again.
func (ex *Exchange) progressed(waitClient bool) bool {
	var side any
	switch {
	case waitClient && ex.downFull:
		side = ex.down
	case !waitClient:
		side = ex.up
	}
	p, ok := side.(Progress)
	if !ok {
		return false
	}
	moved, left := p.Progress()
	if left == 0 || moved == ex.taken {
		return false
	}
	ex.taken = moved
	return true
}

// Timed is implemented by an Upstream that shares its connection with others: before Abort it is told that the endpoint did not
// answer in time.
type Timed interface{ TimedOut() }

// timedOut tells it.
func (ex *Exchange) timedOut() {
	if t, ok := ex.up.(Timed); ok {
		t.TimedOut()
	}
}
