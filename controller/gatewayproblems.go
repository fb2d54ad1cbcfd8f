package controller

import (
	"fmt"

	"go.uber.org/zap"

	"turnout/controller/gateway"
	"turnout/internal/problem"
)

// tellGateway shows an object of the Gateway API as it is now, and says what is wrong with it in the words of its status.
func (s *state) tellGateway(ref gateway.Ref) {
	g := &s.gateways
	s.views.gateways.set(ref, g.all[ref], g.wanted(ref), g.origins[ref])
	owner := "gateway/" + ref.Kind + "/" + ref.Key.String()
	v, ok := s.views.gateways.view(ref)
	if !ok || v.status == nil {
		s.cfg.Problems.Set(owner)
		return
	}
	var problems []problem.Problem
	for _, c := range v.wrong() {
		p := problem.Problem{Kind: problem.Note, Namespace: ref.Namespace, Object: ref.String(), Reason: c.Reason, Text: c.Message}
		if c.Refuses() {
			p.Kind = problem.Rejected
		}
		if c.Of != "" {
			p.Text = fmt.Sprintf("%s: %s", c.Of, c.Message)
		}
		problems = append(problems, p)
	}
	for _, p := range s.cfg.Problems.Set(owner, problems...) {
		s.notes.logLine(s.cfg.Log, s.cfg.Clock(), "object of the Gateway API is not served as it asks", zap.String("namespace", p.Namespace), zap.String("object", p.Object),
			zap.String("reason", p.Reason), zap.String("message", p.Text))
	}
}
