package controller

import (
	"turnout/controller/ingress"
	"turnout/controller/turns"
)

// A batch records the changes of all pending events and then does as much of the resulting work as
// a budget allows. The rest waits by namespace for later batches. So a namespace delays the others
// by one batch at most, however much work it has.

// batchBudget is the cost limit of a batch for each of three kinds: Routes, Ingresses, and objects
// of the Gateway API. A unit is a byte of memory made, see expansion.Size.Bytes. 64 KiB take about
// 1 ms.
const batchBudget = 1 << 20

// Costs of objects without a counted expansion, in the same unit.
const (
	costRoute   = 4 << 10 // to judge and translate a Route, besides its text
	costTouched = 256     // to update the servers of the pools of a Route
	costRule    = 1 << 10 // to make a Route of a rule of an Ingress
	costText    = 4       // for each byte of a Route
)

// begin takes work from the queues for this batch. The first table has no budget.
func (s *state) begin() {
	budget := turns.Unlimited()
	if s.published {
		budget = turns.NewBudget(batchBudget)
	}
	budgets := [3]turns.Budget{budget, budget, budget}
	now := s.stamp
	s.ingress.waiting.Take(&budgets[0], costOfIngress, func(in *anIngress, stamp uint64) {
		s.stamp = stamp
		s.expandIngress(in)
		s.ingress.changed[in] = struct{}{}
	})
	s.stamp = now
	s.waiting.Take(&budgets[1], costOf, func(r *route, _ uint64) {
		if r.stale {
			r.stale = false
			s.dirty[r] = struct{}{}
		} else {
			s.touched[r] = struct{}{}
		}
	})
	if g := &s.gateways; g.serves() {
		g.judge.Begin(budgets[2], s.stamp)
		g.dirty = g.dirty || g.judge.Waiting() > 0
	}
}

// Waiting returns the number of objects that wait for later batches. Any goroutine may call it.
func (c *Controller) Waiting() int { return int(c.waiting.Load()) }

// judgeAgain queues a route to be judged and translated again, in this batch or a later one.
func (s *state) judgeAgain(r *route) {
	r.stale = true
	s.waiting.Add(r, s.stamp)
}

// costOf returns the cost of a waiting route.
func costOf(r *route) int {
	if !r.stale {
		return costTouched
	}
	cost := costRoute + costText*(len(r.kept.asks)+len(r.kept.labels))
	if tls := r.kept.tls; tls != nil {
		cost += costText * (len(tls.Certificate) + len(tls.Key) + len(tls.CACertificate) + len(tls.DestinationCACertificate))
	}
	return cost
}

// costOfIngress returns the cost of a waiting Ingress.
func costOfIngress(in *anIngress) int {
	return costRule * (len(in.rules) + ingress.Rules(in.object))
}

// unfinished returns the number of objects that wait for later batches, and the oldest stamp among
// them.
func (s *state) unfinished() (n int, oldest uint64) {
	oldest = s.stamp + 1
	note := func(waiting int, stamp uint64, ok bool) {
		if ok {
			n, oldest = n+waiting, min(oldest, stamp)
		}
	}
	stamp, ok := s.ingress.waiting.Oldest()
	note(s.ingress.waiting.Len(), stamp, ok)
	stamp, ok = s.waiting.Oldest()
	note(s.waiting.Len(), stamp, ok)
	if g := &s.gateways; g.serves() {
		stamp, ok = g.judge.Oldest()
		note(g.judge.Waiting(), stamp, ok)
	}
	return n, oldest
}
