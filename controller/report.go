package controller

import (
	"go.uber.org/zap"

	"turnout/controller/status"
)

// reportAll tells what became of all routes that changed. The table is published: status
// never claims what is not served yet.
func (s *state) reportAll() {
	for _, r := range s.gone {
		if s.routes.Get(r.key) == nil {
			s.views.remove(r.key)
			s.cfg.Problems.Set("route/" + r.key.String())
		}
		if s.cfg.Status != nil && r.rule == nil {
			s.cfg.Status.Withdraw(s.objectOf(r))
		}
	}
	for _, r := range s.shown {
		if s.routes.Get(r.key) == r {
			r.adopt(s.cfg.Options.status())
			s.views.setRoute(r)
			s.tellProblems(r, s.cfg.Clock())
		}
	}
	for r := range s.dirty {
		s.report(r)
	}
	for r := range s.touched {
		if _, dirty := s.dirty[r]; !dirty {
			s.report(r)
		}
	}
	// What is seen of a route is judged by what should be seen, so this comes last.
	later := s.observed[:0]
	for _, r := range s.observed {
		switch {
		case s.routes.Get(r.key) != r:
		case r.stale: // it is judged by a later batch
			later = append(later, r)
		default:
			s.cfg.Status.Observe(s.objectOf(r))
		}
	}
	clear(s.observed[len(later):])
	s.observed = later
}

// adopt has what was said of a route be what its object says, if that is the same: it is held once then.
func (r *route) adopt(o status.Options) {
	if live := status.Find(o, r.kept.ingress); live != nil && status.Same(live, r.status) {
		r.status = live
	}
}

// report writes the status of a route and shows it. What was said before is not said
// again, but to Status once.
func (s *state) report(r *route) {
	s.tellRule(r)
	options := s.cfg.Options.status()
	if r.result != nil {
		// The pool has them now, and they are found again when they change.
		r.servers = uint32(r.result.Release())
		if r.served {
			r.result.Settle()
		}
	}
	if r.waiting {
		s.views.setRoute(r)
		s.tellProblems(r, s.cfg.Clock())
		return
	}
	old := r.status
	if old == nil {
		old = status.Find(options, r.kept.ingress)
	}
	entry, changed := status.Entry(options, old, r.host, r.kept.policy, *r.verdict, s.cfg.Clock())
	if r.verdict.Admitted {
		var more bool
		entry, more = s.cfg.Options.upgrade().Apply(entry, s.cfg.Clock())
		changed = changed || more
	}
	first := r.status == nil
	r.status = entry
	s.views.setRoute(r)
	s.tellProblems(r, s.cfg.Clock())
	if s.cfg.Status != nil && r.rule == nil && (changed || first) {
		s.cfg.Status.Report(s.objectOf(r), entry)
	}
	switch {
	case !changed || r.verdict.Message == "":
	case r.verdict.Admitted:
		s.cfg.Log.Warn("route admitted with reserve", zap.String("namespace", r.key.Namespace), zap.Stringer("route", r.key), zap.String("host", r.host),
			zap.String("reason", r.verdict.Reason), zap.String("message", r.verdict.Message))
	default:
		s.cfg.Log.Warn("route rejected", zap.String("namespace", r.key.Namespace), zap.Stringer("route", r.key), zap.String("host", r.host),
			zap.String("reason", r.verdict.Reason), zap.String("message", r.verdict.Message))
	}
}
