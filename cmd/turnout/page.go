package main

import (
	"time"

	"turnout/controller/shard/show"
	"turnout/internal/metrics"
	"turnout/internal/option"
	"turnout/internal/page"
	"turnout/internal/view"
)

// page makes the page for people.
func (r *router) page(measured *metrics.Handler) (*page.Handler, error) {
	cfg := view.Config{
		Version: version(), Table: r.store.Load, Totals: r.data.Stats, Latencies: r.data.Latencies, Follow: measured.Follow, Now: r.data.Now,
		Routes: r.control.Summaries, Route: r.control.Explain, Gateway: r.control.GatewayReport, Changes: r.control.Changes, Problems: r.problems, Clock: time.Now, Settings: r.origins,
	}
	if cfg.Router = r.o.replica.Router; cfg.Router != "" {
		reach := r.o.clusterConfig(r.log, nil, nil)
		reader, err := show.New(&reach)
		if err != nil {
			return nil, err
		}
		cfg.Board = reader.Lately(cfg.Router, cfg.Clock)
	}
	return page.New(cfg)
}

// origins are where the options have their values from.
func (r *router) origins() []option.Origin {
	if r.settings != nil {
		return r.settings.Origins()
	}
	return r.o.origins
}
