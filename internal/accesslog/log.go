// Package accesslog writes one JSON line per finished request.
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

// Config is what a Log needs. Writer is required; zero numbers mean the defaults.
type Config struct {
	// Writer receives whole lines, many per call, from one goroutine. The Log
	// does not close it.
	Writer io.Writer
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

	written, dropped, failed atomic.Uint64
}

var _ proxy.AccessLog = (*Log)(nil)

// New starts a Log and its writing goroutine, which Close ends.
func New(cfg Config) (*Log, error) {
	if cfg.Writer == nil {
		return nil, errors.New("cannot make an access log: no writer")
	}
	if cfg.Slots < 0 || cfg.Delay < 0 {
		return nil, fmt.Errorf("cannot make an access log: negative slots (%d) or delay (%v)", cfg.Slots, cfg.Delay)
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

// Log copies r and returns. It never blocks: without room the record is dropped
// and counted. It keeps none of the memory r points to except its strings.
func (l *Log) Log(r *proxy.Record) {
	if !l.ring.put(r) {
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
	return Stats{Written: l.written.Load(), Dropped: l.dropped.Load(), Failed: l.failed.Load()}
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
// gather for Delay, write it. It owns batch and the taking end of the ring.
func (l *Log) write() {
	defer close(l.done)
	gather := time.NewTimer(l.cfg.Delay)
	defer gather.Stop()
	batch := make([]byte, 0, batchBytes+4096)
	healthy := true
	for {
		batch, healthy = l.drain(batch, healthy)
		l.asleep.Store(true)
		if l.ring.ready() { // put before it could see asleep
			l.asleep.Store(false)
		} else {
			select {
			case <-l.wake:
			case <-l.stop:
				l.drain(batch, healthy)
				return
			}
		}
		gather.Reset(l.cfg.Delay)
		select {
		case <-gather.C:
		case <-l.stop:
			l.drain(batch, healthy)
			return
		}
	}
}

// batchBytes is when a batch is written although more is waiting.
const batchBytes = 64 << 10

// drain empties the ring into the writer. It returns the batch memory for reuse
// and whether the last write succeeded.
func (l *Log) drain(batch []byte, healthy bool) ([]byte, bool) {
	lines := uint64(0)
	flush := func() {
		if lines == 0 {
			return
		}
		_, err := l.cfg.Writer.Write(batch)
		if err != nil {
			l.failed.Add(lines)
			if healthy && l.cfg.OnError != nil {
				l.cfg.OnError(fmt.Errorf("cannot write access log: %w", err))
			}
		} else {
			l.written.Add(lines)
		}
		healthy = err == nil
		batch, lines = batch[:0], 0
	}
	for {
		s := l.ring.take()
		if s == nil {
			break
		}
		batch = appendLine(batch, s)
		l.ring.release(s)
		if lines++; len(batch) >= batchBytes {
			flush()
		}
	}
	flush()
	return batch, healthy
}
