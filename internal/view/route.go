package view

import (
	"math"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/routing"
)

// Route is everything about one route.
type Route struct {
	Line

	Report     *controller.RouteReport `json:"report"`
	Balance    string                  `json:"balance,omitempty"` // the algorithm
	Servers    []Server                `json:"endpoints"`         // the first ones
	More       int                     `json:"more,omitempty"`    // servers that are left out
	Answers    map[string]uint64       `json:"answers,omitempty"` // by class
	Unserved   uint64                  `json:"unserved"`          // ended without an attempt
	Retries    uint64                  `json:"retries"`
	Generation uint64                  `json:"generation"` // of the table
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

// Route returns one route. The bool is false when there is none.
func (v *Viewer) Route(namespace, name string) (*Route, bool) {
	report, ok := v.cfg.Route(namespace, name)
	if !ok {
		return nil, false
	}
	table := v.cfg.Table()
	out := &Route{Report: report, Servers: []Server{}, Generation: table.Generation()}
	out.Line = Line{
		Namespace: report.Namespace, Name: report.Name, Host: report.Host, Path: report.Path, Termination: report.Termination,
		Admitted: report.Admitted, Reason: report.Reason, Notes: len(report.Notes),
	}
	var in *routing.Route
	for r := range table.Routes {
		if r.Namespace() == namespace && r.Name() == name && (in == nil || r.Key().Rule < in.Key().Rule) {
			in = r
		}
	}
	if in == nil {
		return out, true
	}
	out.count(in, v.cfg.Now())
	out.Balance = in.Pool().Algorithm().String()
	out.Queued = queued(in)
	if c := in.Counted(); c != nil {
		out.Unserved, out.Retries, out.Answers = c.Unserved.Load(), c.Retries.Load()+c.Redispatches.Load(), make(map[string]uint64)
		for class, word := range [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"} {
			out.Answers[word] = c.Answers[class].Load()
		}
		if id := c.Followed.Load(); id != 0 {
			out.P99 = quantile(v.latencies()[id], 0.99)
		}
	}
	out.servers(in)
	return out, true
}

// queued is how many requests wait for a server of a route.
func queued(r *routing.Route) (n int) {
	for p := range r.Pools {
		if p.Limit() > 0 {
			n += p.Queue().Length
		}
	}
	return n
}

// servers lists those of a route, of which each gets a share of those requests that its backend gets.
func (r *Route) servers(in *routing.Route) {
	if !in.Divided() {
		r.pool(in.Pool(), 1)
		return
	}
	weights := 0
	for b := range in.Backends {
		weights += b.Weight()
	}
	for b := range in.Backends {
		if p := b.Pool(); p != nil {
			r.pool(p, float64(b.Weight())/float64(max(weights, 1)))
		}
	}
}

// pool lists the servers of a pool that gets a share of the requests.
func (r *Route) pool(pool *balancer.Pool, share float64) {
	weights := 0
	for l := range pool.List {
		weights += l.Weight
	}
	for l := range pool.List {
		if len(r.Servers) == mostServers {
			r.More++
			continue
		}
		s := server(l)
		if weights > 0 {
			s.Share = math.Round(float64(l.Weight)/float64(weights)*share*1000) / 10
		}
		r.Servers = append(r.Servers, s)
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
