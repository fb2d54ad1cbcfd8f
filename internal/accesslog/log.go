// Package accesslog writes a line per finished request: of JSON, and in a log format of HAProxy.
//
// An event loop hands a proxy.Record to Log, which copies it into a slot of a
// bounded ring and returns: no lock, no system call, and no allocation once the
// slots have been used. One goroutine empties the ring, encodes the lines and
// writes them in batches. When the writer cannot keep up the ring fills and
// records are dropped and counted: a slow disk never slows a request.
//
// The fields of a line are documented in docs/access-log.md; a test compares.
package accesslog

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"turnout/proxy"
)

// Config is what a Log needs. One of the writers is required; zero numbers mean the defaults.
type Config struct {
	// Writer receives whole lines of JSON, many per call, from one goroutine; nil = nobody
	// wants them. The Log does not close it.
	Writer io.Writer
	// Messages receives the same records as Format writes them, and so on; nil = nobody wants
	// them. Format is this Log's alone from then on.
	Messages io.Writer
	Format   *Format
	// Filter says which records are written; the zero value is all.
	Filter Filter
	// Help is the page that explains reasons, "" = none: lines of requests that failed have a link to theirs, see ParseHelp.
	Help string
	// CipherName is the name of a cipher suite of TLS; nil = that of crypto/tls.
	CipherName func(suite uint16) string
	// Slots bounds the records waiting to be written, rounded up to a power of
	// two. Default 8192.
	Slots int
	// Delay is how long the writer lets records gather before it writes them:
	// lines are at most this late, and there are at most 1/Delay wake-ups a
	// second. Default 10 ms.
	Delay time.Duration
	// OnError is called from the writing goroutine for the first failed write and
	// for the first one after a success. Nil ignores it; Stats counts either way.
	OnError func(error)
}

// Stats are the counters of a Log since it was made.
type Stats struct {
	Written uint64 // lines given to the writer without an error
	Dropped uint64 // records lost because the ring was full or the Log was closed
	Failed  uint64 // lines lost because the writer failed
	Skipped uint64 // records that the filter left out
}

// Log is a proxy.AccessLog. All its methods may be called from any goroutine.
type Log struct {
	cfg  Config
	ring ring

	asleep atomic.Bool   // the writer waits on wake
	wake   chan struct{} // one slot
	stop   chan struct{} // closed by Close
	done   chan struct{} // closed when the writer has ended
	once   sync.Once

	written, dropped, failed, skipped atomic.Uint64
}

var _ proxy.AccessLog = (*Log)(nil)

// New starts a Log and its writing goroutine, which Close ends.
func New(cfg Config) (*Log, error) {
	if cfg.Writer == nil && cfg.Messages == nil || (cfg.Messages == nil) != (cfg.Format == nil) {
		return nil, errors.New("cannot make an access log: no writer, or one for messages without a format")
	}
	if cfg.Slots < 0 || cfg.Delay < 0 {
		return nil, fmt.Errorf("cannot make an access log: negative slots (%d) or delay (%v)", cfg.Slots, cfg.Delay)
	}
	if err := cfg.Filter.check(); err != nil {
		return nil, err
	}
	if cfg.Slots == 0 {
		cfg.Slots = 8192
	}
	if cfg.Delay == 0 {
		cfg.Delay = 10 * time.Millisecond
	}
	l := &Log{
		cfg:  cfg,
		wake: make(chan struct{}, 1),
		stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	l.ring.init(1 << bits.Len(uint(cfg.Slots-1)))
	go l.write()
	return l, nil
}

// Log copies r and returns. It never blocks: when the ring is full the record is dropped
// and counted. It keeps none of the memory r points to except its strings.
func (l *Log) Log(r *proxy.Record) {
	if !l.cfg.Filter.keeps(r) {
		l.skipped.Add(1)
		return
	}
	if !l.ring.putRecord(r) {
		l.dropped.Add(1)
		return
	}
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		select {
		case l.wake <- struct{}{}:
		default: // a wake-up is already waiting
		}
	}
}

// Stats returns the counters as they are now.
func (l *Log) Stats() Stats {
	return Stats{Written: l.written.Load(), Dropped: l.dropped.Load(), Failed: l.failed.Load(), Skipped: l.skipped.Load()}
}

// Close writes what is waiting and ends the writer. Records logged afterwards
// are dropped and counted. It may be called more than once.
func (l *Log) Close() {
	l.once.Do(func() {
		l.ring.close()
		close(l.stop)
	})
	<-l.done
}

// write is the writing goroutine: sleep until there is something, let a batch
// gather for Delay, write it. It owns the batches and the taking end of the ring.
func (l *Log) write() {
	defer close(l.done)
	gather := time.NewTimer(l.cfg.Delay)
	defer gather.Stop()
	o := output{l: l, healthy: true, ciphers: map[uint16]string{}, links: links(l.cfg.Help)}
	for {
		o.drain()
		l.asleep.Store(true)
		if l.ring.ready() { // put before it could see asleep
			l.asleep.Store(false)
		} else {
			select {
			case <-l.wake:
			case <-l.stop:
				o.drain()
				return
			}
		}
		gather.Reset(l.cfg.Delay)
		select {
		case <-gather.C:
		case <-l.stop:
			o.drain()
			return
		}
	}
}

// batchBytes is when a batch is written although more is waiting.
const batchBytes = 64 << 10

// output is what the writing goroutine has encoded and not yet written.
type output struct {
	l               *Log
	lines, messages []byte            // the same records
	count           uint64            // of these records
	healthy         bool              // the last write succeeded
	ciphers         map[uint16]string // names of cipher suites that were seen
	links           []string          // JSON of the link of each reason, nil = none
}

// drain empties the ring into the writers.
func (o *output) drain() {
	cfg := &o.l.cfg
	if cfg.Format != nil && o.l.ring.ready() {
		cfg.Format.begin()
	}
	for {
		s := o.l.ring.takeSlot()
		if s == nil {
			break
		}
		if cfg.Writer != nil {
			o.lines = o.appendLine(o.lines, s)
		}
		if cfg.Format != nil {
			o.messages = append(cfg.Format.Append(o.messages, &s.rec), '\n')
		}
		o.l.ring.release(s)
		if o.count++; max(len(o.lines), len(o.messages)) >= batchBytes {
			o.flush()
		}
	}
	o.flush()
}

// flush writes what is there. A record that one of the writers failed to take has failed.
func (o *output) flush() {
	if o.count == 0 {
		return
	}
	cfg := &o.l.cfg
	var failed []error
	if cfg.Writer != nil {
		_, err := cfg.Writer.Write(o.lines)
		failed = append(failed, err)
	}
	if cfg.Messages != nil {
		_, err := cfg.Messages.Write(o.messages)
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		o.l.failed.Add(o.count)
		if o.healthy && cfg.OnError != nil {
			cfg.OnError(fmt.Errorf("cannot write access log: %w", err))
		}
		o.healthy = false
	} else {
		o.l.written.Add(o.count)
		o.healthy = true
	}
	o.lines, o.messages, o.count = o.lines[:0], o.messages[:0], 0
}
