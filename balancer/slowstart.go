package balancer

import "time"

// Slow start gives a server that has just come, or come back, a tenth of its share first
// and then more in steps, so that caches fill before all requests come. It needs another
// server to take the rest: the first ones of a pool start at full weight.

// steps is how many a slow start has.
const steps = 10

// rise begins the slow start of a server. Registry.mu is held.
func (p *Pool) rise(m *member, now time.Time) {
	if p.rising == nil {
		p.rising = make(map[*member]time.Time)
	}
	p.rising[m] = now
}

// share is how many tenths of its weight a server has so long after it came.
func share(age, slowStart time.Duration) uint32 {
	if age >= slowStart {
		return steps
	}
	return max(1, uint32(age*steps/slowStart))
}

// ramp scales the weights of servers that start slowly, and has the pool look again at
// the next step. It returns nil if none does. Registry.mu is held.
func (p *Pool) ramp(s *set) (weights []uint32) {
	if len(p.rising) == 0 {
		return nil
	}
	now := p.registry.clock.Now()
	ro := s.group.roster
	for m, since := range p.rising {
		at, tenths := ro.place(m), share(now.Sub(since), s.cfg.SlowStart)
		if at < 0 || tenths == steps {
			delete(p.rising, m)
			continue
		}
		if weights == nil {
			weights = make([]uint32, len(ro.weights))
			for i, w := range ro.weights {
				weights[i] = w * steps
			}
		}
		weights[at] = ro.weights[at] * tenths
	}
	if weights != nil && !p.ramping {
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
