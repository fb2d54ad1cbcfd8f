package proxy

import (
	"time"

	"turnout/internal/traffic"
	"turnout/routing"
)

// Terminations are what Latencies are distinguished by: those of routing, and one for requests without a route.
const (
	Terminations = int(routing.TermStream) + 2
	Unrouted     = Terminations - 1
)

// Latencies are how long requests and what they wait for took, by the termination of their route. What is nil has not happened yet.
type Latencies struct {
	Requests  [Terminations][traffic.Classes]*traffic.Histogram // whole requests, by class of the answer; tunnels are not among them
	FirstByte [Terminations]*traffic.Histogram                  // from the first byte of a request to the head of its answer, of those that got one of an endpoint
	Connect   [Terminations]*traffic.Histogram                  // of connections that were made to endpoints, TLS included
	Queue     [Terminations]*traffic.Histogram                  // of requests that waited for an endpoint
	Routes    map[uint32]*traffic.Histogram                     // whole requests, by routing.Stats.Followed
}

// each calls do with every pair of histograms of the same meaning.
func (l *Latencies) each(other *Latencies, do func(to **traffic.Histogram, from *traffic.Histogram)) {
	for t := range Terminations {
		for class := range l.Requests[t] {
			do(&l.Requests[t][class], other.Requests[t][class])
		}
		do(&l.FirstByte[t], other.FirstByte[t])
		do(&l.Connect[t], other.Connect[t])
		do(&l.Queue[t], other.Queue[t])
	}
}

// Merge adds those of another worker.
func (l *Latencies) Merge(other *Latencies) {
	l.each(other, func(to **traffic.Histogram, from *traffic.Histogram) {
		if from == nil {
			return
		}
		if *to == nil {
			*to = new(traffic.Histogram)
		}
		(*to).Merge(from)
	})
	for id, h := range other.Routes {
		if l.Routes == nil {
			l.Routes = make(map[uint32]*traffic.Histogram)
		}
		if l.Routes[id] == nil {
			l.Routes[id] = new(traffic.Histogram)
		}
		l.Routes[id].Merge(h)
	}
}

// Latencies returns a copy of what the worker has measured, and forgets the routes that are not followed any more. It is called on
// the loop.
func (w *Worker) Latencies(followed func(id uint32) bool) *Latencies {
	for id := range w.latencies.Routes {
		if !followed(id) {
			delete(w.latencies.Routes, id)
		}
	}
	all := new(Latencies)
	all.Merge(&w.latencies)
	return all
}

// observe takes a duration into a histogram, which is made for the first one.
func (w *Worker) observe(to **traffic.Histogram, d time.Duration, trace *TraceRef) {
	if *to == nil {
		*to = new(traffic.Histogram)
	}
	h := *to
	class := h.Observe(d, w.scale)
	if trace.Sampled {
		h.Exemplars[class] = traffic.Exemplar{Took: d, At: w.cfg.Clock.Wall(), Trace: trace.Trace, Span: trace.Span}
	}
}

// measure takes in how long a request took that has ended, or a tunnel until it began.
func (a *attempts) measure(total time.Duration) {
	w, term := a.w, Unrouted
	if a.route != nil {
		term = int(a.route.Termination())
	}
	if a.http && !a.tunnelled {
		w.observe(&w.latencies.Requests[term][traffic.Class(a.status)], total, &a.trace)
		if a.session {
			a.measureRoute(total)
		}
	}
	if a.got >= 0 {
		w.observe(&w.latencies.FirstByte[term], time.Duration(a.got-a.start), &a.trace)
	}
	if a.fresh && a.connectedAt >= 0 {
		w.observe(&w.latencies.Connect[term], time.Duration(a.connectedAt-a.start-a.queued), &a.trace)
	}
	if a.queued > 0 {
		w.observe(&w.latencies.Queue[term], time.Duration(a.queued), &a.trace)
	}
}

// measureRoute takes the request in for its route.
func (a *attempts) measureRoute(total time.Duration) {
	stats := a.route.Stats()
	stats.Took.Add(uint64(total))
	stats.Ended.Add(1)
	id := stats.Followed.Load()
	if id == 0 {
		return
	}
	l := &a.w.latencies
	h := l.Routes[id]
	if h == nil {
		if l.Routes == nil {
			l.Routes = make(map[uint32]*traffic.Histogram)
		}
		h = new(traffic.Histogram)
		l.Routes[id] = h
	}
	a.w.observe(&h, total, &a.trace)
}
