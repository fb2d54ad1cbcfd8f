package main

import (
	"errors"
	"strconv"

	"turnout/internal/metrics"
	"turnout/internal/option"
)

// metricsOptions are what /metrics has.
type metricsOptions struct {
	servers int   // see metrics.Config.ServerThreshold
	columns []int // see metrics.Config.Columns
}

func metricsSettings(o *options) []option.Option {
	m := &o.metrics
	return []option.Option{
		{Flag: "metrics-server-threshold", Env: "ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD", Def: "500", Value: "N", EnvStops: true,
			Set: option.Into(&m.servers, parseThreshold), Help: "number of servers in all routes together above which there are no haproxy_server_* metrics"},
		{Flag: "metrics-exported", Env: "ROUTER_METRICS_HAPROXY_EXPORTED", Value: "LIST", EnvStops: true,
			Set: option.Into(&m.columns, metrics.ParseColumns), Help: "numbers of the columns of HAProxy's statistics that are exported, separated by commas; without it those of docs/metrics.md that need no asking"},
	}
}

// parseThreshold reads a number of servers; -1 stands for 0, which lists none.
func parseThreshold(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New("allowed: a whole number from 0")
	}
	if n == 0 {
		return -1, nil
	}
	return int(n), nil
}
