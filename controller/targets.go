package controller

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"turnout/controller/endpoints"
	"turnout/controller/source"
	"turnout/internal/target"
	"turnout/routing"
)

// anyLeadsBack reports whether the policy of targets refuses a server of any rule of a route.
func (s *state) anyLeadsBack(table *routing.Table, r *route) bool {
	return slices.ContainsFunc(r.tableKeys(0), func(k routing.RouteKey) bool { return s.leadsBack(table.Route(k)) })
}

// leadsBack reports whether the policy of targets refuses a server of a route. in may be nil.
func (s *state) leadsBack(in *routing.Route) bool {
	if in == nil {
		return false
	}
	pools := slices.Collect(in.Pools)
	for i := range in.Mirrors() {
		pools = append(pools, in.Mirrors()[i].Pool())
	}
	for _, p := range pools {
		if p == nil {
			continue
		}
		for server := range p.List {
			if _, err := s.targets.Addr(server.Addr); err != nil {
				return true
			}
		}
	}
	return false
}

// admitTargets makes the policy of targets.
func (s *state) admitTargets(places *target.Own) {
	s.ownPlaces, s.targets = places, target.NewPolicy(s.cfg.Options.AllowLoopback, places)
	if s.gateways.serves() {
		s.gateways.judge.SetTargets(s.targets)
	}
	if s.cfg.Targets != nil {
		s.cfg.Targets.Set(s.targets)
	}
}

// ownPlaces adds to own the listeners that Gateways have: their local ports, the addresses of
// their Services, and the pods of the router, of which this process is one. pods names the Service
// of those pods, and may be zero.
func (g *gateways) ownPlaces(own *target.Own, pods source.Key, services func(source.Key) *service) *target.Own {
	var listening []netip.AddrPort
	for _, socket := range g.sockets {
		listening = append(listening, endpoints.Listening(socket.Addr)...)
	}
	for _, object := range g.own {
		listening = append(listening, frontends(object)...)
	}
	if pods != (source.Key{}) {
		if v := services(pods); v != nil && v.object != nil {
			listening = append(listening, frontends(v.object)...)
		}
	}
	replicas := addressesIn(g.pods)
	if len(listening)+len(replicas) == 0 {
		return own
	}
	return own.With(listening, replicas)
}

// frontends returns the cluster and load balancer addresses of a Service, with its ports. It
// returns no external IPs: any author of a Service can write the address of a neighbour there.
func frontends(s *corev1.Service) (list []netip.AddrPort) {
	for _, ip := range addressesIn(append(slices.Clone(s.Spec.ClusterIPs), balancerIPs(s)...)) {
		for i := range s.Spec.Ports {
			list = append(list, netip.AddrPortFrom(ip, uint16(s.Spec.Ports[i].Port)))
		}
	}
	return list
}
