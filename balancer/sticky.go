package balancer

// fewServers is the number of servers up to which looking at each cookie value is
// cheaper than a map.
const fewServers = 8

// sticky returns the place of the server of a cookie value, whatever its weight, -1 when there is
// none that may be chosen. The value is compared as it is: another letter case is
// another value.
func (s *set) sticky(in *Pick) int {
	at := s.roster.byCookie(in.Cookie)
	if at < 0 || s.isOut(at) || excluded(in.Exclude, s.roster.members[at]) {
		return -1
	}
	return at
}

// KnowsCookie reports that a server of the pool, whatever its weight and state, has this value of the sticky cookie.
func (p *Pool) KnowsCookie(value []byte) bool { return p.set.Load().roster.byCookie(value) >= 0 }

// InFlight returns the number of leases of the pool's servers not yet released. It looks at every server.
func (p *Pool) InFlight() int64 {
	n := int64(0)
	for _, s := range p.set.Load().slots.each {
		n += s.InFlight()
	}
	return n
}
