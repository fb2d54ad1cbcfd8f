package metrics

import (
	"crypto/tls"

	"turnout/balancer"
	"turnout/internal/health"
	"turnout/routing"
)

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
			func(t tableSums, send send) {
				if c := t.DefaultCertificate(); dated(c) {
					send(expiry(c))
				}
			}),
		gauge("haproxy_exporter_server_threshold", "Number of servers, and the number above which none is listed.",
			func(t tableSums, send send) {
				send(float64(t.servers), "current")
				send(float64(t.limit), "limit")
			}, "type"),
	}
}

// dated reports that a certificate has an end that is known.
func dated(c *tls.Certificate) bool { return c != nil && c.Leaf != nil }

// expiry is the end of the validity of a certificate.
func expiry(c *tls.Certificate) float64 { return float64(c.Leaf.NotAfter.Unix()) }

// routeFamilies are those of which each route has a series.
func routeFamilies() []rowFamily[backend] {
	expiring := ofRoutes("turnout_certificate_expiry_timestamp_seconds", "End of the validity of the certificate of a route that has its own, in seconds since 1970.", "gauge",
		func(b *backend) float64 { return float64(b.ends().Unix()) })
	expiring.has = func(b *backend) bool { return !b.ends().IsZero() }
	return []rowFamily[backend]{
		expiring,
		{name: "turnout_route_request_duration_seconds", help: "Seconds that the requests of a route took; tunnels are not among them.", kind: "summary", labels: []string{"namespace", "route"},
			text: func(b *backend) labelText { return b.plain }, has: (*backend).http, variants: []variant[backend]{
				{suffix: "_sum", read: combined(func(b *backend) float64 { return float64(b.stats.Took.Load()) / 1e9 }, nextRule, false)},
				{suffix: "_count", read: combined(func(b *backend) float64 { return float64(b.stats.Ended.Load()) }, nextRule, false)},
			}},
		ejections(),
		failedChecks(),
		ofRoutes("turnout_route_errors_total", "Requests of a route that failed in the router or at the endpoint.", "counter",
			combined(func(b *backend) float64 { return float64(b.stats.Errors.Load()) }, nextRule, false)),
	}
}

// ofRoutes is a family of which each route has one series.
func ofRoutes(name, help, kind string, read func(b *backend) float64) rowFamily[backend] {
	return rowFamily[backend]{name: name, help: help, kind: kind, labels: []string{"namespace", "route"},
		text: func(b *backend) labelText { return b.plain }, variants: []variant[backend]{{read: read}}}
}

// ejections is by reason.
func ejections() rowFamily[backend] {
	f := ofRoutes("turnout_route_ejections_total", "Servers of a route that got no requests for a while because requests to them failed.", "counter", nil)
	f.label, f.labels, f.variants = "reason", append(f.labels, "reason"), nil
	for why := range balancer.EjectReasons {
		f.variants = append(f.variants, variant[backend]{value: why.String(), read: combined(func(b *backend) float64 { return float64(b.ejections(why)) }, nextRule, false)})
	}
	f.has = func(b *backend) bool {
		for why := range balancer.EjectReasons {
			for rule := b; rule != nil; rule = rule.next {
				if rule.ejections(why) > 0 {
					return true
				}
			}
		}
		return false
	}
	return f
}

// failedChecks is by outcome.
func failedChecks() rowFamily[backend] {
	f := ofRoutes("turnout_route_checks_failed_total", "Health checks of servers of a route that failed, by how far they came.", "counter", nil)
	f.label, f.labels, f.variants = "reason", append(f.labels, "reason"), nil
	for why := health.Outcome(0); why < balancer.FailureReasons; why++ {
		if (health.Result{Outcome: why}).Passed() || why == health.Unchecked {
			continue
		}
		f.variants = append(f.variants, variant[backend]{value: why.String(), read: combined(func(b *backend) float64 {
			if b.failed == nil {
				return 0
			}
			return float64(b.failed[why])
		}, nextRule, false)})
	}
	f.has = func(b *backend) bool {
		for ; b != nil; b = b.next {
			if b.failed != nil {
				return true
			}
		}
		return false
	}
	return f
}
