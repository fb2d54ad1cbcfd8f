package metrics

import (
	"cmp"
	"net/netip"
	"strconv"
	"time"

	"turnout/balancer"
	"turnout/internal/keyed"
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/routing"
)

// A row is what has one series of each family: a front end, a route, a server. Rows are made once per scrape, and what they lead to is
// read when their series is written.

// port is a port of the router, as a front end of the HAProxy router.
type port struct {
	text     labelText
	sessions *traffic.Sessions
	totals   *proxy.PortTotals
	now      int64 // see traffic.Sessions.Begin
	most     int   // connections that there may be
}

// backend is a rule of an object, as a backend of the HAProxy router. An OpenShift Route is one rule, others may be many: the series of an
// object have what its rules come to together, and the word that the HAProxy router has for the termination of the first one.
type backend struct {
	text  labelText // backend, namespace, route
	plain labelText // namespace, route
	*routing.Route
	stats *routing.Stats // empty ones if nothing was counted yet
	queue balancer.QueueStats
	// failed are its checks that failed, by health.Outcome; nil = none
	failed *[balancer.FailureReasons]uint64
	now    int64
	next   *backend // another rule of the object, nil = there is none
	// owners are the rules that pools of an object with several rules are counted for; nil with one
	// rule.
	owners map[*balancer.Pool]*routing.Route
}

// pools yields the pools that are counted for a rule. Rules of an object share pools: each is
// counted for the first rule that has it.
func (b *backend) pools(yield func(*balancer.Pool) bool) {
	for p := range b.Pools {
		if b.owners != nil && b.owners[p] != b.Route {
			continue
		}
		if !yield(p) {
			return
		}
	}
}

// share finds the owners of the pools of an object, b being its first rule.
func (b *backend) share() {
	owners := make(map[*balancer.Pool]*routing.Route)
	for rule := b; rule != nil; rule = rule.next {
		rule.owners = owners
		for p := range rule.Pools {
			if owners[p] == nil {
				owners[p] = rule.Route
			}
		}
	}
}

// objectKey is what tells the series of two objects apart.
type objectKey struct{ namespace, name string }

// backends are the objects of a table, each by its first rule.
func backends(t *routing.Table) []backend {
	all, nothing := make([]backend, 0, t.Len()), new(routing.Stats)
	heads := keyed.New(func(b *backend) objectKey { return objectKey{b.Namespace(), b.Name()} })
	for r := range t.Routes {
		stats := cmp.Or(r.Counted(), nothing)
		head := heads.Get(objectKey{r.Namespace(), r.Name()})
		if head == nil {
			all = append(all, backend{Route: r, stats: stats}) // there is room for all: heads do not move
			heads.Put(&all[len(all)-1])
			continue
		}
		other := &backend{Route: r, stats: stats, next: head.next}
		if before(r.Key(), head.Key()) {
			other.Route, other.stats, head.Route, head.stats = head.Route, head.stats, r, stats
		}
		head.next = other
	}
	for i := range all {
		if all[i].next != nil {
			all[i].share()
		}
	}
	return all
}

func before(a, b routing.RouteKey) bool {
	return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.UID, b.UID)) < 0
}

// http reports that requests of a rule are looked at.
func (b *backend) http() bool {
	for ; b != nil; b = b.next {
		if !b.Termination().Relays() {
			return true
		}
	}
	return false
}

