package controller

import (
	"time"

	"go.uber.org/zap"

	"turnout/internal/problem"
)

// tellProblems says what is wrong with a route now, in the words of its status, of its notes and of the log.
func (s *state) tellProblems(r *route, now time.Time) {
	var problems []problem.Problem
	add := func(kind problem.Kind, reason string, texts ...string) {
		for _, text := range texts {
			problems = append(problems, problem.Problem{Kind: kind, Namespace: r.key.Namespace, Route: r.key.String(), Reason: reason, Text: text})
		}
	}
	v, _ := s.views.routeView(r.key.Namespace, r.key.Name)
	if v.rejected {
		add(problem.Rejected, r.verdict.Reason, r.verdict.Message)
	}
	add(problem.Note, "", v.notes...)
	add(problem.Certificate, "", v.valid.notes(now)...)
	for _, p := range s.cfg.Problems.Set("route/"+r.key.String(), problems...) {
		if p.Kind == problem.Note {
			s.notes.log(s.cfg.Log, &p, now)
		}
	}
}

// How many notes are logged at once, and how many per second after that. Tenants write what they are about.
const (
	notesAtOnce    = 100
	notesPerSecond = 10
)

// noteLog logs notes. Those that are too many at a time are left to the list.
type noteLog struct {
	used float64   // of notesAtOnce
	last time.Time // when used was true
	left int       // out since the last line
}

func (n *noteLog) log(log *zap.Logger, p *problem.Problem, now time.Time) {
	n.logLine(log, now, "route has a note", zap.String("namespace", p.Namespace), zap.String("route", p.Route), zap.String("message", p.Text))
}

func (n *noteLog) logLine(log *zap.Logger, now time.Time, text string, fields ...zap.Field) {
	n.used = max(n.used-notesPerSecond*max(now.Sub(n.last).Seconds(), 0), 0)
	n.last = now
	if n.used+1 > notesAtOnce {
		n.left++
		return
	}
	n.used++
	if n.left > 0 {
		fields, n.left = append(fields, zap.Int("lines_left_out", n.left)), 0
	}
	log.Info(text, fields...)
}
