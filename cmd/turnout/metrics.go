package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

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
			Set: option.Into(&m.servers, parseThreshold), Help: "number of servers in all routes together above which there are no haproxy_server_* metrics"},
		{Flag: "metrics-exported", Env: "ROUTER_METRICS_HAPROXY_EXPORTED", Value: "LIST", EnvStops: true,
			Set: option.Into(&m.columns, metrics.ParseColumns), Help: "numbers of the columns of HAProxy's statistics that are exported, separated by commas; without it those of docs/metrics.md that need no asking"},
		{Flag: "metrics-top-routes", Def: "20", Value: "N", Set: option.Into(&m.top, parseTopRoutes),
			Help: "how many routes have a latency histogram of their own because they have the most requests"},
		{Flag: "metrics-routes", Value: "LIST", Set: option.Into(&m.routes, parseRoutes),
			Help: "routes, as NAMESPACE/NAME separated by commas, that have a latency histogram of their own in any case; at most 1000"},
	}
}

// mostHistograms bounds how many routes have a histogram of their own for each of the two reasons.
const mostHistograms = 1000

func parseTopRoutes(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n > mostHistograms {
		return 0, fmt.Errorf("allowed: a whole number from 0 to %d", mostHistograms)
	}
	return int(n), nil
}

func parseRoutes(s string) ([]string, error) {
	list := option.ParseList(s)
	for _, route := range list {
		if namespace, name, ok := strings.Cut(route, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is no route, allowed: NAMESPACE/NAME, separated by commas", route)
		}
	}
	if len(list) > mostHistograms {
		return nil, fmt.Errorf("allowed: at most %d routes", mostHistograms)
	}
	return list, nil
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
