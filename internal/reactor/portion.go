package reactor

const (
	// portionPipe is how much of a portion a pipe holds at most.
	portionPipe = 256 << 10
	// portionShare bounds what is moved of a portion per iteration: its neighbours are requests and answers.
	portionShare = 512 << 10
	// portionPipes is how many pipes the portions of a loop have together, shared by their owners.
	// The process copies other portions. So peers that do not read hold no more than that of the
	// system's memory and descriptors.
	portionPipes = 64
	// portionsKept is how many Splices are kept for the next portions.
	portionsKept = 64
)

// Portion is who has a number of bytes copied by Loop.SpliceN. It is called on the loop.
type Portion interface {
	// Moved says that dst has been given n bytes more. It must not use the two Conns.
	Moved(n uint64)
	// Stalled says that dst takes nothing any more, and later that it does again. It must not use the two Conns.
	Stalled(stalled bool)
	// Copied says that dst has been given all. What src receives next is for its handler.
	Copied()
}

// portion is what a Splice has that ends after a number of bytes.
type portion struct {
	whose   Portion // nil: the Splice is none
	owner   string  // uses its share of pipes
	left    int64   // bytes to be taken from src
	stalled bool    // as Stalled was called
}

// SpliceN copies the next n bytes that src receives to dst, in the kernel, and leaves both as they
// were. Until then src's handler gets no Data. What dst has queued goes first. If src ends before,
// or one of the two fails, Copied is not called: their handlers get those events. The system
// queues no more for dst than for other Conns. owner is an opaque name: portions of one owner have
// one share of the loop's pipes. SpliceN returns false if it cannot splice, for the reasons of
// ErrNoSplice or because src keeps input that was not consumed.
func (l *Loop) SpliceN(src, dst *Conn, n int64, owner string, whose Portion) bool {
	if len(src.kept()) > 0 || n <= 0 || !l.splices(src, dst) {
		return false
	}
	var s *Splice
	if k := len(l.portions); k > 0 {
		s, l.portions = l.portions[k-1], l.portions[:k-1]
	} else {
		s = new(Splice)
	}
	*s = Splice{src: src, dst: dst, portion: portion{whose: whose, owner: owner, left: n}}
	s.begin()
	return true
}

// share is how many bytes may be moved in an iteration.
func (s *Splice) share() int {
	if s.whose != nil {
		return portionShare
	}
	return spliceTurn
}

// most is how many bytes may be taken from src at once: all, or some of a portion.
func (s *Splice) most(all, some int) int {
	if s.whose != nil {
		return int(min(s.left, int64(some)))
	}
	return all
}

// taken says that no more is to be taken from src.
func (s *Splice) taken() bool { return s.whose != nil && s.left == 0 }

// portionMoved is called when a portion has moved as far as it goes for now. True: that was all of it, and s is over.
func (s *Splice) portionMoved() bool {
	src, dst, whose := s.src, s.dst, s.whose
	more := s.left > 0 || s.held > 0 || dst.Pending() > 0
	if stalled := more && dst.flags&flagWritable == 0; stalled != s.stalled {
		s.stalled = stalled
		whose.Stalled(stalled)
	}
	if more {
		return false
	}
	s.finish(nil)
	if l := src.loop; len(l.portions) < portionsKept {
		*s = Splice{}
		l.portions = append(l.portions, s)
	}
	src.ready() // bytes may have come that are no part of it
	whose.Copied()
	return true
}

// getPipe takes a pipe; a portion takes it from the share of its owner.
func (s *Splice) getPipe(eng splicer) (*pipe, error) {
	l := s.dst.loop
	if s.whose != nil && !l.portionPipes.Take(s.owner, 1) {
		return nil, ErrExhausted
	}
	p, err := eng.getPipe()
	if err != nil && s.whose != nil {
		l.portionPipes.Give(s.owner, 1)
	}
	return p, err
}

// putPipe returns the pipe, with the bytes that it holds.
func (s *Splice) putPipe(eng splicer) {
	if s.whose != nil {
		s.dst.loop.portionPipes.Give(s.owner, 1)
	}
	eng.putPipe(s.pipe, s.held)
	s.pipe, s.held = nil, 0
}
