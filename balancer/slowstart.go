package balancer

import "time"

// Slow start gives a server that has just come, or come back, a tenth of its share first
// and then more in steps, so that caches fill before all requests come. It needs another
// server to take the rest: the first ones of a pool start at full weight.

// steps is how many a slow start has.
const steps = 10

// rise begins the slow start of a server. Registry.mu is held.
func (s *Server) rise(now time.Time) { s.since = now }

// share is how many tenths of its weight a server has at now.
func (s *Server) share(now time.Time, slowStart time.Duration) uint32 {
	if s.since.IsZero() {
		return steps
	}
	age := now.Sub(s.since)
	if age >= slowStart {
		s.since = time.Time{}
		return steps
	}
	return max(1, uint32(age*steps/slowStart))
}

// ramp scales the weights of servers that start slowly, and has the pool look again at
// the next step. Registry.mu is held.
func (p *Pool) ramp(s *set) (weights []uint32) {
	rising := false
	for _, v := range s.servers {
		rising = rising || !v.since.IsZero()
	}
	if !rising {
		return s.weights
	}
	now := p.registry.clock.Now()
	rising = false
	weights = make([]uint32, len(s.weights))
	for i, v := range s.servers {
		share := v.share(now, s.cfg.SlowStart)
		weights[i] = s.weights[i] * share
		rising = rising || share < steps
	}
	if rising && !p.ramping {
		p.ramping = true
		p.registry.clock.AfterFunc(s.cfg.SlowStart/steps, p.step)
	}
	return weights
}

// step gives the servers that start slowly more.
func (p *Pool) step() {
	p.registry.mu.Lock()
	p.ramping = false
	ready := p.rebuild()
	p.registry.mu.Unlock()
	call(ready)
}
