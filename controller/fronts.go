package controller

import (
	"net/netip"
	"slices"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"turnout/controller/endpoints"
	"turnout/internal/target"
)

// fronts is the set of Services that lead to the router: one of their endpoints is a listener of
// the router. A connection to such a Service comes back to the router.
//
// An account that may write a Service can have the addresses of that Service refused, and no
// others. Therefore only cluster addresses and node ports count, which the API server allocates to
// one Service. External and load balancer addresses, and the other endpoints, count for Services of
// the router's own namespace.
type fronts struct {
	of      map[*service]*target.Front
	moved   bool          // of, or base, has changed since settleFronts
	base    *target.Own   // the listeners of this process and of Gateways
	trusted *target.Own   // base, and the fronts of the router's namespace
	near    target.Sketch // of base
	far     target.Sketch // of trusted
	// bare stands for Services of which only the cluster addresses are needed. It is immutable.
	bare *corev1.Service
}

// setOwn replaces the listeners that the program reported, and adds those of Gateways (ownPlaces).
// It reports whether the policy of targets has changed.
func (s *state) setOwn(own *target.Own) bool {
	s.own = own
	f := &s.fronts
	base := s.gateways.ownPlaces(own, s.cfg.Options.Gateways.Pods, s.services.Get)
	if !f.base.Equal(base) {
		differ := f.base.Differs(base)
		f.base, f.near, f.moved = base, base.Sketch(), true
		for v := range s.services.All() {
			if s.isHome(v) && v.meets(differ) {
				s.refront(v)
			}
		}
	}
	return s.settleFronts()
}

// settleFronts makes a new policy of targets if fronts have changed, and reports whether it did. It
// judges the Services again whose endpoints are affected.
func (s *state) settleFronts() bool {
	f := &s.fronts
	if !f.moved {
		return false
	}
	f.moved = false
	var home, foreign []*target.Front
	for v, front := range f.of {
		if s.isHome(v) {
			home = append(home, front)
		}
	}
	if trusted := f.base.WithFronts(home); !f.trusted.Equal(trusted) {
		differ := f.trusted.Differs(trusted)
		f.trusted, f.far = trusted, trusted.Sketch()
		for v := range s.services.All() {
			if !s.isHome(v) && v.meets(differ) {
				s.refront(v)
			}
		}
		f.moved = false
	}
	for v, front := range f.of {
		if !s.isHome(v) {
			foreign = append(foreign, front)
		}
	}
	places := f.trusted.WithFronts(foreign)
	if s.ownPlaces.Equal(places) {
		return false
	}
	differ := s.ownPlaces.Differs(places)
	s.admitTargets(places)
	table := s.cfg.Store.Load()
	for v := range s.services.All() {
		if !v.meets(differ) {
			continue
		}
		s.judgeService(v)
		// Routes are judged in batches. Those that lead to the router do not wait for theirs.
		for _, r := range v.users {
			if _, there := s.touched[r]; !there && r.served && r.result != nil && s.anyLeadsBack(table, r) {
				s.touched[r] = struct{}{}
			}
		}
	}
	return true
}

// isHome reports whether a Service is in the router's own namespace.
func (s *state) isHome(v *service) bool { return v.key.Namespace == s.cfg.Options.Namespace }

// meets reports whether the sketch may contain an address to which the service leads.
func (v *service) meets(hosts target.Sketch) bool {
	for i := range v.slices {
		if v.slices[i].Meets(hosts) {
			return true
		}
	}
	return slices.ContainsFunc(v.cluster, func(ip netip.Addr) bool { return target.SketchOf(ip)&hosts != 0 })
}

// refront updates the fronts after a change of a Service.
func (s *state) refront(v *service) {
	f := &s.fronts
	before, now := f.of[v], s.front(v)
	switch {
	case before == nil && now == nil, before != nil && now != nil && before.Equal(now):
		return
	case now == nil:
		delete(f.of, v)
	default:
		f.of[v] = now
	}
	f.moved = true
}

// front returns the places of a Service that leads to the router, nil if it does not.
func (s *state) front(v *service) *target.Front {
	if v.object == nil {
		return nil
	}
	own, near := s.fronts.trusted, s.fronts.far
	if s.isHome(v) {
		own, near = s.fronts.base, s.fronts.near
	}
	if !slices.ContainsFunc(v.slices, func(slice endpoints.Slice) bool {
		if !slice.Meets(near) {
			return false
		}
		hosts, ports := s.placesOf(v, slice)
		return slices.ContainsFunc(hosts, func(ip netip.Addr) bool { return own.LeadsTo(ip, ports) })
	}) {
		return nil
	}
	front := &target.Front{Hosts: v.cluster}
	for i := range v.object.Spec.Ports {
		if port := v.object.Spec.Ports[i].NodePort; port != 0 {
			front.NodePorts = append(front.NodePorts, uint16(port))
		}
	}
	if s.isHome(v) {
		s.addHome(v, front)
	}
	return front
}

// addHome adds the places that count for Services of the router's own namespace only.
func (s *state) addHome(v *service, front *target.Front) {
	for _, ip := range addressesIn(append(slices.Clone(v.object.Spec.ExternalIPs), balancerIPs(v.object)...)) {
		for i := range v.object.Spec.Ports {
			front.At = append(front.At, netip.AddrPortFrom(ip, uint16(v.object.Spec.Ports[i].Port)))
		}
	}
	for _, slice := range v.slices {
		hosts, ports := s.placesOf(v, slice)
		front.Replicas = append(front.Replicas, hosts...)
		for _, ip := range hosts {
			for _, port := range ports {
				front.At = append(front.At, netip.AddrPortFrom(ip, port))
			}
		}
	}
}

func (s *state) placesOf(v *service, slice endpoints.Slice) (hosts []netip.Addr, ports []uint16) {
	hosts, ports, err := slice.Places()
	if err != nil {
		s.cfg.Log.Error("BUG: cannot read an endpoint slice", zap.Stringer("service", v.key), zap.Error(err))
	}
	return hosts, ports
}

// describe stores the object of a Service; nil removes it. A cluster has tens of thousands of
// Services, so most of them are stored with their cluster addresses only.
func (s *state) describe(v *service, object *corev1.Service) {
	v.object, v.cluster = object, nil
	if object == nil {
		return
	}
	v.cluster = addressesIn(object.Spec.ClusterIPs)
	if len(v.cluster) == 0 {
		v.cluster = addressesIn([]string{object.Spec.ClusterIP})
	}
	hasNodePort := slices.ContainsFunc(object.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 })
	if !s.cfg.Options.Ingress && !s.gateways.serves() && !s.isHome(v) && !hasNodePort && len(object.Annotations) == 0 {
		v.object = s.fronts.bare
	}
}

// stated returns the object of a Service, with its cluster addresses.
func (s *state) stated(v *service) *corev1.Service {
	if v.object != s.fronts.bare {
		return v.object
	}
	object := new(corev1.Service)
	for _, ip := range v.cluster {
		object.Spec.ClusterIPs = append(object.Spec.ClusterIPs, ip.String())
	}
	return object
}

// addressesIn returns the texts that are IP addresses, parsed.
func addressesIn(texts []string) (list []netip.Addr) {
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil {
			list = append(list, ip)
		}
	}
	return list
}

// balancerIPs returns the addresses of the load balancer of a Service.
func balancerIPs(s *corev1.Service) (list []string) {
	for i := range s.Status.LoadBalancer.Ingress {
		list = append(list, s.Status.LoadBalancer.Ingress[i].IP)
	}
	return list
}
