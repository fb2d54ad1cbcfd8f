package view

import (
	"math"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/routing"
)

// Route is everything about one route, or one Gateway.
type Route struct {
	Line

	Report     *controller.RouteReport   `json:"report"`            // of an object of the Gateway API: what it has in common with Routes
	Gateway    *controller.GatewayReport `json:"gateway,omitempty"` // nil = it is not of the Gateway API
	Rules      []Rule                    `json:"rules,omitempty"`   // of such an object, the first ones
	MoreRules  int                       `json:"moreRules,omitempty"`
	Balance    string                    `json:"balance,omitempty"` // the algorithm
	Servers    []Server                  `json:"endpoints"`         // the first ones
	More       int                       `json:"more,omitempty"`    // servers that are left out
	Answers    map[string]uint64         `json:"answers,omitempty"` // by class
	Unserved   uint64                    `json:"unserved"`          // ended without an attempt
	Retries    uint64                    `json:"retries"`
	Generation uint64                    `json:"generation"` // of the table
}

// Server is an endpoint of a route.
type Server struct {
	Address   string  `json:"address"`
	Pod       string  `json:"pod,omitempty"`
	Service   string  `json:"service"`
	Weight    int     `json:"weight"`
	Share     float64 `json:"share"`    // of the route's requests that its weight stands for, in percent
	State     string  `json:"state"`    // "up", "down", "ejected", "idle" of weight 0
	Check     string  `json:"check"`    // "passes", "fails", "none"
	Ejected   bool    `json:"ejected"`  // because requests failed
	Sessions  int64   `json:"sessions"` // running now
	Requests  uint64  `json:"requests"`
	Failures  uint64  `json:"failures"`           // connects in which it could not be reached
	Errors    uint64  `json:"errors"`             // answers that broke off, broke the grammar, or did not come in time
	ServerErr uint64  `json:"serverErrors"`       // answers 5xx
	Mean      float64 `json:"meanSeconds"`        // until the head of the answer
	OnceMost  int64   `json:"mostSessions"`       // at a time
	Connect   float64 `json:"meanConnectSeconds"` // of new connections
}

// mostServers is how many servers of a route are shown.
const mostServers = 200

// Route returns one route by its kind; "" is Route. The bool is false when there is none.
func (v *Viewer) Route(kind, namespace, name string) (*Route, bool) {
	if kind != "" && kind != kindRoute {
		return v.gateway(kind, namespace, name)
	}
	report, ok := v.cfg.Route(namespace, name)
	if !ok {
		return nil, false
	}
	out := &Route{Report: report, Servers: []Server{}}
	out.Line = Line{
		Kind: kindRoute, Namespace: report.Namespace, Name: report.Name, Host: report.Host, Path: report.Path, Termination: report.Termination,
		Admitted: report.Admitted, Reason: report.Reason, Notes: len(report.Notes),
	}
	v.fill(out, func(r *routing.Route) bool {
		return r.Listener() == "" && r.Namespace() == namespace && r.Name() == name
	})
	return out, true
}

// fill adds what is known of the rules of a route.
func (v *Viewer) fill(out *Route, of func(*routing.Route) bool) {
	table := v.cfg.Table()
	out.Generation = table.Generation()
	one := listed{Line: out.Line}
	if out.Gateway != nil {
		one.hosts = out.Gateway.Hosts
	}
	for r := range table.Routes {
		if of(r) {
			one.rules = append(one.rules, r)
		}
	}
	one.count(v.cfg.Now(), new(seenServers))
	out.Line = one.Line
	out.Queued = queued(one.rules)
	seen := make(map[serverKey]int)
	listed := make(map[*balancer.Pool]bool)
	for _, r := range one.rules {
		if out.Balance == "" && r.Pool() != nil {
			out.Balance = r.Pool().Algorithm().String()
		}
		out.counted(r, v)
		out.servers(r, seen, listed)
		if out.Gateway != nil {
			out.rule(r)
		}
	}
}

