package health

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/keyed"
	"turnout/internal/reactor"
	"turnout/internal/wire/http1"
	"turnout/internal/wire/protocol"
)

// Config is how a Checker checks. Loop and Changed are required.
type Config struct {
	Loop *reactor.Loop
	// Secure starts TLS on a connection as for requests in HTTP/1.1; tlsmux.Client.Secure. nil: endpoints that want TLS are down.
	Secure func(c *reactor.Conn, id *balancer.TLS, done func(error))
	// Negotiate starts TLS with all protocols of requests on offer, for checks that ask nothing: an endpoint that speaks HTTP/2
	// alone is well; tlsmux.Client.Negotiate. nil = Secure does it.
	Negotiate func(c *reactor.Conn, id *balancer.TLS, done func(spoken protocol.Protocol, err error))
	// Changed is called on the loop when a check begins to fail or succeeds again, and the result that decided it.
	Changed func(c *balancer.Check, up bool, why Result)
	// Failed is called on the loop for each check that has failed; nil = nobody is.
	Failed func(c *balancer.Check, why Outcome)

	ConnectTimeout time.Duration // of a TCP connect, if the interval is not shorter; 0 = 5 s
	Timeout        time.Duration // of all that follows: the handshake, and the answer to a request; 0 = 5 s
	Answer         http1.Limits  // of the head of an answer
	Rise, Fall     int           // 0 = 2 and 3
	// MaxRunning is how many checks run at a time, further ones wait their turn; 0 = 64. One namespace has half of them at most.
	// Those of endpoints that are not well have as many places of their own: pods that do not answer keep nobody else's checks waiting.
	MaxRunning int
	// MostPerSecond bounds how many checks begin in a second, give or take half of them at a time; one over TLS counts for four.
	// When the intervals ask for more, checks wait: namespaces take turns, so that one that wants less than its share does not notice.
	// 0 = 500. Those of endpoints whose last check failed, or that are down, have such a bound of their own.
	MostPerSecond int
	Bounds        *bound.Counts // counts bounds that checks reach; nil = nobody does
	Seed          uint64        // of the spread, for tests; 0 = another one each time
	Stats         *Stats        // what to count in; nil = in one of the checker's own

	// Panicked, if it is set, has panics over one check recovered. It is called on the loop; the check is made no more until Check asks
	// for it anew, and its endpoint counts as up. Without it they are panics like any other.
	Panicked func(v any, stack []byte)
}

// Checker makes the checks it is asked for. All its methods are for the goroutine of its loop.
type Checker struct {
	cfg    Config
	rng    rand.PCG
	checks *keyed.Set[*balancer.Check, check]
	groups [2]group // of those that are well, and of the others

	schedule schedule       // of the next checks
	next     *reactor.Timer // of the first of them
	idle     []*turn        // that ended, for those that begin

	later    *reactor.Timer // of those that wait because too many begin
	request  []byte         // scratch of ask
	response http1.Response // scratch of Data
}

// group is checks that share bounds.
type group struct {
	due    fairQueue
	credit float64 // how many may begin at once, as of the time since
	since  int64   // of Loop.Now
}

// NewChecker checks the configuration and makes a Checker without checks.
func NewChecker(cfg Config) (*Checker, error) {
	if cfg.Loop == nil || cfg.Changed == nil {
		return nil, errors.New("cannot make a health checker: Loop and Changed are required")
	}
	if cfg.ConnectTimeout < 0 || cfg.Timeout < 0 || cfg.Rise < 0 || cfg.Fall < 0 || cfg.MaxRunning < 0 || cfg.MostPerSecond < 0 {
		return nil, fmt.Errorf("cannot make a health checker: a limit is negative: %v %v %d %d %d %d", cfg.ConnectTimeout, cfg.Timeout, cfg.Rise, cfg.Fall, cfg.MaxRunning, cfg.MostPerSecond)
	}
	const timeout = 5 * time.Second
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = timeout
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = timeout
	}
	if cfg.Rise == 0 {
		cfg.Rise = 2
	}
	if cfg.Fall == 0 {
		cfg.Fall = 3
	}
	if cfg.MaxRunning == 0 {
		cfg.MaxRunning = 64
	}
	if cfg.MostPerSecond == 0 {
		cfg.MostPerSecond = MostPerSecond
	}
	if cfg.Stats == nil {
		cfg.Stats = &Stats{}
	}
	k := &Checker{cfg: cfg, checks: keyed.New(func(ck *check) *balancer.Check { return ck.of })}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	k.rng.Seed(cfg.Seed, cfg.Seed)
	k.later, k.next = cfg.Loop.NewTimer(k.resume), cfg.Loop.NewTimer(k.beginDue)
	return k, nil
}