// ends is when the first of its own certificates ends, the zero value without any.
func (b *backend) ends() (first time.Time) {
	for ; b != nil; b = b.next {
		if end := b.CertificateEnds(); !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// addPool adds what is known of a pool of a rule to what is known of others.
func (b *backend) addPool(p *balancer.Pool) {
	if failed, some := p.CheckFailures(); some {
		if b.failed == nil {
			b.failed = new([balancer.FailureReasons]uint64)
		}
		for i, n := range failed {
			b.failed[i] += n
		}
	}
	if p.Limit() > 0 {
		q := p.Queue()
		b.queue = balancer.QueueStats{Length: b.queue.Length + q.Length, Most: max(b.queue.Most, q.Most), Delay: max(b.queue.Delay, q.Delay)}
	}
}

// ejections is how often servers of a rule were ejected.
func (b *backend) ejections(why balancer.EjectReason) (n uint64) {
	for p := range b.pools {
		n += p.Ejections(why)
	}
	return n
}

// usable reports that some server of a rule may be chosen.
func (b *backend) usable() bool {
	for p := range b.Pools {
		if p.Usable() {
			return true
		}
	}
	return false
}

// requests is how many were sent to an endpoint, and attempts how often.
func (b *backend) requests() uint64 {
	s := b.stats
	return s.Sessions.Total() - min(s.Sessions.Total(), s.Unserved.Load()+uint64(b.queue.Length))
}

func (b *backend) attempts() uint64 {
	return b.requests() + b.stats.Retries.Load() + b.stats.Redispatches.Load()
}

// serverRow is one server of a route.
type serverRow struct {
	text    labelText
	listed  balancer.Listed
	traffic *balancer.Traffic // of listed.Server; one that is empty if there is none
	queue   balancer.QueueStats
	limit   int
	weight  int  // 0 of one that another rule of the object has: it is not more because more rules send to it
	http    bool // requests are looked at
	times   times
	route   *routing.Route
	// next is another server with the same labels, or nil: rules of an object send to the same ones, and two ports of a service can have
	// names of their own and the same number.
	next *serverRow
}

// times are what series of servers are reckoned with.
type times struct {
	now  int64 // see traffic.Sessions.Begin
	wall time.Time
}

func (s *serverRow) requests() uint64 {
	if s.listed.Server == nil {
		return 0
	}
	return s.listed.Requests()
}

// attempts is how often a request was sent to it, or was to be.
func (s *serverRow) attempts() uint64 { return s.requests() + s.traffic.Retries.Load() }

// words are what the HAProxy router calls backends by their termination.
var words = [...]string{routing.TermNone: "http", routing.TermEdge: "https-edge", routing.TermReencrypt: "https", routing.TermPassthrough: "tcp", routing.TermStream: "tcp"}

// tableSums is what the series about the whole table say.
type tableSums struct {
	*routing.Table

	backends []backend
	listed   []backend       // those with series of their own
	routes   [len(words)]int // by termination
	servers  int
	limit    int // of servers, above which none is listed
}

// rows are those of one scrape.
type rows struct {
	backends []backend
	servers  []serverRow // nil above the threshold
	texts    texts
	nothing  balancer.Traffic // of servers that no request has wanted
}

// sum looks at the whole table.
func (c *collector) sum() tableSums {
	table := c.cfg.Table()
	sums := tableSums{Table: table, limit: c.cfg.ServerThreshold, backends: backends(table)}
	for i := range sums.backends {
		sums.routes[sums.backends[i].Termination()]++
	}
	sums.listed = c.listed(sums.backends)
	for i := range sums.listed {
		for b := &sums.listed[i]; b != nil; b = b.next {
			for p := range b.pools {
				sums.servers += p.Len()
			}
		}
	}
	return sums
}

// listed returns the objects that have series of their own. There may be ten thousand routes of the Gateway API, and no dashboard of OpenShift's asks for them.
func (c *collector) listed(all []backend) []backend {
	if c.cfg.GatewayRoutes {
		return all
	}
	for i := range all {
		if !c.lists(&all[i]) {
			some := append([]backend(nil), all[:i]...)
			for k := i + 1; k < len(all); k++ {
				if c.lists(&all[k]) {
					some = append(some, all[k])
				}
			}
			return some
		}
	}
	return all
}

// lists reports whether an object has series of its own without being asked for by GatewayRoutes.
func (c *collector) lists(b *backend) bool {
	if b.Listener() == "" {
		return true
	}
	_, named := c.follower.named[b.key()]
	return named
}

// makeRows makes the rows of a table.
func makeRows(sums tableSums, at times) *rows {
	r := &rows{backends: sums.listed}
	list := sums.servers <= sums.limit
	if list {
		r.servers = make([]serverRow, 0, sums.servers)
	}
	for i := range r.backends {
		b := &r.backends[i]
		r.texts.begin()
		r.texts.addText("backend=\"").addText(words[b.Termination()]).addText("\",")
		after := r.texts.here()
		r.texts.addLabel("namespace", b.Namespace()).addText(",").addLabel("route", b.Name())
		b.text = r.texts.end()
		b.plain = b.text.from(after)
		for rule := b; rule != nil; rule = rule.next {
			rule.now = at.now
			for p := range rule.pools {
				rule.addPool(p)
			}
		}
		if list {
			r.addServers(b, at)
		}
	}
	return r
}

// addServers adds rows for the servers of an object. There may be more or fewer of them by now than were counted.
func (r *rows) addServers(b *backend, at times) {
	first, n := len(r.servers), 0
	for rule := b; rule != nil; rule = rule.next {
		for p := range rule.pools {
			n += p.Len()
		}
	}
	var known map[string]int // by labels; nil for few servers
	if n > 16 {
		known = make(map[string]int, n)
	}
	http := b.http()
	for rule := b; rule != nil; rule = rule.next {
		for pool := range rule.pools {
			for l := range pool.List {
				s := serverRow{listed: l, traffic: &r.nothing, limit: pool.Limit(), weight: l.Weight, http: http, times: at, route: rule.Route}
				if l.Server != nil {
					s.traffic = l.Traffic()
				}
				if s.limit > 0 && l.Server != nil {
					s.queue = pool.ServerQueue(l.Server)
				}
				s.text = r.textOf(b, &s.listed)
				r.addServer(s, first, known)
			}
		}
	}
}

// textOf is the labels of a server of an object.
func (r *rows) textOf(b *backend, l *balancer.Listed) labelText {
	r.texts.begin()
	r.texts.addLabel("namespace", b.Namespace()).addText(",").addLabel("pod", l.Pod).addText(",").addLabel("route", b.Name()).
		addText(",server=\"").addAddr(l.Addr).addText("\",").addLabel("service", l.Service)
	return r.texts.end()
}

// addServer adds a row, or adds it to one with the same labels.
func (r *rows) addServer(s serverRow, first int, known map[string]int) {
	if twin := r.twin(first, known, s.text); twin >= 0 {
		head := &r.servers[twin]
		if s.route != head.route {
			s.weight = 0
		}
		s.next, head.next = head.next, &s
		return
	}
	if known != nil {
		known[string(s.text)] = len(r.servers)
	}
	r.servers = append(r.servers, s)
}

// twin returns where a server with these labels stands among those from first on, -1 if there is none.
func (r *rows) twin(first int, known map[string]int, text labelText) int {
	if known != nil {
		if at, ok := known[string(text)]; ok {
			return at
		}
		return -1
	}
	for i := first; i < len(r.servers); i++ {
		if string(r.servers[i].text) == string(text) {
			return i
		}
	}
	return -1
}

// labelText is labels as they are written: name="value",name="value".
type labelText []byte

// from is the labels behind some bytes of it.
func (t labelText) from(n int) labelText { return t[n:] }

// texts makes the labels of many rows, in few pieces of memory.
type texts struct {
	piece []byte
	start int
}

// textPiece is how much memory is taken at a time for labels.
const textPiece = 64 << 10

func (t *texts) begin() {
	if cap(t.piece)-len(t.piece) < 1<<10 {
		t.piece = make([]byte, 0, textPiece)
	}
	t.start = len(t.piece)
}

// here is how many bytes were added since begin.
func (t *texts) here() int { return len(t.piece) - t.start }

// end returns what was added since begin. It stays as it is.
func (t *texts) end() labelText { return t.piece[t.start:len(t.piece):len(t.piece)] }

func (t *texts) addText(s string) *texts {
	t.piece = append(t.piece, s...)
	return t
}

// addAddr adds IP:PORT, as the ids of servers have it: the address is not in brackets.
func (t *texts) addAddr(a netip.AddrPort) *texts {
	t.piece = strconv.AppendUint(append(a.Addr().AppendTo(t.piece), ':'), uint64(a.Port()), 10)
	return t
}

// addLabel adds a label whose value is anything.
func (t *texts) addLabel(name, value string) *texts {
	t.addText(name).addText("=\"")
	t.piece = appendEscaped(t.piece, value)
	return t.addText("\"")
}
