package main

import (
	"time"

	"turnout/internal/metrics"
	"turnout/internal/page"
	"turnout/internal/view"
)

// page makes the page for people.
func (r *router) page(measured *metrics.Handler) (*page.Handler, error) {
	return page.New(view.Config{
		Version: version(), Table: r.store.Load, Totals: r.data.Stats, Latencies: r.data.Latencies, Follow: measured.Follow, Now: r.data.Now,
		Routes: r.control.Summaries, Route: r.control.Explain, Changes: r.control.Changes, Problems: r.problems, Clock: time.Now,
	})
}
