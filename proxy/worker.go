package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"turnout/internal/bound"
	"turnout/internal/list"
	"turnout/internal/share"
	"turnout/internal/spare"
	"turnout/internal/traffic"
	"turnout/internal/wire/field"
	"turnout/routing"
	"turnout/routing/header"
)

// maxAttempts bounds the endpoints one request may try: the first and three more,
// as the HAProxy router.
const maxAttempts = 4

// maxUnprocessed bounds how often, besides, one request is sent again because an endpoint said that it did not process it.
const maxUnprocessed = 8

// maxRetries bounds the attempts after the first one of a request: each endpoint may be tried again where a kept connection had ended.
const maxRetries = 2*maxAttempts - 1 + maxUnprocessed

// Config is what a Worker needs. Store, Clock and Upstreams are required.
type Config struct {
	Store     *routing.Store
	Clock     Clock
	Upstreams Upstreams
	AccessLog AccessLog // nil: no access log
	Timeouts  Timeouts
	Bounds    *bound.Counts // counts bounds that are reached; nil: nobody does

	RequestActions  *header.Actions // for every request with a route; nil = none
	ResponseActions *header.Actions // for every answer of an endpoint; nil = none
	MaxRewrite      int             // bytes that actions may add to a head; 0 = DefaultMaxRewrite
	// AuthVersion counts the changes of what clients have to show. A client whose own is lower was let in by what counts no more, and is to
	// connect again after its next answer.
	AuthVersion        uint32
	KeepClientIdentity bool         // X-SSL-* of clients are not removed
	UniqueID           *UniqueID    // nil = requests get no unique id
	Captures           *Captures    // nil = the access log gets no fields of messages
	Compression        *Compression // nil = answers go out as endpoints send them
	Unavailable        *ErrorPage   // instead of the router's own 503 page; nil = that one
	ReasonHeader       bool         // the router's own answers say their Reason in the field X-Turnout-Reason, which endpoints may not send then
	MonitorPath        string       // path without TLS that says the router serves, whatever the host; "" = none
	LoopID             string       // what is added to CDN-Loop of requests, a token; routers of one id count each other's; "" = DefaultLoopID
	AbortOnClose       bool         // a client that ended its sending is gone if no endpoint has seen its request
	NotFound           *ErrorPage   // answers requests without a route; nil = they get the 503 page
	NotFoundOfHosts    *ErrorPage   // the same where NotFound is nil and the table says that nothing is there; nil = they get the 503 page

	// CloseTunnels is how long after its route was deleted, or got another UID or host, a tunnel ends, see RoutesChanged; 0 =
	// it does not end because of that.
	CloseTunnels time.Duration

	Seed uint64 // of what is chosen at random; 0: another one each time

	// RouteConnections is how many requests and tunnels of one route, over all workers, may have a connection to an endpoint, or
	// wait for one, while Crowded says that connections run out; more are answered 503, or closed. 0 = any number.
	RouteConnections int
	Crowded          func() bool // nil = always

	// Overloaded, while it is true, has new requests answered 503 and new passthrough connections closed; what has begun goes
	// on. nil: never.
	Overloaded *atomic.Bool

	Tracing *Tracing // nil: requests are not traced, and what they say of traces is passed on as it is

	Recent *Recent // nil = no exchange is remembered

	// PrivateConnections is the number of private upstream connections of a worker;
	// 0 = DefaultPrivateConnections.
	PrivateConnections int

	// Rehearse has a worker decide about requests and connections without anything that others would notice: no limit counts them, no
	// server is chosen for them, no queue has them, no counter of a route, a server or the unique ids grows. What Upstreams are asked for
	// is up to those. It is for finding out what would become of a request.
	Rehearse bool

	// Panicked is called, on the loop, with a panic of the rules for a message; that exchange is answered 500 and the
	// others go on. nil: it is a panic like any other.
	Panicked func(v any, stack []byte)

	// KeptBodies is the memory for request bodies that are kept for another attempt, in bytes. A
	// namespace may hold half of it, see share.Pool. 0 = DefaultKeptBodies. Only NewWorker reads
	// it.
	KeptBodies int
	// Breach is called on the loop with a description of a message that the router would have sent
	// incompletely, which is a bug. The message was not sent, or its connection or stream was
	// broken off. nil = a panic.
	Breach func(what string)
}

// DefaultMaxRewrite is what the HAProxy router keeps free for rewriting.
const DefaultMaxRewrite = 8192

