package balancer

// fewServers is the number of servers up to which looking at each cookie value is
// cheaper than a map.
const fewServers = 8

// sticky returns the server of a cookie value, whatever its weight, or nil when there is
// none that may be chosen. The value is compared as it is: another letter case is
// another value.
func (s *set) sticky(value []byte) *Server {
	v := s.byCookie(value)
	if v != nil && s.isOut(v) {
		return nil
	}
	return v
}

func (s *set) byCookie(value []byte) *Server {
	if s.cookies != nil {
		return s.cookies[string(value)]
	}
	for _, v := range s.servers {
		if v.cookie == string(value) {
			return v
		}
	}
	return nil
}

// KnowsCookie reports that a server of the pool, whatever its weight and state, has this value of the sticky cookie.
func (p *Pool) KnowsCookie(value []byte) bool { return p.set.Load().byCookie(value) != nil }

// InFlight returns the number of leases of the pool's servers not yet released. It looks at every server.
func (p *Pool) InFlight() int64 {
	n := int64(0)
	for _, s := range p.set.Load().servers {
		n += s.InFlight()
	}
	return n
}
