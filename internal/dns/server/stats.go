package server

import (
	"fmt"
	"sync/atomic"
)

// MaxRcode is the largest rcode that answers have.
const MaxRcode = 15

// Stats is what a Server has done.
type Stats struct {
	UDP, TCP    uint64               // queries
	Answers     [MaxRcode + 1]uint64 // by the rcode in the header
	Truncated   uint64               // answers that did not fit
	Slipped     uint64               // answers beyond the rate that were sent as truncated
	Dropped     uint64               // the others beyond the rate
	Malformed   uint64               // messages that were not answered
	Signed      uint64               // queries with a signature that is right
	BadSigned   uint64               // with one that is not
	Transfers   uint64               // begun
	Refused     uint64               // transfers
	Notified    uint64               // that were answered
	NotNotified uint64               // given up
	Panics      uint64
	Connections int // open
}

// counters are those of a worker, or of all connections.
type counters struct {
	queries                              atomic.Uint64
	answers                              [MaxRcode + 1]atomic.Uint64
	truncated, slipped, dropped          atomic.Uint64
	malformed, signed, badSigned, panics atomic.Uint64
	_                                    [64]byte // of another line of the cache
}

// answered counts an answer.
func (c *counters) answered(message []byte) {
	c.answers[message[3]&15].Add(1)
	if message[2]&0x02 != 0 {
		c.truncated.Add(1)
	}
}

// add adds what was counted.
func (c *counters) add(to *Stats, queries *uint64) {
	*queries += c.queries.Load()
	for i := range to.Answers {
		to.Answers[i] += c.answers[i].Load()
	}
	to.Truncated += c.truncated.Load()
	to.Slipped += c.slipped.Load()
	to.Dropped += c.dropped.Load()
	to.Malformed += c.malformed.Load()
	to.Signed += c.signed.Load()
	to.BadSigned += c.badSigned.Load()
	to.Panics += c.panics.Load()
}

// Stats returns what was done until now. Any goroutine may call it.
func (s *Server) Stats() Stats {
	var out Stats
	for _, w := range s.workers {
		w.counters.add(&out, &out.UDP)
	}
	s.gate.counters.add(&out, &out.TCP)
	out.Connections = s.gate.open()
	out.Transfers, out.Refused = s.transfers.begun.Load(), s.transfers.refused.Load()
	out.Notified, out.NotNotified = s.notified.Load(), s.notNotified.Load()
	return out
}

// panicError is what a panic said, with its stack.
type panicError struct {
	value any
	stack string
}

func (e panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }
