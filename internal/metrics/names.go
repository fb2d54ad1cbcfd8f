package metrics

// metrics are the names Turnout exports. The turnout_* ones are typed as they
// should be; the haproxy_* ones carry the names, labels and type (gauge, always)
// of the HAProxy router, so that dashboards keep working.
type metrics struct {
	build, generation, changed, routes        metric
	requests, active, reasons                 metric
	bytesIn, bytesOut, tunnels, retries       metric
	unretried                                 metric
	connections, open                         metric
	handshakes, handshakeErrors, headerErrors metric
	panics, bounds                            metric
	logWritten, logDropped, logFailed         metric
	objects, problems, rejected               metric
	statusWrites, statusPending               metric
	checks, downs, ejections                  metric
	statusLeader                              metric
	routeErrors, routeTunnels                 metric
	tlsPending, tlsWaiting, tlsTurns          metric
	tlsSeconds, tlsRefused                    metric
	load                                      loadMetrics
	certificateExpiry, defaultExpiry          metric
	clientRefused, listExpiry                 metric
	up, thresholds                            metric
	frontConnections, frontSessions           metric
	backConnections, backSessions             metric
	backBytesIn, backBytesOut                 metric
	backResponses, backUp                     metric
	backQueue, serverQueue                    queueMetrics
	serverConnections, serverSessions         metric
	serverErrors, serverWeight, serverState   metric
}

// queueMetrics are those of what waits for servers that may have no more requests.
type queueMetrics struct{ length, most, delay metric }

// loadMetrics are those of having too much to do.
type loadMetrics struct{ now, begun, seconds, waiting, addresses, held metric }

func describeLoad() loadMetrics {
	return loadMetrics{
		now:       gauge("turnout_overload", "Whether new work waits or is refused, by reason.", "reason"),
		begun:     counter("turnout_overload_begun_total", "How often new work began to wait or to be refused, by reason.", "reason"),
		seconds:   counter("turnout_overload_seconds_total", "How long new work waited or was refused, by reason.", "reason"),
		waiting:   gauge("turnout_connections_waiting", "Client connections that wait in the backlog of the system, by port.", "port"),
		held:      gauge("turnout_memory_held_bytes", "Bytes that event loops hold: for peers that did not take or complete them, and spare buffers.", "what"),
		addresses: gauge("turnout_rate_limit_addresses", "Source addresses for which the limits of routes have memory."),
	}
}

func describeQueue(of string, labels []string) queueMetrics {
	return queueMetrics{
		length: gauge("haproxy_"+of+"_current_queue", "Requests that wait for a server.", labels...),
		most:   gauge("haproxy_"+of+"_max_queue", "Most requests that waited at a time.", labels...),
		delay:  gauge("haproxy_"+of+"_http_average_queue_latency_milliseconds", "Mean time in the queue of the last requests.", labels...),
	}
}

