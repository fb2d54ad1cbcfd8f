package zones

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"turnout/internal/dns/zone"
)

// spec makes the zone of a domain; all are those that there are.
func (m *maker) spec(d *domain, all []*domain) zone.Spec {
	s := zone.Spec{
		Origin: d.name, Mailbox: m.cfg.Mailbox, Refresh: m.cfg.Refresh, Retry: m.cfg.Retry, Expire: m.cfg.Expire,
		TTL: d.router.TTL, ServerTTL: m.cfg.ServerTTL, NegativeTTL: m.cfg.NegativeTTL,
		Servers: m.servers(d), Addresses: d.router.Addresses,
	}
	for _, other := range all {
		if _, rest, below := strings.Cut(other.name, "."); below && other != d {
			if parent, _ := m.home(rest); parent == d && len(m.servers(other)) > 0 {
				s.Cuts = append(s.Cuts, zone.Cut{Name: other.name, Servers: m.servers(other)})
			}
		}
	}
	s.Names = m.names(d, taken(&s))
	return s
}

// servers are the name servers of a domain.
func (m *maker) servers(d *domain) []zone.Server {
	if len(d.router.Servers) > 0 {
		return d.router.Servers
	}
	return m.cfg.Servers
}

// taken are the names that a zone has besides those of routes: its own, those of servers, and cuts.
func taken(s *zone.Spec) map[string]bool {
	all := map[string]bool{s.Origin: true}
	servers := s.Servers
	for _, c := range s.Cuts {
		all[c.Name] = true
		servers = append(slices.Clip(servers), c.Servers...)
	}
	for _, server := range servers {
		if name := strings.ToLower(strings.TrimSuffix(server.Name, ".")); strings.HasSuffix(name, "."+s.Origin) {
			all[name] = true
		}
	}
	return all
}

// names are those of a zone that do not lead to its Router by themselves, in order.
func (m *maker) names(d *domain, taken map[string]bool) []zone.Name {
	list := map[string][]netip.Addr{}
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		served := d.names[name]
		switch {
		case taken[name]:
			if served.others(d.router) {
				m.leave(LeftOut{Router: served.routers[0], Name: name, Why: "it is a name of the zone itself"})
			}
			continue
		case zone.ValidName(name) != nil || strings.HasPrefix(name, "*."):
			m.leave(LeftOut{Router: served.routers[0], Name: name, Why: "it is no host name"})
			continue
		}
		if addresses := m.union(served.routers); len(addresses) > 0 {
			list[name] = addresses
		}
	}
	m.cover(d, list, taken)
	var names []zone.Name
	for _, name := range slices.Sorted(maps.Keys(list)) {
		names = append(names, zone.Name{Name: name, Addresses: list[name]})
	}
	return names
}

// others reports whether others than a Router serve a name.
func (s *served) others(r *Router) bool {
	return slices.ContainsFunc(s.routers, func(name string) bool { return name != r.Name })
}

// union are the addresses of several Routers, each once.
func (m *maker) union(routers []string) []netip.Addr {
	if len(routers) == 1 {
		return m.addresses[routers[0]]
	}
	var all []netip.Addr
	for _, name := range routers {
		all = append(all, m.addresses[name]...)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// cover has what is hidden from the wildcard by deeper names lead to the Router all the same: names between a deep name and the domain, and
// what is below them.
func (m *maker) cover(d *domain, list map[string][]netip.Addr, taken map[string]bool) {
	own := d.router.Addresses
	if len(own) == 0 {
		return
	}
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(list)), maps.Keys(taken)) {
		_, rest, _ := strings.Cut(name, ".")
		if within, _ := m.home(rest); name == d.name || within != d { // it is below a cut
			continue
		}
		for above := rest; above != d.name; _, above, _ = strings.Cut(above, ".") {
			for _, hidden := range []string{above, "*." + above} {
				if list[hidden] == nil && !taken[hidden] {
					list[hidden] = own
				}
			}
		}
	}
}
