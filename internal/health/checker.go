package health

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
)

// Config is how a Checker checks. Loop and Changed are required.
type Config struct {
	Loop *reactor.Loop
	// Secure starts TLS on a connection as for requests; tlsmux.Client.Secure. nil: endpoints that want TLS are down.
	Secure func(c *reactor.Conn, id *balancer.TLS, done func(error))
	// Changed is told on the loop when an endpoint goes down or comes up.
	Changed func(e *balancer.Endpoint, up bool)

	ConnectTimeout time.Duration // of a TCP connect, if the interval is not shorter; 0 = 5 s
	TLSTimeout     time.Duration // of the handshake that follows; 0 = 5 s
	Rise, Fall     int           // 0 = 2 and 3
	MaxRunning     int           // checks at a time, further ones wait their turn; 0 = 64
	// MostPerSecond bounds how many checks begin in a second on average. When the intervals ask for more, those of endpoints
	// that are well are stretched. 0 = 500. Those of endpoints whose last check failed, or that are down, have such a bound of
	// their own.
	MostPerSecond int
	Seed          uint64 // of the spread, for tests; 0 = another one each time
	Stats         *Stats // what to count in; nil = in one of the checker's own
}

// Checker checks the endpoints it is told to. All its methods are for the goroutine of its loop.
type Checker struct {
	cfg     Config
	rng     rand.PCG
	checks  map[*balancer.Endpoint]*check
	running int
	waiting []*check // due, the first of them longest
	asked   [2]int64 // checks that the intervals ask for, in millionths of a second; of those that are well, and of the others
}

// NewChecker checks the configuration and makes a Checker without endpoints.
func NewChecker(cfg Config) (*Checker, error) {
	if cfg.Loop == nil || cfg.Changed == nil {
		return nil, errors.New("cannot make a health checker: Loop and Changed are required")
	}
	if cfg.ConnectTimeout < 0 || cfg.TLSTimeout < 0 || cfg.Rise < 0 || cfg.Fall < 0 || cfg.MaxRunning < 0 || cfg.MostPerSecond < 0 {
		return nil, fmt.Errorf("cannot make a health checker: a limit is negative: %v %v %d %d %d %d", cfg.ConnectTimeout, cfg.TLSTimeout, cfg.Rise, cfg.Fall, cfg.MaxRunning, cfg.MostPerSecond)
	}
	const timeout = 5 * time.Second
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = timeout
	}
	if cfg.TLSTimeout == 0 {
		cfg.TLSTimeout = timeout
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
	k := &Checker{cfg: cfg, checks: make(map[*balancer.Endpoint]*check)}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	k.rng.Seed(cfg.Seed, cfg.Seed)
	return k, nil
}

// Check has e checked every interval from now on, 0 = no more. An endpoint that is checked no more is up. A new interval
// counts from the next check on, but no later than it says.
func (k *Checker) Check(e *balancer.Endpoint, interval time.Duration) {
	ck := k.checks[e]
	switch {
	case interval <= 0 && ck != nil:
		delete(k.checks, e)
		k.asked[ck.kind()] -= rate(ck.interval)
		ck.stop()
	case interval > 0 && ck == nil:
		ck = &check{k: k, e: e, interval: interval, up: true}
		ck.timer = k.cfg.Loop.NewTimer(ck.tick)
		k.checks[e] = ck
		k.asked[well] += rate(interval)
		k.after(ck, k.random()*float64(interval))
	case interval > 0 && ck.interval != interval:
		shorter := interval < ck.interval
		k.asked[ck.kind()] += rate(interval) - rate(ck.interval)
		ck.interval = interval
		if shorter && ck.timer.Active() && ck.c == nil {
			k.after(ck, k.random()*float64(interval))
		}
	}
}

// Len is the number of endpoints that are checked.
func (k *Checker) Len() int { return len(k.checks) }

// MostPerSecond is how many checks a Checker, or all those of a Monitor together, begin in a second by default.
const MostPerSecond = 500

// The kinds of endpoints by their last check.
const (
	well   = iota // up, and it succeeded
	unwell        // down, or it failed
)

// kind is that of the endpoint.
func (ck *check) kind() int {
	if ck.up && ck.streak == 0 {
		return well
	}
	return unwell
}

// rate is how many checks an interval asks for, in millionths of a second.
func rate(interval time.Duration) int64 { return 1e6 * int64(time.Second) / int64(interval) }

// pause is the time until the next check of ck, on average.
func (k *Checker) pause(ck *check) float64 {
	stretch := float64(k.asked[ck.kind()]) / 1e6 / float64(k.cfg.MostPerSecond)
	return float64(ck.interval) * max(stretch, 1)
}

// grid is what the times of checks are multiples of, so that a loop that has nothing else to do wakes up for several at once.
const grid = 50 * time.Millisecond

