package tlsmux

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"turnout/internal/bound"
	"turnout/internal/certchain"
	"turnout/internal/reactor"
	"turnout/tlsmux/clientcert"
)

// ErrQueued: a handshake waited too long for its turn to compute.
var ErrQueued = errors.New("TLS handshake waited too long for a processor")

// WorkersConfig configures Workers. The zero value means the defaults.
type WorkersConfig struct {
	// Handshakes is how many handshakes, with clients and with endpoints, may compute at the same time beside event loops. Those
	// that wait for bytes of their peer do not count. Default half of GOMAXPROCS, rounded up.
	Handshakes int
	// QueueTimeout bounds the time that a handshake waits until it begins to compute. Default 5 s.
	QueueTimeout time.Duration
	// Bounds counts the certificates that were refused for lack of budget; nil = not counted.
	Bounds *bound.Counts
	// Panicked, if it is set, recovers from panics of what is computed for one connection: crypto/tls, the choice of a certificate,
	// tickets, the judgement of a certificate, a private key. Any goroutine may call it. That handshake fails with ErrPanicked,
	// its connection is reset, and nothing else. Without it the process ends, as it does in any case when the machinery panics
	// that handshakes share.
	Panicked func(v any, stack []byte)
}

// Work is what handshakes compute, by what it costs. Each kind has a queue of its own.
type Work uint8

// The kinds of work.
const (
	WorkFinish   Work = iota // everything after the first flight: few, short, and what went before is lost without it
	WorkECDSA                // the first flight to a client, with a signature by ECDSA or Ed25519
	WorkRSA                  // the same by RSA
	WorkResumed              // the same of clients that resume a session
	WorkEndpoint             // handshakes with endpoints: requests of clients wait for them
	WorkVerify               // verification of a peer's certificates that takes more than one step
	Works                    // the number of kinds
)

// String returns the word for w in metrics.
func (w Work) String() string {
	return [...]string{"finish", "ecdsa", "rsa", "resumed", "endpoint", "verify", "other"}[min(w, Works)]
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
	Steps   atomic.Uint64 // times that one of them computed
	Nanos   atomic.Uint64 // how long, in sum
	Refused atomic.Uint64 // ErrQueued
}

func (s *WorkStats) count(took time.Duration) {
	s.Steps.Add(1)
	s.Nanos.Add(uint64(took))
}

// Workers bounds the processor time that handshakes take away from everything else. It may be shared by a Mux and Clients.
//
// A handshake computes in steps, between which it waits for its peer. Resumed ones with clients, and those with keys on P-256 and
// Ed25519, are computed by their loop, as work of low priority (reactor.Loop.RunLowPriority), unless many come at once. The others,
// those with endpoints among them, compute on a few threads that are nicer than the others of the process. When more want to compute
// than there are threads, or than a loop has time for, those of each kind of Work wait in the order they came, those of different
// addresses in turn, and the kind that has had the least time is next. So a flood of one kind takes from the others what they do not
// use: clients of certificates with RSA keys, which cost several times as much, do not keep those with ECDSA keys waiting, nor endpoints.
type Workers struct {
	timeout  time.Duration
	panicked func(v any, stack []byte) // nil = nothing is recovered
	running  atomic.Int64
	buffers  *buffers
	seed     maphash.Seed
	bounds   *bound.Counts

	chains    certchain.Memory
	verifying *verifying

	stats [Works]WorkStats
	pool  *pool

	mu    sync.Mutex
	loops []*loopSteps
}

// NewWorkers checks the configuration.
func NewWorkers(cfg WorkersConfig) (*Workers, error) {
	if cfg.Handshakes < 0 || cfg.QueueTimeout < 0 {
		return nil, fmt.Errorf("cannot make handshake workers: Handshakes is %d, QueueTimeout %v",
			cfg.Handshakes, cfg.QueueTimeout)
	}
	if cfg.Handshakes == 0 {
		cfg.Handshakes = (runtime.GOMAXPROCS(0) + 1) / 2
	}
	if cfg.QueueTimeout == 0 {
		cfg.QueueTimeout = 5 * time.Second
	}
	w := &Workers{timeout: cfg.QueueTimeout, panicked: cfg.Panicked, buffers: newBuffers(), seed: maphash.MakeSeed(), bounds: cfg.Bounds, verifying: newVerifying()}
	w.pool = &pool{size: cfg.Handshakes, stats: &w.stats}
	return w, nil
}

// sourceOf returns the address that peer counts as: an IPv6 address counts by its first 64 bits,
// since one customer has them all.
func sourceOf(peer netip.Addr) netip.Addr {
	if peer.Is6() && !peer.Is4In6() {
		return netip.PrefixFrom(peer, 64).Masked().Addr()
	}
	return peer
}

// shareOf returns the queue share of the handshakes of a source.
func (w *Workers) shareOf(source netip.Addr) uint8 {
	return uint8(maphash.Comparable(w.seed, source) % shares)
}

// shareOfTenant returns the share of the verifications of a tenant in the queue of WorkVerify.
func (w *Workers) shareOfTenant(tenant string) uint8 {
	return uint8(maphash.String(w.seed, tenant) % shares)
}

// Running returns the number of handshakes that have begun or wait to, and have not ended.
func (w *Workers) Running() int { return int(w.running.Load()) }

// Waiting returns the number of handshakes that could compute and may not yet.
func (w *Workers) Waiting() int {
	n := w.pool.waiting()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.loops {
		n += int(t.wait.Load())
	}
	return n
}

// stepsOf returns what a loop computes itself.
func (w *Workers) stepsOf(loop *reactor.Loop) *loopSteps {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.loops {
		if t.loop == loop {
			return t
		}
	}
	t := newLoopSteps(loop, w)
	w.loops = append(w.loops, t)
	return t
}

// Stats returns the counters of a kind, which go on changing.
func (w *Workers) Stats(kind Work) *WorkStats { return &w.stats[kind] }

// Load is what handshakes have cost, and how many there are now.
type Load struct {
	Pending int                  // client connections whose handshake is not complete
	Waiting int                  // handshakes that could compute and may not yet
	Steps   [Works]uint64        // times that one computed
	Time    [Works]time.Duration // how long, in sum
	Refused [Works]uint64        // that waited too long

	AsksClients   bool                       // for certificates; if not, the rest says nothing
	ClientRefused [clientcert.Reasons]uint64 // by what was wrong with the certificate
	ListEnds      []clientcert.ListEnd       // of the revocation lists in use
}

// Load reads the numbers. Any goroutine may call it.
func (m *Mux) Load() Load {
	w := m.cfg.Workers
	l := Load{Pending: m.Pending(), Waiting: w.Waiting()}
	for i := range w.stats {
		s := &w.stats[i]
		l.Steps[i], l.Time[i], l.Refused[i] = s.Steps.Load(), time.Duration(s.Nanos.Load()), s.Refused.Load()
	}
	if t := m.cfg.Policy.Trust(); t != nil {
		l.AsksClients, l.ListEnds = true, t.ListEnds()
	}
	for i := range l.ClientRefused {
		l.ClientRefused[i] = m.stats.ClientRefused[i].Load()
	}
	return l
}
