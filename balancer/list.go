package balancer

import "net/netip"

// Listed is one server of a pool, for who looks at all of them.
type Listed struct {
	*Server                // nil = no request has wanted it yet
	Addr    netip.AddrPort // where it is connected
	Pod     string         // the name of the pod behind it, "" when it is not a pod
	Service string         // the name of the service it belongs to
	Weight  int            // 0..MaxWeight
	Check   *Check         // nil = it is not checked
}

// Usable is Server.Usable.
func (l *Listed) Usable() bool {
	return (l.Server == nil || !l.Server.Ejected()) && (l.Check == nil || !l.Check.Down())
}

// List yields the servers of the latest update in their order, those of weight 0 included. Unlike Servers it makes none.
func (p *Pool) List(yield func(l Listed) bool) {
	set := p.set.Load()
	for i, m := range set.roster.members {
		if !yield(Listed{
			Server: set.slots.find(i), Addr: m.endpoint.Addr(), Pod: m.pod(), Service: m.service(),
			Weight: int(set.roster.weights[i]), Check: set.check(i),
		}) {
			return
		}
	}
}