// after sets the time of the next check of ck, so many nanoseconds from now.
func (k *Checker) after(ck *check, pause float64) {
	now := k.cfg.Loop.Now()
	at := now + int64(pause)
	at -= at % int64(min(grid, ck.interval/10+1))
	ck.timer.Reset(time.Duration(max(at-now, 0)))
}

// random is a number of 0 to 1.
func (k *Checker) random() float64 { return float64(k.rng.Uint64()>>11) / (1 << 53) }

// next starts checks that wait, as many as may run.
func (k *Checker) next() {
	for k.running < k.cfg.MaxRunning && len(k.waiting) > 0 {
		ck := k.waiting[0]
		k.waiting[0] = nil
		if k.waiting = k.waiting[1:]; len(k.waiting) == 0 {
			k.waiting = nil // the array goes with its last element
		}
		if ck.waits {
			ck.waits = false
			ck.dial()
		}
	}
}

// check is the checks of one endpoint. It handles the connection of the one that runs.
type check struct {
	k        *Checker
	e        *balancer.Endpoint
	interval time.Duration
	timer    *reactor.Timer // of the next check, or of the handshake while c is there
	c        *reactor.Conn  // of the check that runs; nil = none runs
	streak   int            // checks in a row that contradict up
	up       bool
	waits    bool // in Checker.waiting
	spread   bool // the first check has its time among all others
}

// tick is the time of the next check, or the end of patience with a handshake.
func (ck *check) tick() {
	if ck.c != nil {
		ck.end(false)
		return
	}
	if !ck.spread { // meanwhile others have come: they share what their intervals ask for
		ck.spread = true
		if pause := ck.k.pause(ck) - float64(ck.interval); pause > 0 {
			ck.k.after(ck, ck.k.random()*pause)
			return
		}
	}
	ck.waits = true
	ck.k.waiting = append(ck.k.waiting, ck)
	ck.k.next()
}

func (ck *check) dial() {
	ck.k.running++
	ck.c = ck.k.cfg.Loop.Dial(ck.e.Addr(), ck, min(ck.k.cfg.ConnectTimeout, ck.interval))
}

// end closes the connection of the check and draws the conclusion.
func (ck *check) end(ok bool) {
	k := ck.k
	if ck.c == nil {
		return
	}
	ck.drop()
	k.cfg.Stats.Checks.Add(1)
	if !ok {
		k.cfg.Stats.Failed.Add(1)
	}
	k.asked[ck.kind()] -= rate(ck.interval)
	ck.conclude(ok)
	k.asked[ck.kind()] += rate(ck.interval)
	ck.again()
}

// unknown ends a check that says nothing about the endpoint: there was no connection to be had for it.
func (ck *check) unknown() {
	ck.drop()
	ck.again()
}

// again sets the time of the next check.
func (ck *check) again() {
	k := ck.k
	k.after(ck, (0.9+0.2*k.random())*k.pause(ck))
	k.next()
}

// drop closes the connection of the check that runs.
func (ck *check) drop() {
	c := ck.c
	ck.c = nil
	c.CloseNow(true) // the endpoint shall not wait for a connection that says nothing
	ck.k.running--
}

// conclude counts one result.
func (ck *check) conclude(ok bool) {
	if ok == ck.up {
		ck.streak = 0
		return
	}
	ck.streak++
	limit := ck.k.cfg.Rise
	if ck.up {
		limit = ck.k.cfg.Fall
	}
	if ck.streak >= limit {
		ck.up, ck.streak = ok, 0
		ck.k.cfg.Changed(ck.e, ok)
	}
}

// stop ends the checks of an endpoint.
func (ck *check) stop() {
	ck.waits = false
	ck.timer.Stop()
	if ck.c != nil {
		ck.drop()
		ck.k.next()
	}
	if !ck.up {
		ck.k.cfg.Changed(ck.e, true)
	}
}

// Connected implements reactor.Handler.
func (ck *check) Connected(c *reactor.Conn) {
	if c != ck.c {
		return
	}
	id := ck.e.TLS()
	if id == nil || ck.k.cfg.Secure == nil {
		ck.end(id == nil)
		return
	}
	ck.timer.Reset(ck.k.cfg.TLSTimeout)
	ck.k.cfg.Secure(c, id, func(err error) {
		if c == ck.c {
			ck.timer.Stop()
			if err == nil {
				c.SetHandler(ck)
			}
			ck.end(err == nil)
		}
	})
}

// Data implements reactor.Handler. Whatever a server says first does not matter.
func (ck *check) Data(_ *reactor.Conn, p []byte) int { return len(p) }

// EOF implements reactor.Handler.
func (ck *check) EOF(*reactor.Conn) {}

// Drained implements reactor.Handler.
func (ck *check) Drained(*reactor.Conn) {}

// Closed implements reactor.Handler.
func (ck *check) Closed(c *reactor.Conn, why error) {
	switch {
	case c != ck.c:
	case reactor.Exhausted(why):
		ck.unknown()
	default:
		ck.end(false)
	}
}
