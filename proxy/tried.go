package proxy

import "turnout/balancer"

// triedServers holds the servers that have failed a request, the latest last. It belongs to the
// exchange and outlives the leases, so no later choice can return a failed server. It holds
// balancer.MaxExclude servers; a further one replaces the one that failed first.
type triedServers struct {
	servers [balancer.MaxExclude]*balancer.Server
	n       int
}

func (t *triedServers) add(s *balancer.Server) {
	if t.n == len(t.servers) {
		t.forget()
	}
	t.servers[t.n] = s
	t.n++
}

// forget removes the server that failed first.
func (t *triedServers) forget() {
	t.n--
	copy(t.servers[:], t.servers[1:])
	t.servers[t.n] = nil
}

// list returns the servers, valid until the next change.
func (t *triedServers) list() []*balancer.Server { return t.servers[:t.n] }

// last returns the server that failed last, nil if there is none.
func (t *triedServers) last() *balancer.Server {
	if t.n == 0 {
		return nil
	}
	return t.servers[t.n-1]
}
