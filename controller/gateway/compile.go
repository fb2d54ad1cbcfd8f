package gateway

import (
	"fmt"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/translate"
	"turnout/routing"
)

// compiled is what a route says, as far as that does not depend on where it attaches.
type compiled struct {
	rules   []compiledRule
	dropped bool                           // the rules, which nobody needs any more
	names   []*backend                     // all that is referred to, by rules that are dropped, too
	reason  gatewayv1.RouteConditionReason // why the whole route cannot be accepted; "" = it can
	message string
	partly  string // what of it is dropped; "" = nothing

	refs       gatewayv1.RouteConditionReason // why not all references are resolved
	refMessage string
}

// compiledRule is a rule of it.
type compiledRule struct {
	number   int
	matches  []compiledMatch
	filters  filters
	policy   routing.Policy
	session  *gatewayv1.SessionPersistence
	backends []*backend
	mirrors  []mirror
	failing  bool // its requests are answered 500
}

type compiledMatch struct {
	number int
	is     routing.Match
}

// mirror is a filter that copies requests.
type mirror struct {
	*backend
	numerator, denominator int
}

// compile looks at all rules of a route.
func (j *Judge) compile(o *Objects, r *route) *compiled {
	c := &compiled{}
	rules := r.rules(&j.compiler)
	var dropped []string
	for i := range rules {
		rule, wrong := j.compileRule(o, r, c, i, &rules[i])
		if wrong != nil {
			dropped = append(dropped, fmt.Sprintf("%d: %s", i, wrong.Message))
			if c.reason == "" || wrong.Incompatible {
				c.reason, c.message = gatewayv1.RouteReasonUnsupportedValue, fmt.Sprintf("Rule %d: %s", i, wrong.Message)
			}
			if wrong.Incompatible {
				c.reason = gatewayv1.RouteReasonIncompatibleFilters
			}
			rule.failing = true
		}
		if len(rule.matches) > 0 {
			c.rules = append(c.rules, rule)
		}
	}
	if len(dropped) > 0 && len(dropped) < len(rules) && c.reason != gatewayv1.RouteReasonIncompatibleFilters {
		c.reason, c.message = "", ""
		c.partly = "Dropped Rule " + strings.Join(dropped, "; ")
	}
	return c
}

// dropRules leaves what is asked for later: there are ten thousands of routes.
func (c *compiled) dropRules() { c.rules, c.dropped = nil, true }

// compileRule compiles one; with an error it has the matches whose requests are to be answered with an error.
func (j *Judge) compileRule(o *Objects, r *route, c *compiled, number int, in *rule) (compiledRule, *translate.Error) {
	out := compiledRule{number: number, policy: j.cfg.Policy, session: in.session}
	var first *translate.Error
	note := func(wrong *translate.Error) {
		if wrong != nil && first == nil {
			first = wrong
		}
	}
	for i := range in.matches {
		note(in.matches[i].wrong)
		if in.matches[i].wrong == nil {
			out.matches = append(out.matches, compiledMatch{i, in.matches[i].is})
		}
	}
	var wrong *translate.Error
	out.filters, wrong = j.filtersOf(in.filters)
	note(wrong)
	note(translate.Timeouts(&out.policy, in.timeouts))
	out.policy.Retry, wrong = j.compiler.Retry(in.retry)
	note(wrong)
	trial := out.policy
	_, wrong = translate.Session(&trial, in.session, "", false)
	note(wrong)
	for _, m := range out.matches {
		view := translate.View{Path: m.is.Path}
		if f := out.filters.rewrite; f != nil {
			_, wrong = j.compiler.Rewrite(f, view)
			note(wrong)
		}
		if f := out.filters.redirect; f != nil {
			_, wrong = j.compiler.Redirect(f, view)
			note(wrong)
		}
	}
	note(j.backendsOf(o, r, c, &out, in))
	return out, first
}

// backendsOf resolves where a rule sends requests and copies of them.
func (j *Judge) backendsOf(o *Objects, r *route, c *compiled, out *compiledRule, in *rule) (first *translate.Error) {
	keys := make(map[string]int)
	named := func(b *backend) {
		if keys[b.key]++; keys[b.key] > 1 {
			b.key += "#" + strconv.Itoa(keys[b.key])
		}
		c.names = append(c.names, b)
		if b.reason != "" && c.refs == "" {
			c.refs, c.refMessage = b.reason, b.message
		}
	}
	for i := range in.backends {
		ref := &in.backends[i]
		b := j.backendOf(o, r, &ref.BackendObjectReference)
		b.weight = int(value(ref.Weight, 1))
		named(b)
		f, wrong := j.ofBackend(ref.Filters)
		if wrong != nil && first == nil {
			first = wrong
		}
		b.request, b.answer = f.request, f.answer
		out.backends = append(out.backends, b)
	}
	clear(keys)
	for _, f := range out.filters.mirrors {
		b := j.backendOf(o, r, &f.BackendRef)
		named(b)
		m := mirror{backend: b}
		switch {
		case f.Percent != nil:
			m.numerator, m.denominator = int(*f.Percent), 100
		case f.Fraction != nil:
			m.numerator, m.denominator = int(f.Fraction.Numerator), int(value(f.Fraction.Denominator, 100))
		}
		out.mirrors = append(out.mirrors, m)
	}
	return first
}
