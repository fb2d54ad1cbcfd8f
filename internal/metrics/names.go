package metrics

import (
	"turnout/internal/accesslog"
	"turnout/internal/overload"
	"turnout/internal/reactor"
	"turnout/internal/server"
	"turnout/internal/tracing"
	"turnout/proxy"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// The metrics of the process. The turnout_* ones are typed as they should be; the haproxy_* ones, here and in table.go,
// carry the names, labels and type (gauge, always) of the HAProxy router, so that dashboards keep working.

func processFamilies() families[Config] {
	return families[Config]{
		gauge("turnout_build_info", "Always 1; the label is the version of the build.",
			func(c Config, send send) { send(1, c.Version) }, "version"),
		gauge("haproxy_up", "Always 1.", number(func(Config) int { return 1 })),
		gauge("haproxy_max_connections", "Connections of clients that there may be.", number(func(c Config) int { return c.mostConnections() })),
		gauge("haproxy_exporter_scrape_interval", "Seconds for which scrapes are answered from memory: none are.", number(func(Config) int { return 0 })),
		counter("haproxy_exporter_csv_parse_failures", "Statistics that could not be read: always 0, there is no second process.", number(func(Config) int { return 0 })),
		gauge("turnout_problems", "What is wrong now, by kind: what /problems lists.",
			func(c Config, send send) { sendProblems(c.Problems, send) }, "kind"),
		counter("turnout_bound_reached_total", "How often a bound on what clients, endpoints, objects or probes may use was reached.",
			func(c Config, send send) { sendBounds(c.Bounds, send) }, "bound"),
	}
}

// scrapeFamilies are read from the number of scrapes.
func scrapeFamilies() families[uint64] {
	return families[uint64]{
		counter("haproxy_exporter_total_scrapes", "Scrapes of this router.", number(func(n uint64) uint64 { return n })),
	}
}

// ports are the labels of the two ports, in the order of proxy.Totals, and what the HAProxy router calls their front ends.
var ports = [2]struct{ own, haproxy string }{{"http", "public"}, {"https", "public_ssl"}}

func ownPort(i int) string { return ports[i].own }

func totalsFamilies() families[proxy.Totals] {
	return families[proxy.Totals]{
		counter("turnout_requests_total", "Requests finished.", number(func(t proxy.Totals) uint64 { return t.Requests })),
		gauge("turnout_requests_active", "Requests being served.", number(func(t proxy.Totals) int64 { return t.Active })),
		counter("turnout_exchanges_total", "Requests finished, by the reason they ended.",
			func(t proxy.Totals, send send) {
				for _, r := range proxy.Reasons() {
					send(float64(t.Reasons[r]), r.String())
				}
			}, "reason"),
		counter("turnout_bytes_in_total", "Bytes of heads, bodies and tunnels from clients.",
			number(func(t proxy.Totals) uint64 { return t.Ports[0].BytesIn + t.Ports[1].BytesIn })),
		counter("turnout_bytes_out_total", "Bytes of heads, bodies and tunnels to clients.",
			number(func(t proxy.Totals) uint64 { return t.Ports[0].BytesOut + t.Ports[1].BytesOut })),
		counter("turnout_tunnels_total", "Upgraded and passthrough connections begun.", number(func(t proxy.Totals) uint64 { return t.Tunnels })),
		gauge("turnout_private_connections", "Connections to pods that are kept for one client connection each, because the pod authenticates them.",
			number(func(t proxy.Totals) int64 { return t.Private })),
		counter("turnout_private_connections_total", "Connections to pods that became private, whether they were kept or closed after their response.",
			number(func(t proxy.Totals) uint64 { return t.PrivateBegun })),
		counter("turnout_retries_total", "Attempts after the first of a request.", number(func(t proxy.Totals) uint64 { return t.Retries })),
		counter("turnout_retries_over_budget_total", "Attempts that were not made because the pool of the route had used up its budget of retries.",
			number(func(t proxy.Totals) uint64 { return t.Unretried })),
		counter("turnout_mirrored_requests_total", "Copies of requests for mirrors, by what became of them.",
			each(len(proxy.Totals{}.Copies), func(i int) string { return proxy.CopyOutcome(i).String() }, func(t proxy.Totals, i int) float64 { return float64(t.Copies[i]) }), "outcome"),
		counter("turnout_connections_total", "Client connections accepted, by port.",
			each(len(ports), ownPort, func(t proxy.Totals, i int) float64 { return float64(t.Connections[i]) }), "port"),
		gauge("turnout_connections_open", "Client connections open that carry HTTP, by port; tunnels are not counted.",
			each(len(ports), ownPort, func(t proxy.Totals, i int) float64 { return float64(t.Open[i]) }), "port"),
		counter("turnout_tls_handshakes_total", "TLS handshakes with clients completed.", number(func(t proxy.Totals) uint64 { return t.Handshakes })),
		counter("turnout_tls_handshake_errors_total", "TLS handshakes with clients failed.", number(func(t proxy.Totals) uint64 { return t.HandshakeErrors })),
		counter("turnout_proxy_header_errors_total", "Connections closed because their PROXY header was missing, wrong or late.",
			number(func(t proxy.Totals) uint64 { return t.HeaderErrors })),
		counter("turnout_panics_total", "Panics that ended a message, a TLS handshake, some connections or a health check, and not the process. Each is a bug.",
			number(func(t proxy.Totals) uint64 { return t.Panics })),
	}
}

func logFamilies() families[accesslog.Stats] {
	return families[accesslog.Stats]{
		counter("turnout_access_log_lines_total", "Access log lines written.", number(func(s accesslog.Stats) uint64 { return s.Written })),
		counter("turnout_access_log_dropped_total", "Access log records dropped because the log was too slow.", number(func(s accesslog.Stats) uint64 { return s.Dropped })),
		counter("turnout_access_log_skipped_total", "Access log records that its filter left out.", number(func(s accesslog.Stats) uint64 { return s.Skipped })),
		counter("turnout_access_log_failed_total", "Access log lines lost to write errors.", number(func(s accesslog.Stats) uint64 { return s.Failed })),
	}
}

func traceFamilies() families[tracing.Stats] {
	return families[tracing.Stats]{
		counter("turnout_spans_total", "Spans of requests and attempts that were to be exported, by outcome.",
			func(s tracing.Stats, send send) {
				send(float64(s.Exported), "exported")
				send(float64(s.Failed), "failed")
			}, "outcome"),
		counter("turnout_traced_requests_dropped_total", "Sampled requests without spans because the collector was too slow.",
			number(func(s tracing.Stats) uint64 { return s.Dropped })),
	}
}

func sourceFamilies() families[Source] {
	return families[Source]{
		gauge("turnout_source_objects", "Objects in use.", number(func(s Source) int { return s.Objects })),
		gauge("turnout_source_problems", "Files, documents and objects that cannot be used.", number(func(s Source) int { return s.Problems })),
		gauge("turnout_routes_rejected", "Routes that are not admitted.", number(func(s Source) int { return s.Rejected })),
		gauge("turnout_objects_waiting", "Objects whose changes wait for a later table, because their namespaces had their share of the last one.", number(func(s Source) int { return s.Waiting })),
		counter("turnout_table_changes_total", "Tables published.", number(func(s Source) uint64 { return s.Tables })),
		gauge("template_router_reload_failure", "Always 0: what cannot be served is rejected by itself, and no change is held up by it.", number(func(Source) int { return 0 })),
		gauge("turnout_table_changed_timestamp_seconds", "When the routing table was changed last, in seconds since the epoch.",
			func(s Source, send send) {
				if !s.Changed.IsZero() {
					send(float64(s.Changed.UnixMilli()) / 1000)
				}
			}),
	}
}

func statusFamilies() families[Status] {
	return families[Status]{
		counter("turnout_status_writes_total", "Entries in the status of routes that were to be written, by outcome.",
			func(s Status, send send) {
				send(float64(s.Written), "written")
				send(float64(s.Removed), "removed")
				send(float64(s.Conflicts), "conflict")
				send(float64(s.Contended), "contended")
				send(float64(s.Failed), "failed")
			}, "outcome"),
		gauge("turnout_status_pending", "Routes whose status is to be written.", number(func(s Status) int { return s.Pending })),
		gauge("turnout_status_leader", "1 when this replica writes status before others of the same router.", number(func(s Status) float64 { return flag(s.Leader) })),
	}
}

func tlsFamilies() families[tlsmux.Load] {
	steps := each(tlsmux.Works, tlsmux.Work.String, func(l tlsmux.Load, w tlsmux.Work) float64 { return float64(l.Steps[w]) })
	return families[tlsmux.Load]{
		gauge("turnout_tls_handshakes_pending", "Client connections whose TLS handshake is not complete.", number(func(l tlsmux.Load) int { return l.Pending })),
		gauge("turnout_tls_handshakes_waiting", "TLS handshakes that wait to be computed.", number(func(l tlsmux.Load) int { return l.Waiting })),
		counter("turnout_tls_handshake_steps_total", "Steps of TLS handshakes computed, by what.", steps, "work"),
		counter("turnout_tls_handshake_turns_total", "The older name of turnout_tls_handshake_steps_total.", steps, "work"),
		counter("turnout_tls_handshake_seconds_total", "Time that TLS handshakes computed, by what.",
			each(tlsmux.Works, tlsmux.Work.String, func(l tlsmux.Load, w tlsmux.Work) float64 { return l.Time[w].Seconds() }), "work"),
		counter("turnout_tls_handshakes_refused_total", "TLS handshakes that waited too long to be computed, by what.",
			each(tlsmux.Works, tlsmux.Work.String, func(l tlsmux.Load, w tlsmux.Work) float64 { return float64(l.Refused[w]) }), "work"),
		counter("turnout_client_certificates_refused_total", "TLS handshakes that failed because of the certificate of the client, by reason.",
			func(l tlsmux.Load, send send) {
				for r := range clientcert.Reasons {
					if l.AsksClients {
						send(float64(l.ClientRefused[r]), r.String())
					}
				}
			}, "reason"),
		gauge("turnout_client_revocation_list_expiry_timestamp_seconds", "When the revocation list that client certificates are judged by ends, in seconds since 1970.",
			func(l tlsmux.Load, send send) {
				for _, end := range l.ListEnds {
					send(float64(end.At.Unix()), end.Issuer)
				}
			}, "issuer"),
	}
}

func loadFamilies() families[server.Load] {
	return families[server.Load]{
		gauge("turnout_overload", "Whether new work waits or is refused, by reason.",
			func(l server.Load, send send) {
				for r, stat := range l.Reasons {
					send(flag(stat.Now), overload.Reason(r).String())
				}
			}, "reason"),
		counter("turnout_overload_begun_total", "How often new work began to wait or to be refused, by reason.",
			func(l server.Load, send send) {
				for r, stat := range l.Reasons {
					send(float64(stat.Times), overload.Reason(r).String())
				}
			}, "reason"),
		counter("turnout_overload_seconds_total", "How long new work waited or was refused, by reason.",
			func(l server.Load, send send) {
				for r, stat := range l.Reasons {
					send(stat.Time.Seconds(), overload.Reason(r).String())
				}
			}, "reason"),
		gauge("turnout_connections_waiting", "Client connections that wait in the backlog of the system, by port.",
			each(len(ports), ownPort, func(l server.Load, i int) float64 { return float64(l.Waiting[i]) }), "port"),
		gauge("turnout_memory_held_bytes", "Bytes that event loops hold: for peers that did not take or complete them, and spare buffers.",
			func(l server.Load, send send) {
				for what := range reactor.Helds {
					send(float64(l.Held[what]), what.String())
				}
			}, "what"),
		gauge("turnout_rate_limit_addresses", "Source addresses for which the limits of routes have memory.", number(func(l server.Load) int64 { return l.Addresses })),
	}
}

func healthFamilies() families[server.Health] {
	return families[server.Health]{
		counter("turnout_health_checks_total", "Health checks of endpoints, by outcome.",
			func(h server.Health, send send) {
				send(float64(h.Checks-h.Failed), "ok")
				send(float64(h.Failed), "failed")
			}, "outcome"),
		counter("turnout_endpoints_down_total", "Endpoints that went down because their checks failed.", number(func(h server.Health) uint64 { return h.Downs })),
		counter("turnout_servers_ejected_total", "Servers that got no requests for a while because requests to them failed.", number(func(h server.Health) uint64 { return h.Ejections })),
	}
}

func tunnelFamilies() families[map[proxy.TunnelRoute]int] {
	return families[map[proxy.TunnelRoute]int]{
		gauge("turnout_route_tunnels_open", "Tunnels of a route that are open, for routes that have some; also of deleted routes, as long as their tunnels last.",
			func(open map[proxy.TunnelRoute]int, send send) {
				for route, n := range open {
					send(float64(n), route.Namespace, route.Name)
				}
			}, "namespace", "route"),
	}
}
