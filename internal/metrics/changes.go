package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"turnout/internal/traffic"
)

// changeDistributions and changeSummaries are about changes of the table. A reload of the HAProxy router is the publication of a table here,
// and its configuration what the table is made from.
func changeDistributions() distributions[Source] {
	return distributions[Source]{
		histogram("turnout_change_propagation_seconds", "Seconds from the arrival of the first object of a batch until what follows from all of it is served.",
			func(s Source, send func(h *traffic.Histogram, labels ...string)) { send(s.Propagation) }),
	}
}

func changeSummaries() summaries[Source] {
	return summaries[Source]{
		{prometheus.NewDesc("template_router_reload_seconds", "Time spent publishing tables.", nil, nil),
			func(s Source) (uint64, time.Duration) { return s.Tables, s.Publish }},
		{prometheus.NewDesc("template_router_write_config_seconds", "Time spent making tables.", nil, nil),
			func(s Source) (uint64, time.Duration) { return s.Tables, s.Compile }},
	}
}
