package explain

import (
	"fmt"
	"time"

	"turnout/routing"
)

// explainRule says what a rule of the Gateway API does to its requests. What comes of it for this request is in the heads.
func (i *inquiry) explainRule(r *routing.Route) {
	i.a.Route.Kind, i.a.Route.Asks, i.a.Route.Wildcard = i.kind(r), r.Asks(), false
	ruleWords(i.a.Route, r)
}

// ruleWords fills in what a rule does, for people.
func ruleWords(out *Route, r *routing.Route) {
	p := r.Policy()
	add := func(format string, args ...any) { out.Filters = append(out.Filters, fmt.Sprintf(format, args...)) }
	if f := p.Redirect; f != nil {
		add("answers with a redirect, status %d", f.Status())
	}
	if f := p.Rewrite; f != nil {
		switch host := f.Host(); {
		case len(host) > 0:
			add("rewrites the URL; its host to %s", host)
		default:
			add("rewrites the path")
		}
	}
	if p.RequestActions != nil {
		add("modifies header fields of requests")
	}
	if p.ResponseActions != nil {
		add("modifies header fields of answers")
	}
	if p.CORS != nil {
		add("says what pages of other origins may do (CORS), and answers their preflights")
	}
	if s := p.Retry; s != nil {
		out.Retry = &Retry{Codes: s.Codes, Attempts: max(s.Attempts, 0), Backoff: Duration(s.Backoff)}
	}
	mirrors := r.Mirrors()
	for k := range mirrors {
		m := &mirrors[k]
		out.Mirrors = append(out.Mirrors, fmt.Sprintf("%s of the requests to %s, %d endpoints", share(m.Share(), 1), m.Key(), m.Pool().Len()))
	}
	total := 0
	for b := range r.Backends {
		total += b.Weight()
	}
	for b := range r.Backends {
		one := Backend{Name: b.Key(), Weight: b.Weight(), Status: b.Status()}
		if b.Weight() > 0 {
			one.Share = share(float64(b.Weight()), float64(total))
		}
		if pool := b.Pool(); pool != nil {
			one.Endpoints = pool.Len()
		}
		out.Backends = append(out.Backends, one)
		if b.RequestActions() != nil || b.ResponseActions() != nil {
			add("modifies header fields for backend %s", b.Key())
		}
	}
}

// share is a part of a whole in percent.
func share(part, whole float64) string { return fmt.Sprintf("%.3g%%", 100*part/whole) }

// limit is a time for people; "" = none.
func limit(what string, d Duration) string {
	if d == 0 {
		return ""
	}
	return ", " + what + " " + time.Duration(d).String()
}
