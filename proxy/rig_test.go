package proxy

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/bound"
	"turnout/internal/testkit/testaddr"
	"turnout/proxy/detached"
	"turnout/routing"
)

// rig is a worker with a fake client, fake endpoints and virtual time. What the pipeline asks of them stands in said, in order.
type rig struct {
	t     *testing.T
	w     *Worker
	clock *virtual
	specs []routing.RouteSpec
	rule  func(s *routing.RuleSpec) // what is different of the rule that the first of specs is; nil = nothing
	store *routing.Store
	pools *balancer.Registry

	said     []string
	logged   []Record
	workLeft int // least work that an exchange had left when it was logged, 0 = none had less
	bounds   bound.Counts

	ex   *Exchange
	down *fakeDown
	ups  []*fakeUp   // all there were
	exs  []*Exchange // that asked for each of them, in the order of Acquire
	head Head        // last that the client got
	sent Head        // last that an endpoint got

	interim Head // last 1xx that the client got

	pooled    bool   // Acquire gives an upstream at once
	congested bool   // Body says so, of either half
	unread    bool   // result of Congested of the client
	may       bool   // MayRefuse says so
	agrees    bool   // Upgrade does
	onDown    func() // called when the answer is complete, or broken off
	panicAt   string // said panics over this
	taken     uint64 // what Progress says, of either half
	left      int
	moved     func(in, out uint64)
	over      func() // ends the tunnel
}

// newRig has one route, app.test, with the servers a and b; change may alter it, and the worker's configuration.
func newRig(t *testing.T, change func(c *Config, s *routing.RouteSpec)) *rig {
	t.Helper()
	r := &rig{t: t, clock: &virtual{}, store: routing.NewStore(), pools: balancer.NewRegistry(), agrees: true}
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "app", UID: "1"}, Host: "app.test", Balance: balancer.RoundRobin,
		Policy:  routing.Policy{ServerTimeout: 20 * time.Second, TunnelTimeout: time.Hour, ConnectTimeout: 5 * time.Second, Forwarded: routing.ForwardedNever},
		Targets: targets("a", "b"),
	}
	cfg := Config{Store: r.store, Clock: r.clock, Upstreams: (*fakeUpstreams)(r), AccessLog: (*fakeLog)(r), Timeouts: DefaultTimeouts(), Bounds: &r.bounds, Seed: 1}
	if change != nil {
		change(&cfg, &spec)
	}
	r.specs = []routing.RouteSpec{spec}
	r.publish()
	var err error
	if r.w, err = NewWorker(cfg); err != nil {
		t.Fatal(err)
	}
	r.down = &fakeDown{r: r}
	return r
}

// newRuleRig is newRig for a rule that differs from an OpenShift Route.
func newRuleRig(t *testing.T, change func(s *routing.RuleSpec)) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.rule = change
	r.publish()
	return r
}

// targets have the addresses 10.0.0.97 for a, and so on.
func targets(ids ...string) (all []balancer.Target) {
	for _, id := range ids {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, id[0]}), 80)
		all = append(all, balancer.Target{ID: id, Addr: testaddr.Of(addr), Weight: 1})
	}
	return all
}

func (r *rig) publish() {
	r.t.Helper()
	var rules []routing.RuleSpec
	for i := range r.specs {
		rules = append(rules, r.specs[i].Rule())
	}
	if r.rule != nil {
		r.rule(&rules[0])
	}
	table, rejected := routing.CompileRules(routing.Options{Registry: r.pools}, r.store.Load(), rules)
	if len(rejected) > 0 {
		r.t.Fatal(rejected)
	}
	r.store.Publish(table)
}

func (r *rig) pool() *balancer.Pool { return r.pools.Pool(r.specs[0].RouteKey.String()) }

// eachPool calls yield for the pools of the first route, if it is there.
func (r *rig) eachPool(yield func(p *balancer.Pool) bool) {
	if route := r.store.Load().Route(r.specs[0].RouteKey); route != nil {
		route.Pools(yield)
	}
}

// mirrorPools calls yield for the pools of the mirrors of the first route.
func (r *rig) mirrorPools(yield func(p *balancer.Pool) bool) {
	mirrors := r.store.Load().Route(r.specs[0].RouteKey).Mirrors()
	for i := range mirrors {
		if !yield(mirrors[i].Pool()) {
			return
		}
	}
}

// sayf notes what the pipeline asks of a fake.
func (r *rig) sayf(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	r.said = append(r.said, what)
	if r.panicAt != "" && strings.HasPrefix(what, r.panicAt) {
		r.panicAt = ""
		panic("a mistake")
	}
}

