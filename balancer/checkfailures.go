package balancer

// FailureReasons is how many reasons of failed checks are distinguished; what they mean is up to who checks.
const FailureReasons = 11

// checkFailures counts by reason.
type checkFailures [FailureReasons]uint64

// poolFailures is what a pool has to add to what its group has counted. Registry.mu guards it.
type poolFailures struct {
	before checkFailures // in the groups that the pool was in
	joined checkFailures // what its group had counted when the pool came
}

// CountFailure notes that a check failed for a reason below FailureReasons, for all pools that want it.
func (r *Registry) CountFailure(c *Check, reason int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last *group
	for w := range c.watches.all {
		if w.group == last { // an endpoint may be two servers of a roster
			continue
		}
		last = w.group
		if last.failures == nil {
			last.failures = new(checkFailures)
		}
		last.failures[reason]++
	}
	r.failing.Store(true)
}

// carry takes along what was counted of the pool when it leaves one group for another. Registry.mu is held.
func (p *Pool) carry(from, to *group) {
	if (from == nil || from.failures == nil) && to.failures == nil && p.failures == nil {
		return
	}
	next := &poolFailures{before: p.sumFailures(from)}
	if to.failures != nil {
		next.joined = *to.failures
	}
	p.failures = next
}

// sumFailures is what was counted of the pool, which is in group g. Registry.mu is held.
func (p *Pool) sumFailures(g *group) (sum checkFailures) {
	if g != nil && g.failures != nil {
		sum = *g.failures
	}
	if p.failures != nil {
		for i := range sum {
			sum[i] += p.failures.before[i] - p.failures.joined[i]
		}
	}
	return sum
}

// CheckFailures returns how often checks of servers of the pool have failed, by the reason that CountFailure was given. The bool is false
// if none ever did.
func (p *Pool) CheckFailures() (sum [FailureReasons]uint64, some bool) {
	r := p.registry
	if !r.failing.Load() {
		return sum, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sum = p.sumFailures(p.set.Load().group)
	return sum, sum != checkFailures{}
}