// Check has of made every interval from now on, 0 = no more. What is checked no more is up. A new interval
// counts from the next check on, but no later than it says.
func (k *Checker) Check(of *balancer.Check, interval time.Duration) {
	ck := k.checks.Get(of)
	switch {
	case interval <= 0 && ck != nil:
		k.checks.Delete(of)
		ck.stop()
	case interval > 0 && ck == nil:
		ck = &check{k: k, of: of, interval: interval, up: true, slot: unscheduled}
		k.checks.Put(ck)
		k.after(ck, k.random()*float64(interval))
	case interval > 0 && ck.interval != interval:
		shorter := interval < ck.interval
		ck.interval = interval
		if shorter && ck.slot != unscheduled {
			k.after(ck, k.random()*float64(interval))
		}
	}
}

// Len is the number of checks that are made.
func (k *Checker) Len() int { return k.checks.Len() }

// MostPerSecond is how many checks a Checker, or all those of a Monitor together, begin in a second by default.
const MostPerSecond = 500

// The groups of checks by how the last one ended.
const (
	well   = iota // up, and it succeeded
	unwell        // down, or it failed
)

// group is that of the check now.
func (ck *check) group() *group {
	if ck.up && ck.streak == 0 {
		return &ck.k.groups[well]
	}
	return &ck.k.groups[unwell]
}

// secureCost is for how many checks one over TLS counts: it costs six times as much, most of it the handshake.
const secureCost = 4

// cost is for how many checks ck counts.
func (ck *check) cost() int64 {
	if ck.of.Endpoint().TLS() != nil {
		return secureCost
	}
	return 1
}

// grid is what the times of checks are multiples of, so that a loop that has nothing else to do wakes up for several at once.
const grid = 50 * time.Millisecond

// after sets the time of the next check of ck, so many nanoseconds from now.
func (k *Checker) after(ck *check, pause float64) {
	now := k.cfg.Loop.Now()
	at := now + int64(pause)
	at -= at % int64(min(grid, ck.interval/10+1))
	k.scheduleAt(ck, max(at, now))
}

// random is a number of 0 to 1.
func (k *Checker) random() float64 { return float64(k.rng.Uint64()>>11) / (1 << 53) }

// startNext starts checks of g that wait, as many as may run and begin.
func (k *Checker) startNext(g *group) {
	for g.due.running < k.cfg.MaxRunning && g.due.waiting() {
		if !k.may(g) {
			if !k.later.Active() {
				k.later.Reset(grid)
			}
			return
		}
		ck := g.due.takeCheck(k.cfg.MaxRunning)
		if ck == nil {
			return // until one has ended
		}
		ck.turn.waits = false
		g.credit -= float64(ck.cost())
		ck.dial()
	}
}

// may reports whether another check of g may begin now. The intervals do not ask for more than that on average, but after the
// process stood still all checks are due.
func (k *Checker) may(g *group) bool {
	now, perSecond := k.cfg.Loop.Now(), float64(k.cfg.MostPerSecond)
	g.credit = min(g.credit+float64(now-g.since)/float64(time.Second)*perSecond, max(perSecond/2, 1))
	g.since = now
	return g.credit >= 1
}

// check makes one check again and again. It handles the connection of the one that runs. There are ten thousands of them, and most of
// the time most of them wait for the time of the next: what one needs besides is in its turn.
type check struct {
	k        *Checker
	of       *balancer.Check
	interval time.Duration
	due      int64 // when the next one begins, of the loop's clock, if it is scheduled
	turn     *turn // nil = none waits for its place or runs
	slot     int32 // in Checker.schedule, or unscheduled
	streak   int16 // checks in a row that contradict up
	up       bool
}

// turn is a check that is due: it waits until it may begin, and runs.
type turn struct {
	of       *check         // nil = idle
	patience *reactor.Timer // with what c is waited for
	c        *reactor.Conn  // nil = it does not run
	place    *group         // in which it waits or runs
	share    *share         // of its namespace in place
	began    int64          // of the loop's clock
	searched int            // bytes of an incomplete head that were looked at
	interim  int            // answers with more to come
	phase    phase
	waits    bool // in place.due
}