// Worker runs the exchanges of one loop. All its methods but Totals are called on
// that loop.
type Worker struct {
	cfg       *Config  // immutable; Configure puts another in its place
	timeouts  Timeouts // of cfg, where who waits for clients finds them
	free      spare.List[Exchange]
	large     spare.List[field.Block] // memory of exchanges that need much
	refusal   Head                    // see Refusal
	current   *attempts               // at work now, nil = none; see attempts.enter
	rng       rand.PCG
	taken     int // work of the exchange that the current event has ended, -1 = it has not; see weigh
	draining  bool
	counts    counters
	scale     *traffic.Scale
	latencies Latencies
	tunnels   tunnels
	loopID    []byte
	bodies    bodies
	tracer    tracer
	matching  routing.Matching

	freeCopies spare.List[requestCopy]
	mirrored   share.Pool // bytes of copies
	copying    share.Pool // copies that are being collected or sent

	private     share.Pool                     // kept private connections
	idlePrivate map[string]*list.List[Private] // by namespace, the least recently used first

	compressors []*compressor // free ones
	compressing share.Pool    // in use
	waiting     share.Pool    // places of waiting exchanges and relays
}

// NewWorker checks the configuration and makes a Worker.
func NewWorker(cfg Config) (*Worker, error) {
	if cfg.Store == nil || cfg.Clock == nil || cfg.Upstreams == nil {
		return nil, errors.New("cannot make a proxy worker: Store, Clock and Upstreams are required")
	}
	if err := cfg.Timeouts.Validate(); err != nil {
		return nil, fmt.Errorf("cannot make a proxy worker: %w", err)
	}
	if err := cfg.Recent.validate(); err != nil {
		return nil, err
	}
	if cfg.MaxRewrite == 0 {
		cfg.MaxRewrite = DefaultMaxRewrite
	}
	if cfg.LoopID == "" {
		cfg.LoopID = DefaultLoopID
	}
	if !field.IsToken(cfg.LoopID) {
		return nil, fmt.Errorf("cannot make a proxy worker: the loop id %q is no token", cfg.LoopID)
	}
	w := &Worker{cfg: &cfg, timeouts: cfg.Timeouts, loopID: []byte(cfg.LoopID), scale: traffic.NewScale(), tracer: newTracer(cfg.Tracing, cfg.Seed, cfg.Rehearse)}
	w.mirrored, w.copying, w.compressing = share.NewPool(maxMirrored), share.NewPool(maxCopies), share.NewPool(maxCompressors)
	w.waiting = share.NewPool(maxWaiting)
	w.idlePrivate = make(map[string]*list.List[Private])
	w.private = share.NewPool(cmp.Or(cfg.PrivateConnections, DefaultPrivateConnections))
	w.tunnels.w = w
	w.bodies.share = share.NewPool(cmp.Or(cfg.KeptBodies, DefaultKeptBodies))
	if w.rng.Seed(cfg.Seed, cfg.Seed); cfg.Seed == 0 {
		w.rng.Seed(rand.Uint64(), rand.Uint64())
	}
	return w, nil
}

// Timeouts are the worker's limits, which Configure replaces where they stand.
func (w *Worker) Timeouts() *Timeouts { return &w.timeouts }

// Breach reports a message that would have been sent incompletely, see Config.Breach.
func (w *Worker) Breach(what string) {
	if w.cfg.Breach == nil {
		panic("BUG: " + what)
	}
	w.cfg.Breach(what)
}

// Reached counts that a bound was reached.
func (w *Worker) Reached(n bound.Name) { w.cfg.Bounds.Reached(n) }

// Reached is that of its worker.
func (ex *Exchange) Reached(n bound.Name) { ex.w.Reached(n) }

// Trim leaves to the collector what was kept for more exchanges than there were since the last call. Called every few seconds.
func (w *Worker) Trim() {
	w.free.Trim()
	w.large.Trim()
	w.tracer.free.Trim()
	w.bodies.trim()
	w.freeCopies.Trim()
}

// Compressing is how many answers are being compressed now.
func (w *Worker) Compressing() int { return w.compressing.Used() }

// Drain makes every response from now on the last of its connection.
func (w *Worker) Drain() { w.draining = true }

// Acquire takes an Exchange for a request that is about to arrive on down. It keeps a copy of what it gets of
// the client: a connection that waits for its next request need not.
func (w *Worker) Acquire(down Downstream, client *Client) *Exchange {
	ex := w.free.Get()
	if ex == nil {
		ex = &Exchange{scratch: field.Arena{Large: &w.large}}
		ex.w, ex.self = w, ex
		ex.timer = w.cfg.Clock.NewTimer(ex.expire)
	}
	if ex.cfg != w.cfg {
		ex.follow(w.cfg)
	}
	ex.down, ex.client, ex.state = down, *client, stateChoose
	return ex
}