// heard returns what was said since it was called last.
func (r *rig) heard() string {
	all := strings.Join(r.said, ", ")
	r.said = nil
	return all
}

// want fails the test unless this was said since the last look.
func (r *rig) want(said string) {
	r.t.Helper()
	if got := r.heard(); got != said {
		r.t.Errorf("said %q\nwant %q", got, said)
	}
}

// ended fails the test unless exactly one record was logged since it was called last, with this reason and status, and nothing
// is left of the exchange or relay anywhere.
func (r *rig) ended(reason Reason, status int) Record {
	r.t.Helper()
	if len(r.logged) != 1 || r.logged[0].Reason != reason || r.logged[0].Status != status {
		r.t.Fatalf("logged %+v, want %v with status %d", r.logged, reason, status)
	}
	rec := r.logged[0]
	r.logged = nil
	r.wantNothingLeft()
	return rec
}

// wantNothingLeft fails the test unless every gauge is at zero.
func (r *rig) wantNothingLeft() {
	r.t.Helper()
	var sums Totals
	r.w.Totals(&sums)
	route := r.store.Load().Route(r.specs[0].RouteKey)
	open := map[TunnelRoute]int{}
	r.w.Tunnels(open)
	inFlight, queued := int64(0), 0
	for p := range r.eachPool {
		inFlight, queued = inFlight+p.InFlight(), queued+p.Queue().Length
	}
	if sums.Active != 0 || inFlight != 0 || r.w.Kept() != 0 || r.w.Compressing() != 0 || r.w.waiting.Used() != 0 || len(open) != 0 || queued != 0 {
		r.t.Errorf("left: %d active, %d in flight, %d bytes kept, %d compressing, tunnels %v, %d queued", sums.Active, inFlight, r.w.Kept(), r.w.Compressing(), open, queued)
	}
	if route != nil && route.Stats().Sessions.Current() != 0 {
		r.t.Errorf("left: %d of the route's share", route.Stats().Sessions.Current())
	}
	if r.w.current != nil {
		r.t.Error("something is still at work")
	}
}

func (r *rig) totals() (t Totals) {
	r.w.Totals(&t)
	return t
}

// begin makes an exchange without a request yet.
func (r *rig) begin(client Client) {
	if !client.Addr.IsValid() {
		client.Addr, client.Local = netip.MustParseAddrPort("192.0.2.7:4711"), netip.MustParseAddrPort("10.0.0.1:8080")
	}
	r.ex = r.w.Acquire(r.down, &client)
}

// ask begins an exchange with a request, such as "GET /path?query" or "POST / 10": the number is the length of its body, or -.
func (r *rig) ask(line string, fields ...string) {
	r.begin(Client{})
	h, end := request(line, fields...)
	r.ex.Request(h, end)
}

func request(line string, fields ...string) (h *Head, end bool) {
	words := strings.Fields(line)
	path, query, _ := strings.Cut(words[1], "?")
	h = &Head{Method: []byte(words[0]), Target: []byte(words[1]), Authority: []byte("app.test"), Path: []byte(path), Minor: 1, Fields: fieldLines(fields...)}
	if query != "" {
		h.Query = []byte("?" + query)
	}
	if len(words) == 2 {
		return h, true
	}
	if h.ContentLength = -1; words[2] != "-" {
		_, _ = fmt.Sscan(words[2], &h.ContentLength)
	}
	return h, false
}

// fieldLines returns the fields of lines such as "name: value".
func fieldLines(lines ...string) (fields []Field) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		fields = append(fields, Field{Name: []byte(name), Value: []byte(value)})
	}
	return fields
}

// answer is the endpoint's head; end: it is all.
func (r *rig) answer(status int, end bool, fields ...string) {
	r.ex.ResponseHead(&Head{Status: status, Minor: 1, ContentLength: -1, Fields: fieldLines(fields...)}, end)
}

// up is the last upstream.
func (r *rig) up() *fakeUp { return r.ups[len(r.ups)-1] }

// ready answers the last Acquire.
func (r *rig) ready() { r.ex.UpstreamReady((*fakeUpstreams)(r).upstream()) }

// fakeUpstreams are the connections of a rig.
type fakeUpstreams rig

func (f *fakeUpstreams) upstream() *fakeUp {
	u := &fakeUp{(*rig)(f), len(f.ups) + 1}
	f.ups = append(f.ups, u)
	return u
}

