package metrics

import (
	"turnout/internal/server"
	"turnout/proxy/datagram"
)

func datagramFamilies() families[server.Datagrams] {
	return families[server.Datagrams]{
		gauge("turnout_udp_sessions_open", "Clients of UDP that have a socket towards an endpoint, or were refused one a moment ago.",
			number(func(d server.Datagrams) int64 { return d.Sessions })),
		counter("turnout_udp_sessions_total", "Sessions of UDP begun.", number(func(d server.Datagrams) uint64 { return d.Begun })),
		counter("turnout_udp_datagrams_total", "Datagrams relayed, by direction: in = to endpoints.",
			func(d server.Datagrams, send send) {
				send(float64(d.In), "in")
				send(float64(d.Out), "out")
			}, "direction"),
		counter("turnout_udp_datagrams_dropped_total", "Datagrams that went nowhere, by reason.",
			each(datagram.Drops, datagram.Drop.String, func(d server.Datagrams, why datagram.Drop) float64 { return float64(d.Dropped[why]) }), "reason"),
	}
}
