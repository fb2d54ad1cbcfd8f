package explain

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"turnout/controller"
	"turnout/proxy"
	"turnout/routing"
)

// World is what would be served with other objects.
type World struct {
	Table     *routing.Table
	Claimants func(host string) []Claimant // as Config.Claimants
	Settings  func(namespace, name string) []controller.Setting
	Gateways  Gateways // nil = there are none
}

// Change says what would be served with the objects of a manifest.
type Change func(ctx context.Context, manifest []byte) (*World, error)

// in is the explainer of a world that is not served.
func (x *Explainer) in(w *World) *Explainer {
	cfg := x.cfg
	cfg.Claimants, cfg.Settings, cfg.Gateways, cfg.Recent = w.Claimants, w.Settings, w.Gateways, nil
	return &Explainer{cfg: cfg}
}

// With is Explain, with what a change would do to the request.
func (x *Explainer) With(table *routing.Table, after *World, q Query) (*Answer, error) {
	a, err := x.Explain(table, q)
	if err != nil {
		return nil, err
	}
	if a.Change, err = x.in(after).Explain(after.Table, q); err != nil {
		return nil, err
	}
	before, err := x.probes(table)
	if err != nil {
		return nil, err
	}
	now, err := x.in(after).probes(after.Table)
	if err != nil {
		return nil, err
	}
	in, err := q.receive()
	if err != nil {
		return nil, err
	}
	a.Difference = differences(before.facts(in), now.facts(in))
	return a, nil
}

// Differences is all that a change does to the hosts and paths that are known.
type Differences struct {
	Asked   int          `json:"asked"`          // requests that were looked at
	Changed []Difference `json:"changed"`        // those to which the change does something, by URL
	More    int          `json:"more,omitempty"` // those that are left out because there are too many
	Took    Duration     `json:"took"`           // to find out
}

// Difference is what a change does to the requests of one host and path.
type Difference struct {
	URL     string   `json:"url"`
	Gateway string   `json:"gateway,omitempty"` // whose port the client connects to; "" = the ports of OpenShift Routes
	Method  string   `json:"method,omitempty"`  // "" = GET
	Fields  []string `json:"fields,omitempty"`  // "name: value", that a rule asks for
	Changes []string `json:"changes"`           // in words
}

// mostDifferences is how many Differences has.
const mostDifferences = 1000

// Differences says what a change would do to a request of each host, path and scheme that routes of the table, or of what would be served, have, and of
// each rule of a Gateway a request that it asks for.
func (x *Explainer) Differences(table *routing.Table, after *World) (*Differences, error) {
	began := time.Now()
	before, err := x.probes(table)
	if err != nil {
		return nil, err
	}
	now, err := x.in(after).probes(after.Table)
	if err != nil {
		return nil, err
	}
	d := &Differences{Changed: []Difference{}}
	for q := range questions(before, now) {
		in, err := q.receive()
		if err != nil {
			continue // such as a path that is no path of a URL; no client asks for it
		}
		d.Asked++
		changes := differences(before.facts(in), now.facts(in))
		switch {
		case len(changes) == 0:
		case len(d.Changed) == mostDifferences:
			d.More++
		default:
			d.Changed = append(d.Changed, Difference{URL: redacted(q.URL), Gateway: q.Gateway, Method: q.Method, Fields: in.request.Fields, Changes: changes})
		}
	}
	d.Took = Duration(time.Since(began))
	return d, nil
}