func (f *fakeUpstreams) Acquire(e *balancer.Endpoint, ex *Exchange, fresh bool) Upstream {
	f.exs = append(f.exs, ex)
	how := ""
	if fresh {
		how = " fresh"
	}
	(*rig)(f).sayf("acquire %c%s", e.Addr().Addr().As4()[3], how)
	if f.pooled && !fresh {
		return f.upstream()
	}
	return nil
}

func (f *fakeUpstreams) Cancel(*Exchange) { (*rig)(f).sayf("cancel") }

// fakeUp is the n-th upstream.
type fakeUp struct {
	r *rig
	n int
}

func ending(end bool) string {
	if end {
		return " end"
	}
	return ""
}

func (u *fakeUp) Head(h *Head, end bool) {
	u.r.sent = cloneHead(h)
	u.r.sayf("up%d head %s %s%s%s", u.n, h.Method, h.Path, h.Query, ending(end))
}

func (u *fakeUp) Body(p []byte) bool {
	u.r.sayf("up%d body %s", u.n, short(p))
	return u.r.congested
}
func (u *fakeUp) End(s Section)                   { u.r.sayf("up%d end%s", u.n, trailing(s.Fields())) }
func (u *fakeUp) Abort(f Fault)                   { u.r.sayf("up%d abort %v", u.n, f) }
func (u *fakeUp) Pause()                          { u.r.sayf("up%d pause", u.n) }
func (u *fakeUp) Resume()                         { u.r.sayf("up%d resume", u.n) }
func (u *fakeUp) Progress() (taken uint64, n int) { return u.r.taken, u.r.left }
func (u *fakeUp) Plain() (none detached.Conn)     { return none }
func (u *fakeUp) Spliced(n uint64)                { u.r.sayf("up%d moved %d", u.n, n) }
func (u *fakeUp) MayRefuse() (may, asked bool)    { return u.r.may, false }

// fakeDown is the client.
type fakeDown struct{ r *rig }

func (d *fakeDown) Plain() (none detached.Conn) { return none }
func (d *fakeDown) Spliced(n uint64)            { d.r.sayf("down moved %d", n) }
func (d *fakeDown) Congested() bool             { return d.r.unread }
func (d *fakeDown) Informational(s Section) {
	d.r.interim = cloneHead(s.Head())
	d.r.sayf("down %d", s.Head().Status)
}
func (d *fakeDown) Head(s Section, end bool) {
	h := s.Head()
	d.r.head = cloneHead(h)
	closes := ""
	if h.Close {
		closes = " close"
	}
	d.r.sayf("down head %d%s%s", h.Status, closes, ending(end))
	if end {
		d.complete()
	}
}

func (d *fakeDown) Body(p []byte) bool {
	d.r.sayf("down body %s", short(p))
	return d.r.congested
}

func (d *fakeDown) End(s Section) {
	d.r.sayf("down end%s", trailing(s.Fields()))
	d.complete()
}

func (d *fakeDown) Abort(f Fault) {
	d.r.sayf("down abort %v", f)
	d.complete()
}

func (d *fakeDown) complete() {
	if d.r.onDown != nil {
		d.r.onDown()
	}
}
func (d *fakeDown) Pause()                          { d.r.sayf("down pause") }
func (d *fakeDown) Resume()                         { d.r.sayf("down resume") }
func (d *fakeDown) Progress() (taken uint64, n int) { return d.r.taken, d.r.left }
func (d *fakeDown) Upgrade(*Head) Joiner {
	if !d.r.agrees {
		return nil
	}
	return func(s Section, idle time.Duration, moved func(in, out uint64), done func()) (end func()) {
		h := s.Head()
		d.r.head, d.r.moved, d.r.over = cloneHead(h), moved, done
		d.r.sayf("join %d idle %v", h.Status, idle)
		h.Detach()
		return func() { d.r.sayf("tunnel ends") }
	}
}

// short is a body as the tests write it: pages of the router by their title.
func short(p []byte) string {
	s := string(p)
	if _, rest, ok := strings.Cut(s, "<h1>"); ok {
		title, _, _ := strings.Cut(rest, "</h1>")
		return "<" + title + ">"
	}
	if len(s) > 40 {
		return fmt.Sprintf("of %d bytes", len(s))
	}
	return s
}

func trailing(fields []Field) (s string) {
	for _, f := range fields {
		s += " " + string(f.Name) + "=" + string(f.Value)
	}
	return s
}

