package reactor

import (
	"io"

	"turnout/internal/reactor/engine"
)

const (
	// pipeSize is what one splice may move; a pipe smaller than that costs half of the gain.
	pipeSize = 1 << 20
	// spliceTurn bounds what one Splice moves per iteration.
	spliceTurn = 2 << 20
)

// splicer is an engine whose kernel copies between sockets through pipes.
type splicer interface {
	// getPipe takes an empty pipe from the pool.
	getPipe() (*pipe, error)
	// putPipe gives it back; held bytes are lost.
	putPipe(p *pipe, held int)
	// trimPipes closes what of the pool nobody has needed since it was called last.
	trimPipes()
	// fill moves up to n bytes from s: engine.ErrAgain, io.EOF as engine.Socket.Read.
	fill(p *pipe, s engine.Socket, n int) (int, error)
	// drain moves up to n bytes to s: engine.ErrAgain as engine.Socket.Write. bulk: the system may take for s as much as it likes.
	drain(p *pipe, s engine.Socket, n int, bulk bool) (int, error)
	// heed says whether engine.In is delivered for c. It is delivered again, for what came meanwhile too, once it is heeded again;
	// engine.Hup and engine.Err always are.
	heed(c *Conn, on bool)
}

// pipe is one pipe of the kernel, or bytes in memory in its place.
type pipe struct {
	r, w  int
	bytes []byte // those in it, see memoryPipes
}

// Splice is a running copy inside the kernel from one Conn to another. Bytes do not pass through the handlers.
type Splice struct {
	src, dst *Conn
	done     func(s *Splice, err error)
	moved    func(n uint64)
	pipe     *pipe // only while bytes are on their way: an idle Splice holds none
	held     int   // bytes in the pipe
	bytes    uint64
	err      error
	deaf     bool // src's engine.In is not heeded
	portion       // of SpliceN
}

// Splice copies what src receives to dst, in the kernel, until src ends or one of the two fails.
// What dst has queued, and input of src that was kept unconsumed, goes first. Then done is called
// once, on the loop and not from inside another call: with nil after everything up to src's end was
// given to dst and dst.CloseWrite called (src's handler gets its EOF too, before or after); else with
// the reason, ErrClosed if this side closed one of them. Until then src's handler gets no Data. The handlers'
// Closed is called as ever. Pause of src pauses the copy, and it never queues more than a pipe full.
//
// ErrNoSplice: the engine cannot, one of the two is not open, has a Layer or is spliced already in
// this direction, or CloseWrite was called on dst.
func (l *Loop) Splice(src, dst *Conn, done func(s *Splice, err error)) (*Splice, error) {
	if !l.splices(src, dst) {
		return nil, ErrNoSplice
	}
	s := &Splice{src: src, dst: dst, done: done}
	s.begin()
	return s, nil
}

// splices says that bytes of src may be copied to dst.
func (l *Loop) splices(src, dst *Conn) bool {
	return src != dst && src.Wire() && dst.Wire() && src.loop == l && dst.loop == l &&
		src.state == stateOpen && dst.state == stateOpen && dst.writing() &&
		src.flags&(flagEOF|flagFrom) == 0 && dst.flags&flagTo == 0
}

func (s *Splice) begin() {
	src, dst := s.src, s.dst
	src.rare().from, dst.rare().to = s, s
	src.flags = src.flags&^flagAgain | flagFrom
	dst.flags |= flagTo
	src.ready()
}

// OnMove has moved called, on the loop, each time that dst has been given n bytes more. It must not use the two Conns.
func (s *Splice) OnMove(moved func(n uint64)) { s.moved = moved }

func (s *Splice) gave(n int) {
	s.bytes += uint64(n)
	switch {
	case n == 0:
	case s.whose != nil:
		s.whose.Moved(uint64(n))
	case s.moved != nil:
		s.moved(uint64(n))
	}
}

// Bytes is how many bytes were given to dst so far.
func (s *Splice) Bytes() uint64 { return s.bytes }

// pump moves bytes until one side has to be waited for or the iteration's share is used up. It is called
// when src may be read and when dst may be written.
func (s *Splice) pump() {
	if s.forwardKept() {
		s.move()
	}
	if s.whose != nil && s.src != nil && s.portionMoved() {
		return
	}
	// As long as src is known to have more, dst is what is waited for. Each segment that src gets meanwhile would wake the
	// loop, for nothing, and there may be megabytes of them. The events come back when src has been emptied.
	if s.src != nil && s.src.flags&(flagReadable|flagReady) == flagReadable {
		s.setDeaf(true)
	}
}

// setDeaf stops or starts the events that say that src has input.
func (s *Splice) setDeaf(deaf bool) {
	if s.deaf != deaf {
		s.deaf = deaf
		s.src.loop.eng.(splicer).heed(s.src, !deaf)
	}
}

