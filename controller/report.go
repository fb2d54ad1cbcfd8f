package controller

import (
	"go.uber.org/zap"

	"turnout/controller/status"
)

// reportAll tells what became of all routes that changed. The table is published: status
// never claims what is not served yet.
func (s *state) reportAll() {
	for _, r := range s.gone {
		if s.routes[r.key] == nil {
			s.views.remove(r.key)
			s.cfg.Problems.Set("route/" + r.key.String())
		}
		if s.cfg.Status != nil && r.rule == nil {
			s.cfg.Status.Withdraw(r.object)
		}
	}
	for _, r := range s.shown {
		if s.routes[r.key] == r {
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
	for _, r := range s.observed {
		if s.routes[r.key] == r {
			s.cfg.Status.Observe(r.object)
		}
	}
}

// report writes the status of a route and shows it. What was said before is not said
// again, but to Status once.
func (s *state) report(r *route) {
	s.tellRule(r)
	options := s.cfg.Options.status()
	if r.result != nil {
		// The pool has them now, and they are found again when they change.
		r.servers = r.result.Release()
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
		old = status.Find(options, r.object.Status.Ingress)
	}
	entry, changed := status.Entry(options, old, r.host, r.object.Spec.WildcardPolicy, r.verdict, s.cfg.Clock())
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
		s.cfg.Status.Report(r.object, entry)
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