// places are the hosts and paths of the Routes of tables, sorted, each once.
func places(tables ...*routing.Table) []string {
	var all []string
	for _, t := range tables {
		for r := range t.Routes {
			if r.Host() != "" && r.Listener() == "" {
				path := r.Path()
				if !strings.HasPrefix(path, "/") {
					path = "/" + path
				}
				all = append(all, r.Host()+path)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// probes asks one table about many requests.
type probes struct {
	x      *Explainer
	d      Deciding
	table  *routing.Table
	ports  []controller.GatewayPort
	run    rehearsal
	worker *proxy.Worker
}

func (x *Explainer) probes(table *routing.Table) (*probes, error) {
	p := &probes{x: x, d: x.cfg.Deciding(), table: table}
	p.run.now = func() int64 { return 0 }
	p.d.Proxy.Overloaded, p.d.Proxy.Crowded, p.d.Proxy.RouteConnections = nil, nil, 0 // what is so by chance
	var err error
	if x.cfg.Gateways != nil {
		p.ports = x.cfg.Gateways.GatewayPorts()
	}
	p.worker, err = p.run.worker(&p.d, table)
	return p, err
}

// fact is something about a request that a change may change.
type fact struct{ name, value string }

// facts are those of a request. They leave out what changes by itself: who is healthy, who is picked, what was counted.
func (p *probes) facts(in *received) []fact {
	p.run = rehearsal{now: p.run.now}
	i := &inquiry{x: p.x, d: p.d, table: p.table, in: in, a: &Answer{}}
	if i.arriveFor(p.ports); i.nowhere != "" {
		return []fact{{"outcome", "none: " + i.nowhere}}
	}
	i.listener()
	client := i.client()
	var all []fact
	add := func(name, value string) { all = append(all, fact{name, value}) }
	if i.port != nil && (i.port.Protocol == protocolTCP || i.port.Protocol == protocolUDP) {
		r := p.table.Stream(i.port.Name)
		if r == nil {
			return []fact{{"outcome", "closed, no route has the port"}}
		}
		return append([]fact{{"outcome", "goes to the pod as it comes"}}, p.routeFacts(r, nil)...)
	}
	if in.secure {
		terminates := i.handshake(&client)
		if c := i.a.TLS.Certificate; c != nil {
			add("certificate", c.Subject+" until "+c.NotAfter.Format(time.RFC3339))
		}
		if !terminates {
			if i.route == nil {
				add("outcome", i.a.Outcome.Reason)
				return all
			}
			add("outcome", "passed through")
			return append(all, p.routeFacts(i.route, nil)...)
		}
	}
	if in.connection() {
		add("outcome", "TLS ends here")
		return all
	}
	h, none, refused := in.head(&p.d)
	if refused != nil {
		add("outcome", fmt.Sprint(refused.status))
		return all
	}
	i.request(h, &client)
	p.run.exchange(p.worker, &client, h, none)
	i.run = p.run
	i.route = i.served()
	i.outcome()
	o := &i.a.Outcome
	switch {
	case o.By == ByEndpoint:
		add("outcome", "answered by a pod")
	case o.Status == 0:
		add("outcome", "connection closed, "+o.Reason)
	default:
		add("outcome", fmt.Sprintf("%d, %s", o.Status, o.Reason))
	}
	add("location", o.Location)
	if i.route != nil {
		all = append(all, p.routeFacts(i.route, p.run.forwarded)...)
	}
	return all
}

// routeFacts are those of a route and of what its pod gets.
func (p *probes) routeFacts(r *routing.Route, forwarded *proxy.Head) []fact {
	policy := r.Policy()
	all := []fact{
		{"route", before(p.kind(r), " ") + r.Namespace() + "/" + r.Name()}, {"termination", r.Termination().String()}, {"server timeout", policy.ServerTimeout.String()},
		{"tunnel timeout", policy.TunnelTimeout.String()}, {"connect timeout", policy.ConnectTimeout.String()}, {"HSTS", policy.HSTS}, {"sticky cookie", r.CookieName() + policy.CookieAttributes},
		{"allow-list", fmt.Sprint(policy.Allow != nil)}, {"limits", fmt.Sprintf("%+v", policy.Rates)},
	}
	if r.Listener() != "" {
		all = append(all, ruleFacts(r)...)
	}
	if pool := r.Pool(); r.Pool() != nil {
		all = append(all, fact{"algorithm", pool.Algorithm().String()}, fact{"endpoints", poolText(r)})
	}
	if forwarded != nil {
		all = append(all, fact{"path at the pod", redacted(string(forwarded.Path))}, fact{"fields at the pod", strings.Join(fieldsOf(forwarded), "\n")})
	}
	return all
}

// mostNamed is how many endpoints a difference names.
const mostNamed = 10

// poolText is the endpoints of a route with their weights.
func poolText(r *routing.Route) string {
	var b strings.Builder
	for p := range r.Pools {
		named := 0
		for s := range p.List {
			if named == mostNamed {
				break
			}
			if b.Len() > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s (weight %d)", s.Addr, s.Weight)
			named++
		}
		if n := p.Len() - named; n > 0 {
			fmt.Fprintf(&b, " and %d more", n)
		}
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// firstFacts are what is said of a request that had no route before.
var firstFacts = [...]string{"outcome", "location", "certificate", "route", "endpoints"}

// differences says in words what makes facts others.
func differences(before, after []fact) (changes []string) {
	value := func(all []fact, name string) (string, bool) {
		for _, f := range all {
			if f.name == name {
				return f.value, f.value != ""
			}
		}
		return "", false
	}
	for _, f := range before {
		was, had := value(before, f.name)
		now, has := value(after, f.name)
		switch {
		case was == now || !had:
		case !has:
			changes = append(changes, f.name+": no more "+was)
		case f.name == "fields at the pod":
			changes = append(changes, fieldChanges(was, now)...)
		default:
			changes = append(changes, f.name+": "+was+" -> "+now)
		}
	}
	_, served := value(before, "route")
	for _, f := range after {
		if _, had := value(before, f.name); !had && f.value != "" && (served || slices.Contains(firstFacts[:], f.name)) {
			changes = append(changes, f.name+": "+f.value)
		}
	}
	return changes
}

func fieldChanges(was, now string) (changes []string) {
	c := compare(strings.Split(was, "\n"), strings.Split(now, "\n"))
	for _, f := range c.Removed {
		changes = append(changes, "field at the pod: no more "+f)
	}
	for _, f := range c.Added {
		changes = append(changes, "field at the pod: "+f)
	}
	return changes
}

// Text writes the differences for people.
func (d *Differences) Text(w io.Writer) error {
	p := &printer{w: w}
	for _, one := range d.Changed {
		p.printf("%s\n", strings.Join(slices.DeleteFunc(append([]string{one.Method, one.URL, orNothing("at Gateway ", one.Gateway)}, one.Fields...), func(s string) bool { return s == "" }), " "))
		for _, c := range one.Changes {
			p.printf("    %s\n", c)
		}
	}
	if d.More > 0 {
		p.printf("and %d more\n", d.More)
	}
	p.printf("%d of %d requests change\n", len(d.Changed)+d.More, d.Asked)
	return p.err
}
