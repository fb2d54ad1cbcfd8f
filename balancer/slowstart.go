package balancer

import "time"

// Slow start gives a server that has just come, or come back, a tenth of its share first
// and then more in steps, so that caches fill before all requests come. It needs another
// server to take the rest: the first ones of a pool start at full weight.

// steps is how many a slow start has.
const steps = 10

// rise begins the slow start of a server. Registry.mu is held.
func (p *Pool) rise(m *member, now time.Time) {
	p.shares().rising[m] = now
}

// share is how many tenths of its weight a server has so long after it came.
func share(age, slowStart time.Duration) uint32 {
	if age >= slowStart {
		return steps
	}
	return max(1, uint32(age*steps/slowStart))
}

// ramp scales the weights of servers that start slowly, and has the pool look again at
// the next step. It returns nil if none does. p.uneven is there, and Registry.mu is held.
func (p *Pool) ramp(s *set) (weights []uint32) {
	u := p.uneven
	if len(u.rising) == 0 {
		return nil
	}
	slowStart := s.cfg.Value().SlowStart
	now := p.registry.clock.Now()
	ro := s.group.roster
	for m, since := range u.rising {
		at, tenths := ro.place(m), share(now.Sub(since), slowStart)
		if at < 0 || tenths == steps {
			delete(u.rising, m)
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
	if weights != nil && !u.ramping {
		u.ramping = true
		p.registry.clock.AfterFunc(slowStart/steps, p.step)
	}
	return weights
}

// step gives the servers that start slowly more.
func (p *Pool) step() {
	p.registry.mu.Lock()
	p.uneven.ramping = false
	ready := p.rebuild()
	p.registry.mu.Unlock()
	call(ready)
}
