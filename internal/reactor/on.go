package reactor

import (
	"time"

	"turnout/internal/reactor/engine"
)

// NewOn makes a loop that d iterates on an engine of d, such as a network in memory with virtual time (package memnet); its Run
// must not be called. It panics on a bad Config, which is a mistake of a test.
func NewOn(d engine.Driver, cfg Config) *Loop {
	e := d.NewEngine()
	l, err := newLoop(cfg, e)
	if err != nil {
		panic(err)
	}
	d.Drive(driven{l}, e)
	return l
}

// driven is a loop as its driver has it: what Run does, in pieces.
type driven struct{ l *Loop }

func (d driven) Iterate(limit time.Duration) error { return d.l.iterate(limit) }
func (d driven) Idle() bool                        { return d.l.idle() }
func (d driven) NextTimer() (at int64, ok bool)    { return d.l.nextTimer() }
func (d driven) Sleep() bool                       { return d.l.mail.sleep() }
func (d driven) Shutdown()                         { d.l.shutdown() }
func (d driven) Conns() int                        { return d.l.Conns() }
