package reactor

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"turnout/internal/reactor/engine"
)

// portableBuffer is how many bytes wait between a socket's goroutine and the loop, per direction.
const portableBuffer = 64 << 10

// portableSocket is one connection and its two goroutines: readLoop fills in and stops when it is
// full, writeLoop empties out. The loop's calls only touch the two buffers.
//
// writeLoop closes the connection: in good order after what is left of out was sent, or at the
// latest when the write deadline that close sets has passed. A reset closes it at once, which ends
// whatever call a goroutine is in.
type portableSocket struct {
	eng    *portableEngine
	cancel context.CancelFunc // of the dial; nil for an accepted socket
	there  netip.AddrPort

	mu       sync.Mutex
	canRead  sync.Cond // readLoop waits for space, or the end
	canWrite sync.Cond // writeLoop waits for bytes, or the end
	nc       net.Conn  // nil while connecting
	dialErr  error

	in, out ring
	inErr   error // after in was read; io.EOF
	outErr  error
	short   bool // a write was cut short: engine.Out is owed
	shut    bool // FIN follows out
	closed  bool

	conn    *Conn // once registered
	pending engine.Events
	queued  bool // in engine.ready
}

func newPortableSocket(e *portableEngine, nc net.Conn) *portableSocket {
	s := &portableSocket{eng: e, nc: nc}
	s.canRead.L, s.canWrite.L = &s.mu, &s.mu
	return s
}

// connect is the goroutine of a dial; close ends it.
func (s *portableSocket) connect(ctx context.Context) {
	defer s.cancel()
	d := net.Dialer{KeepAlive: -1}
	d.SetMultipathTCP(false)
	network := "tcp6"
	if ip := s.there.Addr(); ip.Is4() || ip.Is4In6() {
		network = "tcp4"
	}
	tc, err := d.DialTCP(ctx, network, netip.AddrPort{}, s.there)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.dialErr = bareError(err)
		s.post(engine.Out | engine.Err)
	case s.closed:
		abort(tc)
	default:
		s.nc = tc
		s.start()
		s.post(engine.Out)
	}
}

func (s *portableSocket) start() {
	s.eng.running.Go(s.readLoop)
	s.eng.running.Go(s.writeLoop)
}

func (s *portableSocket) register(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = c
	if s.cancel == nil {
		s.start()
	}
	s.post(0) // what came before
}

// post reports ev to the loop; s.mu is held.
func (s *portableSocket) post(ev engine.Events) {
	s.pending |= ev
	if s.pending != 0 && s.conn != nil && !s.queued && !s.closed {
		s.queued = true
		s.eng.report(s)
	}
}

// takeEvents is what the loop has to be notified of about s now.
func (s *portableSocket) takeEvents() (*Conn, engine.Events) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ev := s.pending
	s.pending, s.queued = 0, false
	if s.closed {
		return nil, 0
	}
	return s.conn, ev
}

// readLoop is the goroutine that reads; the end of the input ends it, or the connection's close.
func (s *portableSocket) readLoop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		p := s.in.free()
		for len(p) == 0 && !s.closed {
			s.canRead.Wait()
			p = s.in.free()
		}
		if s.closed {
			return
		}
		s.mu.Unlock()
		n, err := s.nc.Read(p) // the loop only touches what was read
		s.mu.Lock()
		switch {
		case s.closed:
			return
		case n > 0:
			s.in.added(n)
			s.post(engine.In)
		}
		switch {
		case err == io.EOF:
			s.inErr = err
			s.post(engine.In | engine.Hup)
			return
		case err != nil:
			s.inErr = bareError(err)
			s.post(engine.In | engine.Out | engine.Err)
			return
		}
	}
}

// writeLoop is the goroutine that writes and closes; close ends it.
func (s *portableSocket) writeLoop() {
	s.mu.Lock()
	finished := false
	for s.outErr == nil {
		if s.out.n > 0 {
			s.writeSome()
			continue
		}
		if s.closed {
			break
		}
		if s.shut && !finished {
			finished = true
			s.finish()
			continue
		}
		s.canWrite.Wait()
	}
	for !s.closed {
		s.canWrite.Wait()
	}
	s.mu.Unlock()
	_ = s.nc.Close() // its owner is gone
}

