package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"turnout/controller"
	"turnout/routing"
)

// Rule is a rule of a route of the Gateway API for one host name of one listener.
type Rule struct {
	Listener string   `json:"listener"` // KIND/NAMESPACE/NAME/LISTENER
	Host     string   `json:"host"`
	Asks     []string `json:"asks,omitempty"`     // of requests
	Backends []string `json:"backends,omitempty"` // with their shares
	Requests uint64   `json:"requests"`
	Errors   uint64   `json:"errors"`
}

// mostRules is how many rules of a route are shown.
const mostRules = 100

// gateway is Route for an object of the Gateway API.
func (v *Viewer) gateway(kind, namespace, name string) (*Route, bool) {
	if v.cfg.Gateway == nil {
		return nil, false
	}
	g, ok := v.cfg.Gateway(kind, namespace, name)
	if !ok {
		return nil, false
	}
	report := &controller.RouteReport{Namespace: namespace, Name: name, Admitted: g.Accepted, Reason: g.Reason, Message: g.Message, Origin: g.Origin}
	for i := range g.Conditions {
		if c := &g.Conditions[i]; c.Bad() {
			report.Notes = append(report.Notes, c.String())
		}
	}
	out := &Route{Report: report, Gateway: g, Servers: []Server{}}
	out.Line = Line{Kind: kind, Namespace: namespace, Name: name, Admitted: g.Accepted, Reason: g.Reason, Notes: len(report.Notes)}
	if len(g.Hosts) > 0 {
		out.Host = g.Hosts[0]
	}
	v.fill(out, func(r *routing.Route) bool {
		return r.Key().UID == g.UID && r.Namespace() == namespace && r.Name() == name
	})
	return out, true
}

// rule adds a rule, and what its settings are if they are the first of all.
func (r *Route) rule(in *routing.Route) {
	if r.Report.Settings == nil {
		r.Report.Settings = settings(in)
	}
	if len(r.Rules) == mostRules {
		r.MoreRules++
		return
	}
	rule := Rule{Listener: in.Listener(), Host: in.Host(), Asks: in.Asks()}
	total := 0
	for b := range in.Backends {
		total += b.Weight()
	}
	for b := range in.Backends {
		text := b.Key()
		if b.Weight() < total {
			text += fmt.Sprintf(" %.3g %%", 100*float64(b.Weight())/float64(total))
		}
		if b.Status() != 0 {
			text += fmt.Sprintf(", answered %d", b.Status())
		}
		rule.Backends = append(rule.Backends, text)
	}
	if f := in.Policy().Redirect; f != nil {
		rule.Backends = []string{fmt.Sprintf("redirect, status %d", f.Status())}
	}
	if c := in.Counted(); c != nil {
		rule.Requests, rule.Errors = c.Sessions.Total(), c.Errors.Load()
	}
	r.Rules = append(r.Rules, rule)
	slices.SortStableFunc(r.Rules, func(a, b Rule) int { return cmp.Or(cmp.Compare(a.Listener, b.Listener), cmp.Compare(a.Host, b.Host)) })
}

// settings are how the requests of a rule of the Gateway API are treated.
func settings(in *routing.Route) []controller.Setting {
	p := in.Policy()
	const field, option = "the rule", "the router's options"
	or := func(value, none string) string { return cmp.Or(value, none) }
	span := func(d time.Duration) string {
		if d == 0 {
			return "none"
		}
		return d.String()
	}
	list := []controller.Setting{
		{Name: "termination", Value: in.Termination().String(), From: "the listener"},
		{Name: "tunnel timeout", Value: p.TunnelTimeout.String(), From: option}, {Name: "connect timeout", Value: p.ConnectTimeout.String(), From: option},
	}
	if in.Termination().Relays() {
		return list
	}
	var filters []string
	for _, f := range []struct {
		there bool
		word  string
	}{{p.Redirect != nil, "redirect"}, {p.Rewrite != nil, "rewrite"}, {p.RequestActions != nil, "request headers"}, {p.ResponseActions != nil, "response headers"}, {p.CORS != nil, "CORS"}, {len(in.Mirrors()) > 0, "mirror"}} {
		if f.there {
			filters = append(filters, f.word)
		}
	}
	retries := "none but those of the router"
	if s := p.Retry; s != nil {
		retries = fmt.Sprintf("%d, of %v", s.Attempts, s.Codes)
	}
	return append(list,
		controller.Setting{Name: "server timeout", Value: p.ServerTimeout.String(), From: option},
		controller.Setting{Name: "timeout of the whole exchange", Value: span(p.RequestTimeout), From: field}, controller.Setting{Name: "timeout of one attempt", Value: span(p.AttemptTimeout), From: field},
		controller.Setting{Name: "retries", Value: retries, From: field}, controller.Setting{Name: "filters", Value: or(strings.Join(filters, ", "), "none"), From: field},
		controller.Setting{Name: "session persistence", Value: or(in.CookieName(), "none"), From: field}, controller.Setting{Name: "forwarded headers", Value: p.Forwarded.String(), From: option},
	)
}