// follow has the exchange, which is about to begin, go by cfg.
func (ex *Exchange) follow(cfg *Config) {
	ex.cfg, ex.captured = cfg, nil
	if cfg.Captures != nil {
		ex.captured = make([][]byte, cfg.Captures.count())
	}
}

func (w *Worker) release(ex *Exchange) {
	ex.scratch.Reset()
	ex.attemptsState = attemptsState{}
	ex.exchangeState = exchangeState{}
	ex.client.Private = nil // it belongs to a connection that may end
	w.free.Put(ex)
}

// Totals are sums since the start.
type Totals struct {
	Active    int64 // exchanges running now
	Requests  uint64
	Tunnels   uint64               // upgrades and passthrough connections begun
	Retries   uint64               // attempts after the first that were made
	Unretried uint64               // retries that would have been legal and were beyond the budget of a pool
	Reasons   [reasonCount]uint64  // by Reason
	Copies    [copyOutcomes]uint64 // of requests for mirrors, by CopyOutcome

	Private      int64  // private upstream connections that are kept
	PrivateBegun uint64 // upstream connections that became private, including the kept ones

	Connections     [2]uint64     // accepted on the plain and on the TLS port
	Ports           [2]PortTotals // the same ports
	Open            [2]int64      // connections of clients that carry HTTP and are open now, by port
	Handshakes      uint64        // TLS handshakes completed with clients
	HandshakeErrors uint64
	HeaderErrors    uint64 // connections closed for want of a PROXY header
	Panics          uint64 // that were recovered
}

// PortTotals are the sums of one port.
type PortTotals struct {
	BytesIn  uint64                  // from clients: heads as the HAProxy router counts them, bodies, tunnels
	BytesOut uint64                  // to clients, the same
	Answers  [traffic.Classes]uint64 // by traffic.Class; 0 = requests that ended without one
	// Malformed is how often a connection was answered, or ended, because of bytes that were no request or did not arrive in time.
	Malformed uint64
}

// Totals adds the worker's counts to t. Safe from any goroutine.
func (w *Worker) Totals(t *Totals) {
	for i := range t.Ports {
		to, from := &t.Ports[i], &w.counts.ports[i]
		to.BytesIn += atomic.LoadUint64(&from.bytesIn)
		to.BytesOut += atomic.LoadUint64(&from.bytesOut)
		to.Malformed += atomic.LoadUint64(&from.malformed)
		for class := range to.Answers {
			to.Answers[class] += atomic.LoadUint64(&from.answers[class])
		}
	}
	t.Tunnels += atomic.LoadUint64(&w.counts.tunnels)
	for i := range t.Copies {
		t.Copies[i] += atomic.LoadUint64(&w.counts.copies[i])
	}
	t.PrivateBegun += atomic.LoadUint64(&w.counts.private)
	t.Private -= int64(atomic.LoadUint64(&w.counts.privateEnded))
	t.Private += int64(atomic.LoadUint64(&w.counts.privateKept))
	t.Retries += atomic.LoadUint64(&w.counts.retries)
	t.Unretried += atomic.LoadUint64(&w.counts.unretried)
	for i := range t.Reasons {
		ended := atomic.LoadUint64(&w.counts.reasons[i])
		t.Reasons[i] += ended
		t.Active -= int64(ended)
	}
	requests := atomic.LoadUint64(&w.counts.requests) // after those that ended: never fewer
	t.Requests += requests
	t.Active += int64(requests)
}

// Rejected counts and logs a request that never became an exchange: its bytes were
// no request (400 and the like), or did not arrive in time (408). detail is what
// Record.Detail says.
func (w *Worker) Rejected(client *Client, status int, detail string) {
	w.rejected(client, status, rejection(status), detail)
}

// Broken counts and logs an HTTP/2 connection that was ended because its client broke the protocol or, flood, asked for
// more than its share. detail is what Record.Detail says.
func (w *Worker) Broken(client *Client, flood bool, detail string) {
	reason := ReasonBadRequest
	if flood {
		reason = ReasonFlood
	}
	w.rejected(client, 0, reason, detail)
}

func (w *Worker) rejected(client *Client, status int, reason Reason, detail string) {
	increment(&w.counts.requests, 1)
	increment(&w.counts.reasons[reason], 1)
	port := w.port(client)
	increment(&port.malformed, 1)
	increment(&port.answers[traffic.Class(status)], 1)
	if w.cfg.AccessLog == nil {
		return
	}
	rec := Record{Start: w.cfg.Clock.Wall(), Status: status, Reason: reason, Detail: detail, Connect: -1, Response: -1}
	rec.from(client)
	w.cfg.AccessLog.Log(&rec)
}
