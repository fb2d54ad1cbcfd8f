package shard

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"turnout/controller/admit"
)

// Defaults and bounds of Config.
const (
	DefaultWrites    = 100              // a second
	DefaultFlying    = 64               // actions at once
	DefaultLostAfter = 2 * time.Minute  // without a word of any replica
	DefaultMargin    = 10 * time.Second // past the TTL of a name, before a binding that leaves is deleted
	LeavingLimit     = time.Hour        // for which a binding that leaves and is still asked for is kept
	PendingLimit     = 10 * time.Minute // for which a move waits for the router where it leads
	RetryFirst       = time.Second      // pause after the first failure; each doubles, with jitter
	RetryLast        = 5 * time.Minute  // pauses become no longer
	UnderWay         = 10               // one in so many bindings may be under way, and always one
	callAgain        = 5 * time.Second  // the longest that Wake asks for
	stalled          = 4 * callAgain    // a longer pause between calls of Advance was ours, not that of routers
)

// Config is how routes are bound. Zero values are defaults.
type Config struct {
	Strategy         Strategy // required
	WritesPerSecond  int
	Flying           int // largest number of actions at once
	LostAfter        time.Duration
	Margin           time.Duration // past the TTL
	AllowWildcard    bool          // wildcardPolicy Subdomain is admitted, and claims hosts
	AllowSharedHosts bool          // routes of several namespaces may have one host
	Rebalance        string        // asks for a rebalance when it is not what was carried out last
	Seed             uint64        // of jitter
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	if c.WritesPerSecond <= 0 {
		c.WritesPerSecond = DefaultWrites
	}
	if c.Flying <= 0 {
		c.Flying = DefaultFlying
	}
	set(&c.LostAfter, DefaultLostAfter)
	set(&c.Margin, DefaultMargin)
	return c
}

// Summary is what the scheduler does, for the status of the RouteScheduler.
type Summary struct {
	Bound      int // routes that are bound
	Waiting    int // routes that are not, and are tried again
	Moving     int // routes under way from one router to another
	Held       bool
	Message    string // why nothing is moved
	Rebalanced string // the Config.Rebalance that has been carried out
}

// Trouble is why a route is not bound or not where it should be.
type Trouble struct {
	Reason   Reason
	Message  string
	Failures int       // in a row
	Next     time.Time // when it is tried again
}

// Planner decides what is bound where. It is made by New and used by one goroutine: Advance comes first, then what has changed, then Next.
// Objects are given in any order, but routes before bindings cost less memory; before Synced there are no actions. What it is given it does
// not change, and it keeps strings.
type Planner struct {
	config     Config
	rand       *rand.Rand
	begun, now time.Time
	clock      int64 // now, in nanoseconds since begun
	synced     bool
	admission  admit.Options
	claims     *admit.Claims
	candidates candidates

	namespaces  map[string]*namespace
	routers     map[string]*router
	domains     map[string][]*router // by domain, the oldest first
	hashedNames map[named]*route
	orphans     map[Key][]orphan // bindings of routes that are not known, by the route
	homeless    []Key            // of orphans, to be looked at

	queues   [queues]fifo
	timers   timers
	waiting  map[*route]struct{} // for a router to open
	woken    int64
	wake     bool
	statuses []*router // to be looked at
	later    []*router // whose status may not be written yet
	reports  []Action
	shrinks  map[*router]struct{} // whose capacity has changed
	flying   map[uint64]flight
	lastID   uint64
	pace     pace
	events   pace // of reports
	asks     []Action
	asking   int // actions of kind Ask that have not come back
	turn     int // of fresh and calm
	held     bool
	reviewed int64

	routes, bound, bindings, underway int
	settled                           int // bindings that leave and are in no DNS any more
	rebalance                         rebalance
	troubles                          map[Reason]int
	stats                             Stats
}

// orphan is a binding of a route that is not known.
type orphan struct {
	Binding
	at   int64 // when it is deleted at the earliest
	busy bool
}

// Stats counts what was done since the Planner began.
type Stats struct {
	Actions [kinds]uint64
	Results [outcomes]uint64
	Dropped uint64 // events that were not reported, because there were too many
	Placed  uint64 // bindings of routes that nothing served
	Moved   uint64 // bindings that left or were deleted because others had taken their place
}