func (s *Splice) move() {
	eng := s.src.loop.eng.(splicer)
	for budget := s.share(); s.running(); {
		if s.held > 0 {
			if s.dst.flags&flagWritable == 0 {
				return
			}
			n, ok := s.drain(eng)
			budget -= n
			if !ok {
				return
			}
			continue
		}
		if budget <= 0 {
			s.src.ready()
			break
		}
		if s.dst.flags&flagWritable == 0 || s.taken() || !s.fill(eng) {
			break
		}
	}
	s.release(eng)
}

// running says that the copy is not over and what is ahead of it has gone.
func (s *Splice) running() bool { return s.src != nil && s.dst.Pending() == 0 }

// forwardKept sends what was read from src before the copy began. false = it has not gone yet.
func (s *Splice) forwardKept() bool {
	if in := s.src.takeKept(); len(in) > 0 {
		s.left -= int64(len(in))
		s.gave(len(in))
		s.dst.Write(in)
		s.dst.loop.arena.returnBuffer(HeldInput, in)
	}
	if s.running() {
		return true
	}
	if s.src != nil {
		s.dst.Flush()
	}
	return s.running()
}

// drain empties the pipe into dst. false = dst takes no more for now, or failed.
func (s *Splice) drain(eng splicer) (int, bool) {
	dst := s.dst
	dst.loop.stats.Writes++
	n, err := eng.drain(s.pipe, dst.sock, s.held, s.whose == nil)
	if err == engine.ErrAgain {
		dst.flags &^= flagWritable
		return 0, false
	}
	if err != nil {
		s.finish(err)
		dst.sendFailed(err)
		return 0, false
	}
	s.held -= n
	s.gave(n)
	dst.nwritten += uint64(n)
	return n, true
}

// fill takes from src what it has. false = nothing now, paused, or the copy is over.
func (s *Splice) fill(eng splicer) bool {
	src := s.src
	switch {
	case src.flags&flagPaused != 0:
		return false
	case src.flags&flagEnded != 0: // found before the copy began
		return s.received(0, io.EOF)
	case src.flags&flagReadable == 0:
		return false
	}
	if s.pipe == nil {
		var err error
		if s.pipe, err = s.getPipe(eng); err != nil {
			return s.copyOnce()
		}
	}
	src.loop.stats.Reads++
	n, err := eng.fill(s.pipe, src.sock, s.most(pipeSize, portionPipe))
	s.held = n
	s.left -= int64(n)
	src.loop.stats.Spliced += uint64(n)
	return s.received(n, err)
}

// copyOnce does without a pipe when there is none to be had.
func (s *Splice) copyOnce() bool {
	src := s.src
	buf := src.loop.recv[:s.most(len(src.loop.recv), len(src.loop.recv))]
	src.loop.stats.Reads++
	n, err := src.sock.Read(buf)
	if n > 0 {
		s.left -= int64(n)
		s.gave(n)
		s.dst.Write(buf[:n])
		s.dst.Flush()
	}
	return s.received(n, err)
}

func (s *Splice) received(n int, err error) bool {
	if err == nil {
		if s.src != nil { // else dst failed taking them
			s.src.nread += uint64(n)
		}
		return s.src != nil
	}
	src, dst := s.src, s.dst
	src.flags &^= flagReadable
	switch {
	case src.flags&flagBroken != 0:
		src.fail(src.why())
	case err == engine.ErrAgain:
		s.setDeaf(false)
	case err == io.EOF && s.whose != nil:
		s.finish(io.ErrUnexpectedEOF)
		src.flags |= flagEnded
	case err == io.EOF:
		s.finish(nil)
		dst.CloseWrite()
		src.flags |= flagEnded
		src.ready()
	default:
		src.fail(err)
	}
	return false
}

// release gives an empty pipe back to the pool.
func (s *Splice) release(eng splicer) {
	if s.pipe != nil && s.held == 0 {
		s.putPipe(eng)
	}
}

// finish ends the copy; done is called by the loop.
func (s *Splice) finish(err error) {
	src, dst := s.src, s.dst
	if src == nil {
		return
	}
	s.setDeaf(false)
	if s.pipe != nil {
		s.putPipe(src.loop.eng.(splicer))
	}
	src.seldom.from, dst.seldom.to = nil, nil
	src.flags &^= flagFrom
	dst.flags &^= flagTo
	s.src, s.err = nil, err
	if s.whose == nil {
		src.loop.over.push(s)
	}
	if err != nil {
		src.ready() // its input is the handler's again
	}
}

func (s *Splice) tell() {
	if s.done != nil {
		defer s.dst.Recover()
		s.done(s, s.err)
	}
}

// endSplices ends the copies from and to c, because of err.
func (c *Conn) endSplices(err error) {
	if c.flags&flagFrom != 0 {
		c.seldom.from.finish(err)
	}
	if c.flags&flagTo != 0 {
		c.seldom.to.finish(err)
	}
}
