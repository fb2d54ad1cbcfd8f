package metrics

import (
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/routing"
)

// measured is what latencies are read from.
type measured struct {
	*proxy.Latencies

	followed []followed
}

// codes are the labels of the classes of answers, see traffic.Class.
func codes() [traffic.Classes]string {
	return [traffic.Classes]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}
}

// terminations are the labels of proxy.Latencies.
func terminations() (names [proxy.Terminations]string) {
	for t := range proxy.Unrouted {
		names[t] = routing.Termination(t).String()
	}
	names[proxy.Unrouted] = "none"
	return names
}

func latencyDistributions() distributions[measured] {
	byTermination := func(of func(m measured) *[proxy.Terminations]*traffic.Histogram) func(m measured, send func(h *traffic.Histogram, labels ...string)) {
		return func(m measured, send func(h *traffic.Histogram, labels ...string)) {
			for t, name := range terminations() {
				send(of(m)[t], name)
			}
		}
	}
	return distributions[measured]{
		histogram("turnout_request_duration_seconds", "Seconds from the first byte of a request to the last one of its answer, by termination of its route and class of the answer. Tunnels are not among them.",
			func(m measured, send func(h *traffic.Histogram, labels ...string)) {
				for t, name := range terminations() {
					for class, code := range codes() {
						send(m.Requests[t][class], name, code)
					}
				}
			}, "termination", "code"),
		histogram("turnout_time_to_first_byte_seconds", "Seconds from the first byte of a request to the head of the answer of an endpoint.",
			byTermination(func(m measured) *[proxy.Terminations]*traffic.Histogram { return &m.FirstByte }), "termination"),
		histogram("turnout_upstream_connect_seconds", "Seconds until a connection to an endpoint was made, with its TLS session.",
			byTermination(func(m measured) *[proxy.Terminations]*traffic.Histogram { return &m.Connect }), "termination"),
		histogram("turnout_queue_seconds", "Seconds in which requests waited for an endpoint, of those that waited.",
			byTermination(func(m measured) *[proxy.Terminations]*traffic.Histogram { return &m.Queue }), "termination"),
		histogram("turnout_route_latency_seconds", "Seconds that requests of a route took, for routes that are named and those with the most requests; of all others together with the route \"other\" and no namespace.",
			measured.routes, "namespace", "route"),
	}
}

// routes sends the histograms of the routes that are followed, and of the others.
func (m measured) routes(send func(h *traffic.Histogram, labels ...string)) {
	var all, own traffic.Histogram
	for t := range proxy.Unrouted {
		for _, h := range m.Requests[t] {
			all.Merge(h)
		}
	}
	for _, f := range m.followed {
		h := m.Routes[f.id]
		send(h, f.namespace, f.name)
		own.Merge(h)
	}
	all.Subtract(&own)
	send(&all, "", "other")
}