// writeSome sends a piece of out. s.mu is held before and after.
func (s *portableSocket) writeSome() {
	p := s.out.filled()
	s.mu.Unlock()
	n, err := s.nc.Write(p)
	s.mu.Lock()
	s.out.removed(n)
	if err != nil {
		s.sendFailed(err)
	} else if s.short && s.out.n <= portableBuffer/2 {
		s.short = false
		s.post(engine.Out)
	}
}

// finish sends the FIN. s.mu is held before and after.
func (s *portableSocket) finish() {
	tc, ok := s.nc.(*net.TCPConn)
	if !ok {
		return
	}
	s.mu.Unlock()
	err := tc.CloseWrite()
	s.mu.Lock()
	if err != nil {
		s.sendFailed(err)
	}
}

func (s *portableSocket) sendFailed(err error) {
	s.outErr = bareError(err)
	s.out = ring{}
	s.post(engine.In | engine.Out | engine.Err)
}

func (s *portableSocket) ConnectError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dialErr
}

func (s *portableSocket) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.in.takeBytes(p); {
	case n > 0:
		if s.in.n <= portableBuffer/2 {
			s.canRead.Signal()
		}
		return n, nil
	case s.inErr != nil:
		return 0, s.inErr
	}
	return 0, engine.ErrAgain
}

func (s *portableSocket) Write(p []byte) (int, error) { return s.Writev(p, nil) }

func (s *portableSocket) Writev(a, b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outErr != nil:
		return 0, s.outErr
	case s.shut || s.closed:
		return 0, syscall.EPIPE
	case s.nc == nil:
		s.short = true
		return 0, engine.ErrAgain
	}
	n := s.out.putBytes(a)
	if n == len(a) {
		n += s.out.putBytes(b)
	}
	s.short = n < len(a)+len(b)
	if n == 0 {
		return 0, engine.ErrAgain
	}
	s.canWrite.Signal()
	return n, nil
}

func (s *portableSocket) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outErr != nil {
		return s.outErr
	}
	s.shut = true
	s.canWrite.Signal()
	return nil
}

func (s *portableSocket) Close(reset bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.cancel != nil {
		s.cancel()
	}
	if s.nc == nil {
		return
	}
	// Unread input makes a system reset the connection; what waits here was taken from the system.
	if reset || s.in.n > 0 {
		s.out = ring{}
		abort(s.nc)
	} else {
		_ = s.nc.SetWriteDeadline(time.Now().Add(s.eng.flush)) // fails only on what is closed already
	}
	s.in = ring{}
	s.canRead.Signal()
	s.canWrite.Signal()
}

func (s *portableSocket) Remote() netip.AddrPort { return s.there }

func (s *portableSocket) Local() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nc == nil {
		return netip.AddrPort{}
	}
	return tcpAddr(s.nc.LocalAddr())
}

// ring is a first-in first-out of at most portableBuffer bytes. The zero value is empty; its memory
// comes with the first use.
type ring struct {
	buf  []byte
	head int // where the first byte is
	n    int // bytes held
}

// free is a free piece to be filled, empty when there is none; added tells how much was.
func (r *ring) free() []byte {
	if r.buf == nil {
		r.buf = make([]byte, portableBuffer)
	}
	tail := r.head + r.n
	if tail < len(r.buf) {
		return r.buf[tail:]
	}
	return r.buf[tail-len(r.buf) : r.head]
}

func (r *ring) added(n int) { r.n += n }

// filled is the first piece of what is held; removed tells how much of it was used.
func (r *ring) filled() []byte {
	return r.buf[r.head:min(r.head+r.n, len(r.buf))]
}

func (r *ring) removed(n int) {
	if r.buf == nil {
		return // dropped meanwhile
	}
	r.n -= n
	if r.head += n; r.head >= len(r.buf) {
		r.head -= len(r.buf)
	}
}

// putBytes copies as much of p as there is space for.
func (r *ring) putBytes(p []byte) (total int) {
	for len(p) > 0 {
		n := copy(r.free(), p)
		if n == 0 {
			break
		}
		r.added(n)
		p = p[n:]
		total += n
	}
	return total
}

// takeBytes moves as much as p takes.
func (r *ring) takeBytes(p []byte) (total int) {
	for len(p) > 0 && r.n > 0 {
		n := copy(p, r.filled())
		r.removed(n)
		p = p[n:]
		total += n
	}
	return total
}
