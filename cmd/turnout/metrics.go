package main

import (
	"turnout/internal/metrics"
	"turnout/internal/option"
)

// metricsOptions are what /metrics has.
type metricsOptions struct {
	servers int   // see metrics.Config.ServerThreshold
	columns []int // see metrics.Config.Columns
	top     int   // see metrics.Config.TopRoutes
	routes  []string
}

func metricsSettings(o *options) []option.Option {
	m := &o.metrics
	return []option.Option{
		{Flag: "metrics-server-threshold", Env: "ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD", Def: "500", Value: "N", EnvStops: true,
			Set: option.Into(&m.servers, metrics.ParseThreshold), Help: "number of servers in all routes together above which there are no haproxy_server_* metrics"},
		{Flag: "metrics-exported", Env: "ROUTER_METRICS_HAPROXY_EXPORTED", Value: "LIST", EnvStops: true,
			Set: option.Into(&m.columns, metrics.ParseColumns), Help: "numbers of the columns of HAProxy's statistics that are exported, separated by commas; without it those of docs/metrics.md that need no asking"},
		{Flag: "metrics-top-routes", Def: "20", Value: "N", Set: option.Into(&m.top, metrics.ParseTopRoutes),
			Help: "how many routes have a latency histogram of their own because they have the most requests"},
		{Flag: "metrics-routes", Value: "LIST", Set: option.Into(&m.routes, metrics.ParseRoutes),
			Help: "routes, as NAMESPACE/NAME separated by commas, that have a latency histogram of their own in any case; at most 1000"},
	}
}
