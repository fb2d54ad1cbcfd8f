package metrics

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Scheduler is what a process that binds routes to Routers counts. The zero value is one of several that does not lead.
type Scheduler struct {
	Leading, Held          bool
	Bound, Waiting, Moving int
	Troubles               map[string]int    // routes by reason
	Routers                map[string]int    // by phase
	Actions                map[string]uint64 // by kind
	Results                map[string]uint64 // of actions, by outcome
	Placed, Moved, Dropped uint64
}

// NewScheduler returns what answers scrapes of a scheduler. read is called by each.
func NewScheduler(read func() Scheduler) (http.Handler, error) {
	return processHandler(schedulerFamilies(), read)
}

// processHandler answers scrapes of a process that is no router: its families, and those of the process.
func processHandler[S any](all families[S], read func() S) (http.Handler, error) {
	if read == nil {
		return nil, errors.New("cannot make metrics: there is nothing to read")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(processCollector[S]{all, read}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}), nil
}

type processCollector[S any] struct {
	all  families[S]
	read func() S
}

// Describe implements prometheus.Collector.
func (c processCollector[S]) Describe(out chan<- *prometheus.Desc) {
	c.all.describe(func(d *prometheus.Desc, _ prometheus.ValueType) { out <- d })
}

// Collect implements prometheus.Collector.
func (c processCollector[S]) Collect(out chan<- prometheus.Metric) { c.all.collect(out, c.read()) }

func schedulerFamilies() families[Scheduler] {
	type S = Scheduler
	return families[S]{
		gauge("turnout_scheduler_leading", "1 in the process that binds routes, 0 in the others.", func(s S, send send) { send(flag(s.Leading)) }),
		gauge("turnout_scheduler_held", "1 while no binding is moved, because what is seen of routers cannot be trusted.", func(s S, send send) { send(flag(s.Held)) }),
		gauge("turnout_scheduler_routes", "Routes that are bound to a Router, and those that wait for one.", func(s S, send send) {
			send(float64(s.Bound), "bound")
			send(float64(s.Waiting), "waiting")
		}, "state"),
		gauge("turnout_scheduler_moving", "Routes on their way from one Router to another.", number(func(s S) int { return s.Moving })),
		gauge("turnout_scheduler_trouble", "Routes that are not bound, or not where they should be, by reason.", byName(func(s S) map[string]int { return s.Troubles }), "reason"),
		gauge("turnout_scheduler_routers", "Routers by phase.", byName(func(s S) map[string]int { return s.Routers }), "phase"),
		counter("turnout_scheduler_actions_total", "What was begun since this process leads.", byName(func(s S) map[string]uint64 { return s.Actions }), "action"),
		counter("turnout_scheduler_results_total", "What became of it.", byName(func(s S) map[string]uint64 { return s.Results }), "result"),
		counter("turnout_scheduler_placed_total", "Bindings of routes that no Router served.", number(func(s S) uint64 { return s.Placed })),
		counter("turnout_scheduler_moved_total", "Bindings that others have taken the place of.", number(func(s S) uint64 { return s.Moved })),
		counter("turnout_scheduler_events_dropped_total", "Events that were not reported, because there were too many.", number(func(s S) uint64 { return s.Dropped })),
	}
}

// byName is read for a family with one label, which has the keys of a map as values.
func byName[S any, N int | uint64](of func(S) map[string]N) func(S, send) {
	return func(s S, send send) {
		for name, n := range of(s) {
			send(float64(n), name)
		}
	}
}