// maxIdle is how many turns are kept for those that begin, more than run at a time by default.
const maxIdle = 128

// begin gives ck a turn.
func (ck *check) begin() *turn {
	k := ck.k
	var t *turn
	if n := len(k.idle); n > 0 {
		t = k.idle[n-1]
		k.idle = k.idle[:n-1]
	} else {
		t = new(turn)
		t.patience = k.cfg.Loop.NewTimer(t.expired)
	}
	t.of, ck.turn = ck, t
	return t
}

// rest takes the turn of ck away, if it has one.
func (ck *check) rest() {
	t := ck.turn
	if t == nil {
		return
	}
	ck.turn = nil
	t.patience.Stop()
	*t = turn{patience: t.patience}
	if len(ck.k.idle) < maxIdle {
		ck.k.idle = append(ck.k.idle, t)
	}
}

// runs reports whether c is the connection of ck, nil not being one.
func (ck *check) runs(c *reactor.Conn) bool { return ck.turn != nil && c != nil && ck.turn.c == c }

// phase says how far a check has come.
type phase uint8

const (
	layer4 phase = iota // connecting
	layer6              // in the TLS handshake
	layer7              // waiting for the answer
)

// tick is the time of the next check.
func (ck *check) tick() {
	defer ck.recovers()
	t := ck.begin()
	t.waits, t.place = true, ck.group()
	t.place.due.addWaiting(ck)
	if ck.k.startNext(t.place); ck.turn == t && t.waits {
		ck.k.cfg.Bounds.Reached(bound.HealthChecks)
	}
}

// expired is the end of patience with a check that runs.
func (t *turn) expired() {
	ck := t.of
	if ck == nil {
		return
	}
	defer ck.recovers()
	ck.end(Result{Outcome: timeouts[t.phase]})
}

func (ck *check) dial() {
	defer ck.recovers()
	t := ck.turn
	t.phase, t.searched, t.interim, t.began = layer4, 0, 0, ck.k.cfg.Loop.Now()
	t.c = ck.k.cfg.Loop.Dial(ck.of.Endpoint().Addr(), ck, min(ck.k.cfg.ConnectTimeout, ck.interval))
}

// end closes the connection of the check and draws the conclusion.
func (ck *check) end(r Result) {
	k, t := ck.k, ck.turn
	if t == nil || t.c == nil {
		return
	}
	began := t.began
	place := ck.drop()
	k.cfg.Stats.Checks.Add(1)
	if !r.Passed() {
		k.cfg.Stats.Failed.Add(1)
		if k.cfg.Failed != nil {
			k.cfg.Failed(ck.of, r.Outcome)
		}
	}
	ck.of.CountResult(time.Duration(k.cfg.Loop.Now()-began), ck.up && !r.Passed())
	ck.conclude(r)
	ck.again(place)
}

// unknown ends a check that says nothing about the endpoint: there was no connection to be had for it.
func (ck *check) unknown() { ck.again(ck.drop()) }

// again sets the time of the next check. The last one has run in place.
func (ck *check) again(place *group) {
	k := ck.k
	k.after(ck, (0.9+0.2*k.random())*float64(ck.interval))
	k.startNext(place)
}

// drop closes the connection of the check that runs, and says in which group that was.
func (ck *check) drop() *group {
	t := ck.turn
	c, place, share := t.c, t.place, t.share
	ck.rest()
	c.CloseNow(true) // the endpoint shall not wait for a connection that says nothing
	place.due.endCheck(share)
	return place
}

// conclude counts one result.
func (ck *check) conclude(r Result) {
	ok := r.Passed()
	if ok == ck.up {
		ck.streak = 0
		return
	}
	ck.streak++
	limit := ck.k.cfg.Rise
	if ck.up {
		limit = ck.k.cfg.Fall
	}
	if int(ck.streak) >= min(limit, math.MaxInt16) {
		ck.up, ck.streak = ok, 0
		ck.k.cfg.Changed(ck.of, ok, r)
	}
}

// stop ends the check.
func (ck *check) stop() {
	ck.k.unschedule(ck)
	switch t := ck.turn; {
	case t == nil:
	case t.waits:
		t.place.due.leave(ck)
		ck.rest()
	case t.c != nil:
		ck.k.startNext(ck.drop())
	}
	if !ck.up {
		ck.k.cfg.Changed(ck.of, true, Result{Outcome: Unchecked})
	}
}