func describe() *metrics {
	back := []string{"backend", "namespace", "route"}
	server := []string{"server", "namespace", "route", "pod", "service"}
	return &metrics{
		build:      gauge("turnout_build_info", "Always 1; the label is the version of the build.", "version"),
		generation: gauge("turnout_table_generation", "Generation of the routing table in use."),
		changed:    gauge("turnout_table_changed_timestamp_seconds", "When the routing table was changed last, in seconds since the epoch."),
		routes:     gauge("turnout_routes", "Routes served, by termination.", "termination"),

		requests:  counter("turnout_requests_total", "Requests finished."),
		active:    gauge("turnout_requests_active", "Requests being served."),
		reasons:   counter("turnout_exchanges_total", "Requests finished, by the reason they ended.", "reason"),
		bytesIn:   counter("turnout_bytes_in_total", "Body and tunnel bytes taken from clients."),
		bytesOut:  counter("turnout_bytes_out_total", "Body and tunnel bytes given to clients."),
		tunnels:   counter("turnout_tunnels_total", "Upgraded and passthrough connections begun."),
		retries:   counter("turnout_retries_total", "Attempts after the first of a request."),
		unretried: counter("turnout_retries_over_budget_total", "Attempts that were not made because the pool of the route had used up its budget of retries."),

		connections:     counter("turnout_connections_total", "Client connections accepted, by port.", "port"),
		open:            gauge("turnout_connections_open", "Client connections open that carry HTTP, by port; tunnels are not counted.", "port"),
		handshakes:      counter("turnout_tls_handshakes_total", "TLS handshakes with clients completed."),
		handshakeErrors: counter("turnout_tls_handshake_errors_total", "TLS handshakes with clients failed."),
		panics:          counter("turnout_panics_total", "Panics that ended a message, a TLS handshake, some connections or a health check, and not the process. Each is a bug."),
		bounds:          counter("turnout_bound_reached_total", "How often a bound on what clients, endpoints, objects or probes may use was reached.", "bound"),
		headerErrors:    counter("turnout_proxy_header_errors_total", "Connections closed because their PROXY header was missing, wrong or late."),

		logWritten: counter("turnout_access_log_lines_total", "Access log lines written."),
		logDropped: counter("turnout_access_log_dropped_total", "Access log records dropped because the log was too slow."),
		logFailed:  counter("turnout_access_log_failed_total", "Access log lines lost to write errors."),

		objects:  gauge("turnout_source_objects", "Objects in use."),
		problems: gauge("turnout_source_problems", "Files, documents and objects that cannot be used."),
		rejected: gauge("turnout_routes_rejected", "Routes that are not admitted."),

		statusWrites:  counter("turnout_status_writes_total", "Entries in the status of routes that were to be written, by outcome.", "outcome"),
		statusPending: gauge("turnout_status_pending", "Routes whose status is to be written."),
		statusLeader:  gauge("turnout_status_leader", "1 when this replica writes status before others of the same router."),

		tlsPending: gauge("turnout_tls_handshakes_pending", "Client connections whose TLS handshake is not complete."),
		tlsWaiting: gauge("turnout_tls_handshakes_waiting", "TLS handshakes that wait for their turn to compute."),
		tlsTurns:   counter("turnout_tls_handshake_turns_total", "Times that a TLS handshake computed, by what.", "work"),
		tlsSeconds: counter("turnout_tls_handshake_seconds_total", "Time that TLS handshakes computed, by what.", "work"),
		tlsRefused: counter("turnout_tls_handshakes_refused_total", "TLS handshakes that waited too long for their turn to compute, by what.", "work"),

		certificateExpiry: gauge("turnout_certificate_expiry_timestamp_seconds", "End of the validity of the certificate of a route that has its own, in seconds since 1970.", "namespace", "route"),
		defaultExpiry:     gauge("turnout_default_certificate_expiry_timestamp_seconds", "End of the validity of the default certificate, in seconds since 1970."),

		clientRefused: counter("turnout_client_certificates_refused_total", "TLS handshakes that failed because of the certificate of the client, by reason.", "reason"),
		listExpiry:    gauge("turnout_client_revocation_list_expiry_timestamp_seconds", "When the revocation list that client certificates are judged by ends, in seconds since 1970.", "issuer"),
		load:          describeLoad(),

		checks:    counter("turnout_health_checks_total", "Health checks of endpoints, by outcome.", "outcome"),
		downs:     counter("turnout_endpoints_down_total", "Endpoints that went down because their checks failed."),
		ejections: counter("turnout_servers_ejected_total", "Servers that got no requests for a while because requests to them failed."),

		routeErrors:  counter("turnout_route_errors_total", "Requests of a route that failed in the router or at the endpoint.", "namespace", "route"),
		routeTunnels: gauge("turnout_route_tunnels_open", "Tunnels of a route that are open, for routes that have some; also of deleted routes, as long as their tunnels last.", "namespace", "route"),
		up:           gauge("haproxy_up", "Always 1."),
		thresholds:   gauge("haproxy_exporter_server_threshold", "Number of servers, and the number above which none is listed.", "type"),

		frontConnections: gauge("haproxy_frontend_connections_total", "Client connections accepted.", "frontend"),
		frontSessions:    gauge("haproxy_frontend_current_sessions", "Client connections open.", "frontend"),

		backConnections: gauge("haproxy_backend_connections_total", "Requests of a route.", back...),
		backSessions:    gauge("haproxy_backend_current_sessions", "Requests of a route being served.", back...),
		backBytesIn:     gauge("haproxy_backend_bytes_in_total", "Bytes from clients of a route.", back...),
		backBytesOut:    gauge("haproxy_backend_bytes_out_total", "Bytes to clients of a route.", back...),
		backResponses:   gauge("haproxy_backend_http_responses_total", "Answers of a route by class of the status.", append(back, "code")...),
		backUp:          gauge("haproxy_backend_up", "Whether the route has a server.", back...),

		backQueue:   describeQueue("backend", back),
		serverQueue: describeQueue("server", server),

		serverConnections: gauge("haproxy_server_connections_total", "Requests sent to a server.", server...),
		serverSessions:    gauge("haproxy_server_current_sessions", "Requests a server is working on.", server...),
		serverErrors:      gauge("haproxy_server_connection_errors_total", "Attempts that failed at a server.", server...),
		serverWeight:      gauge("haproxy_server_weight", "Weight of a server.", server...),
		serverState:       gauge("haproxy_server_up", "Whether a server may be chosen: 0 if it is down or ejected.", server...),
	}
}

func (m *metrics) all() []metric {
	return []metric{
		m.build, m.generation, m.changed, m.routes, m.requests, m.active, m.reasons, m.bytesIn, m.bytesOut, m.tunnels, m.retries, m.unretried,
		m.connections, m.open, m.handshakes, m.handshakeErrors, m.headerErrors, m.panics, m.bounds, m.logWritten, m.logDropped, m.logFailed,
		m.objects, m.problems, m.rejected, m.statusWrites, m.statusPending, m.statusLeader, m.tlsPending, m.tlsWaiting, m.tlsTurns, m.tlsSeconds, m.tlsRefused,
		m.load.now, m.load.begun, m.load.seconds, m.load.waiting, m.load.addresses, m.load.held,
		m.checks, m.downs, m.ejections, m.routeErrors, m.routeTunnels, m.certificateExpiry, m.defaultExpiry, m.clientRefused, m.listExpiry, m.up, m.thresholds, m.frontConnections, m.frontSessions,
		m.backConnections, m.backSessions, m.backBytesIn, m.backBytesOut, m.backResponses, m.backUp,
		m.serverConnections, m.serverSessions, m.serverErrors, m.serverWeight, m.serverState,
		m.backQueue.length, m.backQueue.most, m.backQueue.delay, m.serverQueue.length, m.serverQueue.most, m.serverQueue.delay,
	}
}