// New returns a Planner that knows nothing yet.
func New(config Config, now time.Time) *Planner {
	config = config.withDefaults()
	p := &Planner{
		rand:        rand.New(rand.NewPCG(config.Seed, 0)),
		begun:       now,
		now:         now,
		candidates:  newCandidates(),
		namespaces:  make(map[string]*namespace),
		routers:     make(map[string]*router),
		domains:     make(map[string][]*router),
		hashedNames: make(map[named]*route),
		orphans:     make(map[Key][]orphan),
		waiting:     make(map[*route]struct{}),
		shrinks:     make(map[*router]struct{}),
		flying:      make(map[uint64]flight),
		troubles:    make(map[Reason]int),
	}
	p.admission = admit.Options{AllowWildcard: config.AllowWildcard, DisableOwnership: config.AllowSharedHosts}
	p.claims = admit.NewClaims(p.admission)
	p.config = config
	p.pace.set(config.WritesPerSecond)
	p.events.set(eventsPerSecond)
	return p
}

// Configure changes how routes are bound from now on. Bindings stay where they are, but for those that the new strategy has too many of.
func (p *Planner) Configure(config Config) {
	config = config.withDefaults()
	before := p.config
	p.config = config
	p.pace.set(config.WritesPerSecond)
	if admission := (admit.Options{AllowWildcard: config.AllowWildcard, DisableOwnership: config.AllowSharedHosts}); before.AllowWildcard != config.AllowWildcard || before.AllowSharedHosts != config.AllowSharedHosts {
		p.admission = admission
		p.claims = admit.NewClaims(admission)
		p.eachRoute(func(r *route) { p.claim(r); p.look(r) })
	}
	if before.Strategy != config.Strategy {
		p.eachRoute(p.look)
		p.wakeWaiting()
		for _, r := range p.routers {
			p.observe(r, false)
		}
	}
}

func (p *Planner) eachRoute(do func(*route)) {
	for _, ns := range p.namespaces {
		for _, r := range ns.routes {
			do(r)
		}
	}
}

// Advance says what time it is, by a clock that only goes forward. Whatever comes next has happened by then.
func (p *Planner) Advance(now time.Time) {
	clock := max(int64(now.Sub(p.begun)), p.clock)
	if gap := clock - p.clock; gap > int64(stalled) {
		// It was us who did not listen.
		for _, r := range p.routers {
			r.heard += gap
			for name, h := range r.replicas {
				h.at += gap
				r.replicas[name] = h
			}
		}
	}
	p.pace.advance(time.Duration(clock - p.clock))
	p.events.advance(time.Duration(clock - p.clock))
	p.clock, p.now = clock, now
	p.review()
	p.ring()
	p.rouse()
}

// Synced says that every object that there is has been given. rebalanced is the status of the RouteScheduler: the Config.Rebalance that was
// carried out last.
func (p *Planner) Synced(rebalanced string) {
	if p.synced {
		return
	}
	p.rebalance.done = rebalanced
	p.synced = true
	p.settleClaims()
	p.begin()
	for key := range p.orphans {
		p.homeless = append(p.homeless, key)
	}
}

// begin looks at all routes for the first time, those that are bound first and the older before the younger.
func (p *Planner) begin() {
	var all []*route
	p.eachRoute(func(r *route) {
		all = append(all, r)
		r.queue = noQueue
	})
	for i := range p.queues {
		p.queues[i] = fifo{}
	}
	slices.SortFunc(all, func(a, b *route) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, r := range all {
		p.infer(r)
		p.look(r)
	}
}

// infer finds which bindings take others' places, as they may have begun to before.
func (p *Planner) infer(r *route) {
	if len(r.bindings) < 2 {
		return
	}
	o := p.outlook(r)
	extra := min(len(o.good)+len(o.bad)-o.want, len(o.good))
	if extra <= 0 {
		return
	}
	for _, b := range p.spare(o.good, extra) {
		p.setMove(b, true)
	}
}

// Summary returns what the scheduler does.
func (p *Planner) Summary() Summary {
	s := Summary{Bound: p.bound, Waiting: p.routes - p.bound, Moving: p.underway, Held: p.held, Rebalanced: p.rebalance.done}
	if p.held {
		s.Message = heldMessage
	}
	return s
}

// Stats returns what was done since the Planner began.
func (p *Planner) Stats() Stats { return p.stats }

// Trouble returns why a route is not bound or not where it should be. The bool is false if it is.
func (p *Planner) Trouble(key Key) (Trouble, bool) {
	r := p.route(key)
	if r == nil || r.trouble == nil {
		return Trouble{}, false
	}
	t := Trouble{Reason: r.trouble.reason, Message: r.trouble.message, Failures: r.trouble.failures}
	if r.timer >= 0 {
		t.Next = p.begun.Add(time.Duration(r.at))
	}
	return t, true
}

// Troubles returns how many routes are in trouble for each reason.
func (p *Planner) Troubles() map[Reason]int { return maps.Clone(p.troubles) }
