package metrics

import (
	"crypto/tls"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// tableSums is what the series about the whole table say.
type tableSums struct {
	*routing.Table

	routes  [4]int // by termination
	servers int
	limit   int // of servers, above which none is listed
}

func tableFamilies() families[tableSums] {
	return families[tableSums]{
		gauge("turnout_table_generation", "Generation of the routing table in use.", number(func(t tableSums) uint64 { return t.Generation() })),
		gauge("turnout_routes", "Routes served, by termination.",
			func(t tableSums, send send) {
				for term, n := range t.routes {
					send(float64(n), routing.Termination(term).String())
				}
			}, "termination"),
		gauge("turnout_default_certificate_expiry_timestamp_seconds", "End of the validity of the default certificate, in seconds since 1970.",
			func(t tableSums, send send) { sendExpiry(send, t.DefaultCertificate()) }),
		gauge("haproxy_exporter_server_threshold", "Number of servers, and the number above which none is listed.",
			func(t tableSums, send send) {
				send(float64(t.servers), "current")
				send(float64(t.limit), "limit")
			}, "type"),
	}
}

// sendExpiry sends the end of the validity of a certificate, nothing without one.
func sendExpiry(send send, c *tls.Certificate, labels ...string) {
	if c != nil && c.Leaf != nil {
		send(float64(c.Leaf.NotAfter.Unix()), labels...)
	}
}

// codes are the labels of the classes that routing.Stats counts.
var codes = [6]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

func routeFamilies() families[*backend] {
	of := []string{"backend", "namespace", "route"}
	return append(families[*backend]{
		gauge("turnout_certificate_expiry_timestamp_seconds", "End of the validity of the certificate of a route that has its own, in seconds since 1970.",
			func(b *backend, send send) { sendExpiry(send, b.certificate(), b.namespace, b.name) }, "namespace", "route"),
		counter("turnout_route_errors_total", "Requests of a route that failed in the router or at the endpoint.",
			func(b *backend, send send) {
				send(b.sum(func(r *routing.Route) uint64 { return r.Stats().Errors.Load() }), b.namespace, b.name)
			}, "namespace", "route"),
		gauge("haproxy_backend_connections_total", "Requests of a route.",
			func(b *backend, send send) {
				b.value(send, b.sum(func(r *routing.Route) uint64 { return r.Stats().Requests() }))
			}, of...),
		gauge("haproxy_backend_current_sessions", "Requests of a route being served.",
			func(b *backend, send send) {
				b.value(send, b.sum(func(r *routing.Route) uint64 { return uint64(max(r.Pool().InFlight(), 0)) }))
			}, of...),
		gauge("haproxy_backend_bytes_in_total", "Bytes from clients of a route.",
			func(b *backend, send send) {
				b.value(send, b.sum(func(r *routing.Route) uint64 { return r.Stats().BytesIn.Load() }))
			}, of...),
		gauge("haproxy_backend_bytes_out_total", "Bytes to clients of a route.",
			func(b *backend, send send) {
				b.value(send, b.sum(func(r *routing.Route) uint64 { return r.Stats().BytesOut.Load() }))
			}, of...),
		gauge("haproxy_backend_http_responses_total", "Answers of a route by class of the status.",
			func(b *backend, send send) {
				for class, code := range codes {
					send(b.sum(func(r *routing.Route) uint64 { return r.Stats().Status[class].Load() }), b.word, b.namespace, b.name, code)
				}
			}, append(of[:3:3], "code")...),
		gauge("haproxy_backend_up", "Whether the route has a server.",
			func(b *backend, send send) { b.value(send, flag(b.usable())) }, of...),
	}, queueFamilies("backend", (*backend).queue, (*backend).value, of)...)
}

// queueFamilies are those of what waits for servers that may have no more requests.
func queueFamilies[S any](of string, queue func(S) (balancer.QueueStats, bool), value func(S, send, float64), labels []string) families[S] {
	each := func(read func(balancer.QueueStats) float64) func(S, send) {
		return func(s S, send send) {
			if q, ok := queue(s); ok {
				value(s, send, read(q))
			}
		}
	}
	return families[S]{
		gauge("haproxy_"+of+"_current_queue", "Requests that wait for a server.",
			each(func(q balancer.QueueStats) float64 { return float64(q.Length) }), labels...),
		gauge("haproxy_"+of+"_max_queue", "Most requests that waited at a time.",
			each(func(q balancer.QueueStats) float64 { return float64(q.Most) }), labels...),
		gauge("haproxy_"+of+"_http_average_queue_latency_milliseconds", "Mean time in the queue of the last requests.",
			each(func(q balancer.QueueStats) float64 { return float64(q.Delay) / float64(time.Millisecond) }), labels...),
	}
}

// backendLabel is the word the HAProxy router has for a termination.
func backendLabel(t routing.Termination) string {
	switch t {
	case routing.TermEdge:
		return "https-edge"
	case routing.TermReencrypt:
		return "https"
	case routing.TermPassthrough:
		return "tcp"
	}
	return "http"
}

// serverKey is what tells the series of two servers of a route apart. Rules of an object send to the same ones, and two ports of
// a service can have names of their own and the same number: their servers share
// a series.
type serverKey struct{ server, pod, service string }

// serverSum is what the series of one serverKey say.
type serverSum struct {
	serverKey

	backend                              *backend
	first                                *routing.Route // of the rules that have the server
	up                                   bool           // any of them may be chosen
	requests, inFlight, failures, weight float64
	limited                              bool // requests can wait for it
	waiting                              balancer.QueueStats
}

func (s *serverSum) value(send send, v float64) {
	send(v, s.server, s.backend.namespace, s.backend.name, s.pod, s.service)
}

func (s *serverSum) queue() (balancer.QueueStats, bool) { return s.waiting, s.limited }

func serverFamilies() families[*serverSum] {
	of := []string{"server", "namespace", "route", "pod", "service"}
	return append(families[*serverSum]{
		gauge("haproxy_server_connections_total", "Requests sent to a server.", func(s *serverSum, send send) { s.value(send, s.requests) }, of...),
		gauge("haproxy_server_current_sessions", "Requests a server is working on.", func(s *serverSum, send send) { s.value(send, s.inFlight) }, of...),
		gauge("haproxy_server_connection_errors_total", "Attempts that failed at a server.", func(s *serverSum, send send) { s.value(send, s.failures) }, of...),
		gauge("haproxy_server_weight", "Weight of a server.", func(s *serverSum, send send) { s.value(send, s.weight) }, of...),
		gauge("haproxy_server_up", "Whether a server may be chosen: 0 if it is down or ejected.", func(s *serverSum, send send) { s.value(send, flag(s.up)) }, of...),
	}, queueFamilies("server", (*serverSum).queue, (*serverSum).value, of)...)
}
