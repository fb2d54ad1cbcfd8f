package metrics

import "turnout/internal/option"

// Options are what people choose of what is exported.
type Options struct {
	// TopRoutes is how many routes have a histogram of their own because they have the most requests, Routes are those, as
	// NAMESPACE/NAME, that have one in any case.
	TopRoutes int
	Routes    []string
	// GatewayRoutes has routes of the Gateway API have series of their own, as OpenShift Routes have. Without it those of Routes do.
	GatewayRoutes bool

	// ServerThreshold is the number of servers above which none is listed, only
	// their routes. Default 500, as in the HAProxy router.
	ServerThreshold int
	// Columns are those of HAProxy's statistics that are exported, see ParseColumns; nil: those that the HAProxy router exports by default.
	Columns []int
}

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	return []option.Option{
		{Flag: "metrics-server-threshold", Env: "ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD", Def: "500", Value: "N", EnvStops: true,
			Set: option.Into(&o.ServerThreshold, ParseThreshold), Help: "number of servers in all routes together above which there are no haproxy_server_* metrics"},
		{Flag: "metrics-exported", Env: "ROUTER_METRICS_HAPROXY_EXPORTED", Value: "LIST", EnvStops: true,
			Set: option.Into(&o.Columns, ParseColumns), Help: "numbers of the columns of HAProxy's statistics that are exported, separated by commas; without it those of docs/metrics.md that need no asking"},
		{Flag: "metrics-top-routes", Def: "20", Value: "N", Set: option.Into(&o.TopRoutes, ParseTopRoutes),
			Help: "how many routes have a latency histogram of their own because they have the most requests"},
		{Flag: "metrics-routes", Value: "LIST", Set: option.Into(&o.Routes, ParseRoutes),
			Help: "routes, as NAMESPACE/NAME separated by commas, that have a latency histogram of their own in any case; at most 1000"},
		{Flag: "metrics-gateway-routes", Def: "false", IsBool: true, Set: option.Into(&o.GatewayRoutes, option.ParseBool),
			Help: "routes of the Gateway API have metrics of their own, some 27 series each, as Routes have; without it those that --metrics-routes names do"},
	}
}
