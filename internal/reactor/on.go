package reactor

import (
	"time"

	"turnout/internal/reactor/engine"
)

// NewOn makes a loop that d iterates on an engine of d, such as a network in memory with virtual time (package memnet); its Run
// must not be called. It panics on a bad Config, which is a mistake of a test.
func NewOn(d engine.Driver, cfg Config) *Loop {
	e := d.NewEngine()
	l, err := newLoop(cfg, memoryPipes{e})
	if err != nil {
		panic(err)
	}
	d.Drive(driven{l}, e)
	return l
}

// memoryPipes gives an engine without a kernel what splices need, so that in virtual time bytes go the same ways as in the system.
type memoryPipes struct{ engine.Engine }

// memoryPipe is how many bytes a pipe in memory holds.
const memoryPipe = 16 << 10

func (memoryPipes) getPipe() (*pipe, error) { return &pipe{bytes: make([]byte, 0, memoryPipe)}, nil }

func (memoryPipes) putPipe(*pipe, int) {}
func (memoryPipes) trimPipes()         {}

func (memoryPipes) fill(p *pipe, s engine.Socket, n int) (int, error) {
	n, err := s.Read(p.bytes[:min(n, memoryPipe)])
	p.bytes = p.bytes[:n]
	return n, err
}

func (memoryPipes) drain(p *pipe, s engine.Socket, n int, _ bool) (int, error) {
	sent, err := s.Write(p.bytes[:n])
	p.bytes = p.bytes[:copy(p.bytes, p.bytes[sent:])]
	return sent, err
}

// heed implements splicer: events are delivered in any case, and one more when they are heeded again.
func (memoryPipes) heed(c *Conn, on bool) {
	if on {
		c.flags |= flagReadable
		c.ready()
	}
}

// driven is a loop as its driver has it: what Run does, in pieces.
type driven struct{ l *Loop }

func (d driven) Iterate(limit time.Duration) error { return d.l.iterate(limit) }
func (d driven) Idle() bool                        { return d.l.idle() }
func (d driven) NextTimer() (at int64, ok bool)    { return d.l.nextTimer() }
func (d driven) Sleep() bool                       { return d.l.mail.sleep() }
func (d driven) Shutdown()                         { d.l.shutdown() }
func (d driven) Conns() int                        { return d.l.Conns() }