// counted adds what was counted of a rule.
func (r *Route) counted(in *routing.Route, v *Viewer) {
	c := in.Counted()
	if c == nil {
		return
	}
	if r.Answers == nil {
		r.Answers = make(map[string]uint64)
	}
	r.Unserved, r.Retries = r.Unserved+c.Unserved.Load(), r.Retries+c.Retries.Load()+c.Redispatches.Load()
	for class, word := range [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		r.Answers[word] += c.Answers[class].Load()
	}
	if id := c.Followed.Load(); id != 0 {
		r.P99 = max(r.P99, quantile(v.latencies()[id], 0.99))
	}
}

// queued returns the number of requests that wait for a server of the rules of an object. A pool
// that rules share counts once.
func queued(rules []*routing.Route) (n int) {
	seen := make(map[*balancer.Pool]bool)
	for _, r := range rules {
		for p := range r.Pools {
			if p.Limit() > 0 && !seen[p] {
				seen[p] = true
				n += p.Queue().Length
			}
		}
	}
	return n
}

// servers lists the servers of a rule, each with its share of the requests of its backend. A pool
// that is listed for another rule already is not listed again.
func (r *Route) servers(in *routing.Route, seen map[serverKey]int, listed map[*balancer.Pool]bool) {
	list := func(p *balancer.Pool, share float64) {
		if !listed[p] {
			listed[p] = true
			r.pool(p, share, seen)
		}
	}
	if !in.Divided() {
		list(in.Pool(), 1)
		return
	}
	weights := 0
	for b := range in.Backends {
		weights += b.Weight()
	}
	for b := range in.Backends {
		if p := b.Pool(); p != nil {
			list(p, float64(b.Weight())/float64(max(weights, 1)))
		}
	}
}

// pool lists the servers of a pool that gets a share of the requests. Those of several rules are listed once, at seen.
func (r *Route) pool(pool *balancer.Pool, share float64, seen map[serverKey]int) {
	weights := 0
	for l := range pool.List {
		weights += l.Weight
	}
	for l := range pool.List {
		key := serverKey{l.Addr, l.Service}
		if at, twice := seen[key]; twice {
			if at >= 0 {
				r.Servers[at].add(server(&l))
			}
			continue
		}
		if len(r.Servers) == mostServers {
			seen[key] = -1
			r.More++
			continue
		}
		seen[key] = len(r.Servers)
		s := server(&l)
		if weights > 0 {
			s.Share = math.Round(float64(l.Weight)/float64(weights)*share*1000) / 10
		}
		r.Servers = append(r.Servers, s)
	}
}

// add adds what was counted of the same server for another rule of the route.
func (s *Server) add(o Server) {
	if o.Requests > 0 {
		all := float64(s.Requests + o.Requests)
		s.Mean = (s.Mean*float64(s.Requests) + o.Mean*float64(o.Requests)) / all
		s.Connect = (s.Connect*float64(s.Requests) + o.Connect*float64(o.Requests)) / all
	}
	s.Sessions, s.Requests, s.Failures, s.Errors, s.ServerErr = s.Sessions+o.Sessions, s.Requests+o.Requests, s.Failures+o.Failures, s.Errors+o.Errors, s.ServerErr+o.ServerErr
	s.OnceMost = max(s.OnceMost, o.OnceMost)
	if o.State == "down" || o.State == "ejected" {
		s.State, s.Check, s.Ejected = o.State, o.Check, o.Ejected
	}
}

func server(l *balancer.Listed) Server {
	s := Server{Address: l.Addr.String(), Pod: l.Pod, Service: l.Service, Weight: l.Weight, State: "up", Check: "none"}
	if l.Weight == 0 {
		s.State = "idle"
	}
	if l.Check != nil {
		s.Check = "passes"
		if l.Check.Down() {
			s.Check, s.State = "fails", "down"
		}
	}
	if l.Server == nil {
		return s
	}
	if s.Ejected = l.Server.Ejected(); s.Ejected {
		s.State = "ejected"
	}
	t := l.Server.Traffic()
	s.Sessions, s.Requests, s.Failures, s.OnceMost = l.InFlight(), l.Requests(), l.Failures(), l.MostInFlight()
	s.Errors, s.ServerErr = t.ResponseErrors.Load(), t.Answers[5].Load()
	s.Mean, s.Connect = seconds(t.Response.Mean(s.Requests)), seconds(t.Connect.Mean(s.Requests))
	return s
}

func seconds(d time.Duration) float64 { return d.Seconds() }
