package controller

import (
	"slices"

	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/source"
)

// placeGateways opens and closes the ports of Gateways, and determines their addresses. Before it
// opens a port, endpoints that lead to the port are removed.
func (s *state) placeGateways() {
	g := &s.gateways
	if !g.serves() || !g.moved {
		return
	}
	list := s.exposed()
	var places expose.Places
	if o := &s.cfg.Options.Gateways; o.services() {
		places = expose.ByServices(list, g.own, o.Only != (source.Key{}))
	} else {
		places = expose.Local(list, o.Addresses, o.Own)
	}
	g.sockets = places.Sockets
	if s.setOwn(s.own) {
		s.crews.Forget() // results of the previous batch
		s.settleGateways()
		s.refillTouched()
		s.publish(plan{})
	}
	g.moved = false
	if s.cfg.Sockets != nil {
		for name, err := range s.cfg.Sockets.Set(places.Sockets) {
			for i := range list {
				if slices.ContainsFunc(list[i].Ports, func(p gateway.Port) bool { return p.Name == name }) {
					a := places.Assigned[source.Key{Namespace: list[i].Object.Namespace, Name: list[i].Object.Name}]
					if a.Unavailable == nil {
						a.Unavailable = make(map[string]string)
					}
					a.Unavailable[name] = err.Error()
				}
			}
		}
	}
	s.views.gateways.setPorts(list, &places)
	for key := range g.objects.Assigned.All() {
		if places.Assigned[key] == nil {
			g.objects.Assigned.Delete(key)
			g.dirty = true
		}
	}
	for key, a := range places.Assigned {
		if before := g.objects.Assigned.Get(key); before == nil || !a.Equal(before) {
			g.objects.Assigned.Set(key, a)
			g.dirty = true
		}
	}
	g.podsMove = true // the writer is to know
}

// setGatewayRefusals says why Gateways do not get the objects that they need.
func (s *state) setGatewayRefusals(refused map[source.Key]string) {
	s.gateways.refused, s.gateways.moved = refused, true
}

// exposed are the Gateways that are ours, with their ports.
func (s *state) exposed() (list []expose.Gateway) {
	g := &s.gateways
	for key, of := range g.result.Gateways {
		o := g.objects.Gateways.Get(key)
		if o == nil {
			continue
		}
		at := source.Key{Namespace: key.Namespace, Name: expose.ServiceName(o, 0)}
		one := expose.Gateway{Object: o, Ports: of.Ports, Parameters: of.Parameters, Secrets: of.Secrets, ConfigMaps: of.ConfigMaps, Refused: g.refused[key]}
		if v := s.services.Get(at); v != nil && g.own[at] != nil {
			one.Led = expose.LedBy(at, v.slices)
		}
		list = append(list, one)
	}
	return list
}
