package view

import (
	"cmp"
	"math"
	"slices"
	"time"

	"turnout/controller"
	"turnout/internal/problem"
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/routing"
)

// Overview is the whole router at one time.
type Overview struct {
	At         time.Time `json:"at"`
	Version    string    `json:"version"`
	Router     string    `json:"router,omitempty"` // the Router that this is a replica of; "" = none
	Generation uint64    `json:"generation"`       // of the table
	Routes     int       `json:"routes"`
	Rejected   int       `json:"rejected"`
	// Seconds is what rates, latencies and recent counts are of; 0 = since the start.
	Seconds      float64             `json:"seconds"`
	Traffic      Traffic             `json:"traffic"`
	Latency      Latency             `json:"latency"`
	Reasons      []Reason            `json:"reasons"` // how requests ended, the most frequent first, without those that ended well
	Top          []Line              `json:"top"`     // routes with the most requests
	Servers      Servers             `json:"servers"`
	Certificates []Certificate       `json:"certificates"` // of routes, those that end first
	Counts       map[string]int      `json:"problemCounts"`
	Problems     []problem.Problem   `json:"problems"` // the first ones
	Changes      []controller.Change `json:"changes"`  // of the table, the latest first
}

// Traffic is what goes through.
type Traffic struct {
	Requests    float64 `json:"requestsPerSecond"`
	Failed      float64 `json:"failedPerSecond"`
	In          float64 `json:"bytesInPerSecond"`
	Out         float64 `json:"bytesOutPerSecond"`
	Running     int64   `json:"running"`     // requests and tunnels
	Connections int64   `json:"connections"` // of clients that carry HTTP
	Total       uint64  `json:"requests"`    // since the start
}

// Latency is how long requests took, in seconds.
type Latency struct {
	P50      float64 `json:"p50Seconds"`
	P99      float64 `json:"p99Seconds"`
	Requests uint64  `json:"requests"` // that were measured
}

// Reason is how requests ended.
type Reason struct {
	Reason string `json:"reason"` // the word of the access log
	Recent uint64 `json:"recent"`
	Total  uint64 `json:"total"` // since the start
}

// Certificate is that of a route.
type Certificate struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Host      string    `json:"host"`
	NotAfter  time.Time `json:"notAfter"`
	DaysLeft  int       `json:"daysLeft"` // whole days; below zero when it is over
}

// How much of each list is shown, and what recent means.
const (
	mostTop, mostCertificates, mostProblems = 10, 10, 20

	window = time.Minute
)

// sample is what was counted up to a time.
type sample struct {
	at     time.Time
	totals proxy.Totals
	took   traffic.Histogram
}

// leastApart is between two samples that are kept: a minute has at most 60 of them.
const leastApart = time.Second

// since returns the sample that is to be compared with, and remembers the new one. The zero value is the start of the process.
func (v *Viewer) since(next *sample) (then sample) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.samples = slices.DeleteFunc(v.samples, func(s sample) bool { return next.at.Sub(s.at) > window })
	if len(v.samples) > 0 {
		then = v.samples[0]
	}
	if n := len(v.samples); n == 0 || next.at.Sub(v.samples[n-1].at) >= leastApart {
		v.samples = append(v.samples, *next)
	}
	return then
}

// Overview looks at everything.
func (v *Viewer) Overview() *Overview {
	now, table := v.cfg.Clock(), v.cfg.Table()
	next := &sample{at: now, totals: v.cfg.Totals(), took: *v.whole()}
	then := v.since(next)
	all := v.lines()
	o := &Overview{
		At: now.UTC(), Version: v.cfg.Version, Router: v.cfg.Router, Generation: table.Generation(), Top: []Line{},
		Certificates: certificates(table, now), Changes: v.cfg.Changes(),
	}
	for i := range all {
		l := &all[i]
		if !l.route() {
			continue
		}
		o.Routes++
		if !l.Admitted {
			o.Rejected++
		}
		o.Servers.add(l.Servers)
	}
	o.rates(next, &then)
	busiest := Search{Order: "rate"}
	if o.Traffic.Requests < 1 {
		busiest.Order = "requests"
	}
	busiest.Limit = mostTop
	for _, l := range page(all, busiest, v.latencies()).Lines {
		if l.Requests > 0 {
			o.Top = append(o.Top, l)
		}
	}
	o.problems(v.cfg.Problems)
	return o
}

func (s *Servers) add(other Servers) {
	s.All += other.All
	s.Usable += other.Usable
	s.Down += other.Down
	s.Ejected += other.Ejected
	s.Idle += other.Idle
}

// rates fills in what happened between two samples.
func (o *Overview) rates(now, then *sample) {
	t, was := &now.totals, &then.totals
	o.Traffic = Traffic{Running: t.Active, Total: t.Requests}
	var in, out uint64
	for i := range t.Ports {
		o.Traffic.Connections += t.Open[i]
		in += t.Ports[i].BytesIn - was.Ports[i].BytesIn
		out += t.Ports[i].BytesOut - was.Ports[i].BytesOut
	}
	var failed uint64
	for i := range t.Reasons {
		reason := proxy.Reason(i)
		if reason == proxy.ReasonOK || reason == proxy.ReasonTunnelClosed || t.Reasons[i] == 0 {
			continue
		}
		recent := t.Reasons[i] - was.Reasons[i]
		failed += recent
		o.Reasons = append(o.Reasons, Reason{reason.String(), recent, t.Reasons[i]})
	}
	slices.SortStableFunc(o.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(b.Total, a.Total))
	})
	if o.Reasons == nil {
		o.Reasons = []Reason{}
	}
	now.took.Subtract(&then.took)
	o.Latency = Latency{quantile(&now.took, 0.5), quantile(&now.took, 0.99), now.took.Count()}
	if then.at.IsZero() || !now.at.After(then.at) {
		return
	}
	o.Seconds = now.at.Sub(then.at).Seconds()
	per := func(n uint64) float64 { return math.Round(float64(n)/o.Seconds*10) / 10 }
	o.Traffic.Requests, o.Traffic.Failed, o.Traffic.In, o.Traffic.Out = per(t.Requests-was.Requests), per(failed), per(in), per(out)
}

// certificates are those of routes that end first.
func certificates(t *routing.Table, now time.Time) []Certificate {
	all := []Certificate{}
	for r := range t.Routes {
		end := r.CertificateEnds()
		if end.IsZero() {
			continue
		}
		all = append(all, Certificate{r.Namespace(), r.Name(), r.Host(), end.UTC(), int(math.Floor(end.Sub(now).Hours() / 24))})
	}
	slices.SortFunc(all, func(a, b Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clone(all[:min(len(all), mostCertificates)])
}

func (o *Overview) problems(list *problem.List) {
	counts := list.Counts()
	o.Counts, o.Problems = make(map[string]int, len(counts)), []problem.Problem{}
	for kind, n := range counts {
		o.Counts[problem.Kind(kind).String()] = n
	}
	first, _ := list.All("", mostProblems)
	for p := range first {
		o.Problems = append(o.Problems, p)
	}
}
