package tlsmux

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrQueued: a handshake waited too long for its turn to compute.
var ErrQueued = errors.New("TLS handshake waited too long for a processor")

// WorkersConfig configures Workers. The zero value means the defaults.
type WorkersConfig struct {
	// Handshakes is how many handshakes may compute at the same time. Those that wait for bytes of their peer do not count.
	// Default half of GOMAXPROCS, rounded up. Whoever runs event loops has to keep as many processors of the Go scheduler
	// beside those of the loops, so that a loop that has something to do never waits for a handshake.
	Handshakes int
	// QueueTimeout bounds the time that a handshake waits for its turn. Default 5 s.
	QueueTimeout time.Duration
}

// Work is what handshakes compute, by what it costs. Each kind has a queue of its own.
type Work uint8

// The kinds of work.
const (
	WorkFinish   Work = iota // everything after the first flight: few, short, and what went before is lost without it
	WorkECDSA                // the first flight to a client, with a signature by ECDSA or Ed25519
	WorkRSA                  // the same by RSA
	WorkEndpoint             // handshakes with endpoints: requests of clients wait for them
	Works                    // the number of kinds
)

// String returns the word for w in metrics.
func (w Work) String() string {
	return [...]string{"finish", "ecdsa", "rsa", "endpoint", "other"}[min(w, Works)]
}

// workOf returns what the first flight with a certificate is.
func workOf(c *tls.Certificate) Work {
	if c.Leaf == nil {
		return WorkRSA // who knows
	}
	switch c.Leaf.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return WorkECDSA
	}
	return WorkRSA
}

// WorkStats counts what the handshakes of a kind have computed.
type WorkStats struct {
	Turns   atomic.Uint64 // times that one of them computed
	Nanos   atomic.Uint64 // how long, in sum
	Refused atomic.Uint64 // ErrQueued
}

// Workers bounds the processor time that handshakes take away from everything else. It may be shared by a Mux and Clients.
//
// A handshake computes in turns, between which it waits for its peer. When more want to than may, those of each kind of Work
// wait in the order they came, and the kind that has had the least time is next. So a flood of one kind takes from the
// others what they do not use: clients of certificates with RSA keys, which cost several times as much, do not keep those with
// ECDSA keys waiting, and clients do not keep endpoints waiting.
type Workers struct {
	timeout time.Duration
	running atomic.Int64
	buffers *buffers
	stats   [Works]WorkStats

	mu     sync.Mutex
	free   int
	queues [Works][]*waiter
	spent  [Works]time.Duration // what each kind had, counted from when it last began to wait
}

// waiter is a handshake that wants to compute.
type waiter struct{ turn chan struct{} }

// NewWorkers checks the configuration.
func NewWorkers(cfg WorkersConfig) (*Workers, error) {
	if cfg.Handshakes < 0 || cfg.QueueTimeout < 0 {
		return nil, fmt.Errorf("cannot make handshake workers: Handshakes is %d, QueueTimeout %v", cfg.Handshakes, cfg.QueueTimeout)
	}
	if cfg.Handshakes == 0 {
		cfg.Handshakes = (runtime.GOMAXPROCS(0) + 1) / 2
	}
	if cfg.QueueTimeout == 0 {
		cfg.QueueTimeout = 5 * time.Second
	}
	return &Workers{timeout: cfg.QueueTimeout, free: cfg.Handshakes, buffers: newBuffers()}, nil
}

// Running returns the number of handshakes that have a goroutine, whether they compute or wait.
func (w *Workers) Running() int { return int(w.running.Load()) }

// Waiting returns the number of handshakes that could compute and may not yet.
func (w *Workers) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for i := range w.queues {
		n += len(w.queues[i])
	}
	return n
}

// Stats returns the counters of a kind, which go on changing.
func (w *Workers) Stats(kind Work) *WorkStats { return &w.stats[kind] }

// acquire waits for a turn. It returns ErrQueued, or errGivenUp when dead is closed before; after nil the caller has to release
// the turn.
func (w *Workers) acquire(kind Work, dead <-chan struct{}) error {
	w.mu.Lock()
	if w.free > 0 { // then nobody waits
		w.free--
		w.mu.Unlock()
		return nil
	}
	me := &waiter{turn: make(chan struct{})}
	if len(w.queues[kind]) == 0 {
		w.join(kind)
	}
	w.queues[kind] = append(w.queues[kind], me)
	w.mu.Unlock()
	late := time.NewTimer(w.timeout)
	defer late.Stop()
	select {
	case <-me.turn:
		return nil
	case <-dead:
		w.leave(kind, me)
		return errGivenUp
	case <-late.C:
		w.leave(kind, me)
		w.stats[kind].Refused.Add(1)
		return ErrQueued
	}
}

// join lets a kind begin to wait: what it did not use before is not its due now.
func (w *Workers) join(kind Work) {
	least, others := time.Duration(0), false
	for i := range w.queues {
		if len(w.queues[i]) > 0 && (!others || w.spent[i] < least) {
			least, others = w.spent[i], true
		}
	}
	if others {
		w.spent[kind] = max(w.spent[kind], least)
		return
	}
	clear(w.spent[:])
}

// leave takes a handshake out of its queue, or gives back the turn that it got meanwhile.
func (w *Workers) leave(kind Work, me *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.queues[kind], me); i >= 0 {
		w.queues[kind] = slices.Delete(w.queues[kind], i, i+1)
		return
	}
	w.pass()
}

// release ends a turn that began at since.
func (w *Workers) release(kind Work, since time.Time) {
	took := time.Since(since)
	w.stats[kind].Turns.Add(1)
	w.stats[kind].Nanos.Add(uint64(took))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent[kind] += took
	w.pass()
}

// pass gives a turn to who is next.
func (w *Workers) pass() {
	next := -1
	for i := range w.queues {
		if len(w.queues[i]) > 0 && (next < 0 || w.spent[i] < w.spent[next]) {
			next = i
		}
	}
	if next < 0 {
		w.free++
		return
	}
	close(w.queues[next][0].turn)
	w.queues[next][0] = nil
	w.queues[next] = w.queues[next][1:]
}

// Load is what handshakes have cost, and how many there are now.
type Load struct {
	Pending int                  // client connections whose handshake is not complete
	Waiting int                  // handshakes that could compute and may not yet
	Turns   [Works]uint64        // times that one computed
	Time    [Works]time.Duration // how long, in sum
	Refused [Works]uint64        // that waited too long
}

// Load reads the numbers. Any goroutine may call it.
func (m *Mux) Load() Load {
	w := m.cfg.Workers
	l := Load{Pending: m.Pending(), Waiting: w.Waiting()}
	for i := range w.stats {
		s := &w.stats[i]
		l.Turns[i], l.Time[i], l.Refused[i] = s.Turns.Load(), time.Duration(s.Nanos.Load()), s.Refused.Load()
	}
	return l
}