func cloneHead(h *Head) Head {
	c := *h
	c.Fields = nil
	for _, f := range h.Fields {
		c.Fields = append(c.Fields, Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
	}
	return c
}

// fieldsOf are the fields of a head, in order; of those names alone, if there are any.
func fieldsOf(h *Head, names ...string) string {
	var all []string
	for _, f := range h.Fields {
		if len(names) == 0 || slices.Contains(names, string(f.Name)) {
			all = append(all, string(f.Name)+": "+string(f.Value))
		}
	}
	return strings.Join(all, ", ")
}

// fakeLog keeps records.
type fakeLog rig

func (l *fakeLog) Log(rec *Record) {
	kept := *rec
	kept.Method, kept.Host, kept.Target, kept.UniqueID = bytes.Clone(rec.Method), bytes.Clone(rec.Host), bytes.Clone(rec.Target), bytes.Clone(rec.UniqueID)
	kept.Captured = nil
	for _, c := range rec.Captured {
		kept.Captured = append(kept.Captured, bytes.Clone(c))
	}
	l.logged = append(l.logged, kept)
	if l.ex != nil {
		l.workLeft = min(l.workLeft, l.ex.work.Left())
	}
	if l.panicAt == "log" {
		l.panicAt = ""
		panic("a mistake")
	}
}

// virtual is a Clock in virtual time.
type virtual struct {
	bad    int // so many more calls of Now panic
	now    int64
	timers []*fakeTimer
	mail   []func()
}

type fakeTimer struct {
	c   *virtual
	fn  func()
	at  int64
	set bool
}

func (c *virtual) Now() int64 {
	if c.bad > 0 {
		c.bad--
		panic("a mistake")
	}
	return c.now
}

// set is how many timers are set.
func (c *virtual) set() (n int) {
	for _, t := range c.timers {
		if t.set {
			n++
		}
	}
	return n
}
func (c *virtual) Wall() time.Time { return time.Unix(1_700_000_000, c.now) }
func (c *virtual) NewTimer(fn func()) Timer {
	t := &fakeTimer{c: c, fn: fn}
	c.timers = append(c.timers, t)
	return t
}

func (c *virtual) Post(fn func()) bool {
	c.mail = append(c.mail, fn)
	return true
}
func (t *fakeTimer) Reset(d time.Duration) { t.at, t.set = t.c.now+int64(d), true }
func (t *fakeTimer) Stop()                 { t.set = false }

// deliver does what was posted.
func (c *virtual) deliver() {
	for len(c.mail) > 0 {
		fn := c.mail[0]
		c.mail = c.mail[1:]
		fn()
	}
}

// advance lets time pass; timers that are due fire in their order.
func (c *virtual) advance(d time.Duration) {
	c.deliver()
	for end := c.now + int64(d); ; {
		var first *fakeTimer
		for _, t := range c.timers {
			if t.set && t.at <= end && (first == nil || t.at < first.at) {
				first = t
			}
		}
		if first == nil {
			c.now = end
			return
		}
		c.now, first.set = first.at, false
		first.fn()
		c.deliver()
	}
}

// recovering is what a loop does around fn: a panic is recovered, and the worker notified.
func (r *rig) recovering(fn func()) (panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			panicked = true
			r.w.Interrupted()
		}
	}()
	fn()
	return false
}

// silent are both halves of exchanges of which nobody wants to know anything.
type silent struct{}

func (s *silent) Acquire(*balancer.Endpoint, *Exchange, bool) Upstream { return (*silentUp)(s) }
func (*silent) Cancel(*Exchange)                                       {}
func (*silent) Plain() (none detached.Conn)                            { return none }
func (*silent) Spliced(uint64)                                         {}
func (*silent) Congested() bool                                        { return false }
func (*silent) Informational(Section)                                  {}
func (*silent) Head(Section, bool)                                     {}
func (*silent) Body([]byte) bool                                       { return false }
func (*silent) End(Section)                                            {}
func (*silent) Abort(Fault)                                            {}
func (*silent) Upgrade(*Head) Joiner                                   { return nil }
func (*silent) Pause()                                                 {}
func (*silent) Resume()                                                {}
func (*silent) Progress() (taken uint64, left int)                     { return 0, 0 }

// silentUp is silent towards an endpoint.
type silentUp silent

func (*silentUp) Head(*Head, bool)                   {}
func (*silentUp) Body([]byte) bool                   { return false }
func (*silentUp) End(Section)                        {}
func (*silentUp) Abort(Fault)                        {}
func (*silentUp) Plain() (none detached.Conn)        { return none }
func (*silentUp) Spliced(uint64)                     {}
func (*silentUp) MayRefuse() (may, asked bool)       { return false, true }
func (*silentUp) Pause()                             {}
func (*silentUp) Resume()                            {}
func (*silentUp) Progress() (taken uint64, left int) { return 0, 0 }
