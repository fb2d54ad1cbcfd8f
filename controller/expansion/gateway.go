package expansion

import (
	"encoding/json"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/internal/expression"
)

// Source returns the bytes of an object as JSON.
func Source(object any) int {
	data, err := json.Marshal(object)
	if err != nil {
		return 0 // an object without a size has no more than the allowance
	}
	return len(data)
}

// Precision is how Size.Compiled is counted.
type Precision bool

// The precisions.
const (
	Exact Precision = false // expressions are parsed, up to MaxExpressions of an object
	Rough Precision = true  // no expression is parsed, and Size.Compiled is at least the exact one
)

// HTTPRoute returns what an HTTPRoute expands to at a number of places: host names of all listeners
// that it attaches to, where a listener for all hosts has one.
func HTTPRoute(spec *gatewayv1.HTTPRouteSpec, places int, p Precision) Size {
	s := Size{rough: p}
	for i := range spec.Rules {
		r := &spec.Rules[i]
		for m := range r.Matches {
			s.httpMatch(&r.Matches[m], places)
		}
		backends := s.filters(r.Filters)
		for b := range r.BackendRefs {
			s.filters(r.BackendRefs[b].Filters)
		}
		s.rule(len(r.Matches), backends+len(r.BackendRefs), places)
	}
	return s
}

// GRPCRoute returns what a GRPCRoute expands to at a number of places.
func GRPCRoute(spec *gatewayv1.GRPCRouteSpec, places int, p Precision) Size {
	s := Size{rough: p}
	if len(spec.Rules) == 0 {
		s.rule(0, 0, places)
	}
	for i := range spec.Rules {
		r := &spec.Rules[i]
		for m := range r.Matches {
			s.grpcMatch(&r.Matches[m], places)
		}
		backends := s.grpcFilters(r.Filters)
		for b := range r.BackendRefs {
			s.grpcFilters(r.BackendRefs[b].Filters)
		}
		s.rule(len(r.Matches), backends+len(r.BackendRefs), places)
	}
	return s
}

// StreamRoute returns the size of a TLSRoute, TCPRoute or UDPRoute at a number of places.
func StreamRoute[R any](rules []R, backends func(*R) []gatewayv1.BackendRef, places int) Size {
	var s Size
	for i := range rules {
		s.rule(0, len(backends(&rules[i])), places)
	}
	return s
}

// rule counts a rule with its backends and mirrors. At each place each match is a rule of the table
// with all of them. A rule without a match counts as one.
func (s *Size) rule(matches, backends, places int) {
	rules := max(matches, 1) * places
	s.Rules += rules
	s.Backends += rules * backends
}

func (s *Size) httpMatch(m *gatewayv1.HTTPRouteMatch, places int) {
	if m.Path != nil {
		s.text(m.Path.Value)
		s.expression(is(m.Path.Type, gatewayv1.PathMatchRegularExpression), value(m.Path.Value))
	}
	if m.Method != nil {
		s.Conditions += places
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		s.condition(places, string(h.Name), h.Value, is(h.Type, gatewayv1.HeaderMatchRegularExpression))
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		s.condition(places, string(q.Name), q.Value, is(q.Type, gatewayv1.QueryParamMatchRegularExpression))
	}
}

func (s *Size) grpcMatch(m *gatewayv1.GRPCRouteMatch, places int) {
	if m.Method != nil {
		s.text(m.Method.Service)
		s.text(m.Method.Method)
		// A method without a service becomes an expression, too.
		s.expression(is(m.Method.Type, gatewayv1.GRPCMethodMatchRegularExpression) || m.Method.Service == nil, "/(?:"+value(m.Method.Service)+")/(?:"+value(m.Method.Method)+")[^/]+")
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		s.condition(places, string(h.Name), h.Value, is(h.Type, gatewayv1.GRPCHeaderMatchRegularExpression))
	}
}

func (s *Size) condition(places int, name, value string, isExpression bool) {
	s.Conditions += places
	s.Text += len(name) + len(value)
	s.expression(isExpression, value)
}

func (s *Size) expression(there bool, text string) {
	if !there {
		return
	}
	if s.Expressions++; s.Expressions > MaxExpressions {
		return // the object is refused, so its other expressions are not parsed
	}
	if s.rough {
		s.Compiled += expression.MostBytes(text, expression.Tenant())
	} else {
		s.Compiled += expression.Bytes(text, expression.Tenant())
	}
}

func (s *Size) text(p *string) {
	if p != nil {
		s.Text += len(*p)
	}
}

// filters counts filters and returns how many of them are mirrors.
func (s *Size) filters(list []gatewayv1.HTTPRouteFilter) (mirrors int) {
	for i := range list {
		f := &list[i]
		s.headers(f.RequestHeaderModifier)
		s.headers(f.ResponseHeaderModifier)
		if f.RequestMirror != nil {
			mirrors++
		}
		if c := f.CORS; c != nil {
			for _, o := range c.AllowOrigins {
				s.Text += len(o)
			}
			s.Conditions += len(c.AllowOrigins) + len(c.AllowMethods) + len(c.AllowHeaders) + len(c.ExposeHeaders)
		}
	}
	return mirrors
}

// grpcFilters counts filters and returns how many of them are mirrors.
func (s *Size) grpcFilters(list []gatewayv1.GRPCRouteFilter) (mirrors int) {
	for i := range list {
		f := &list[i]
		s.headers(f.RequestHeaderModifier)
		s.headers(f.ResponseHeaderModifier)
		if f.RequestMirror != nil {
			mirrors++
		}
	}
	return mirrors
}

func (s *Size) headers(f *gatewayv1.HTTPHeaderFilter) {
	if f == nil {
		return
	}
	s.Conditions += len(f.Set) + len(f.Add) + len(f.Remove)
	for _, list := range [...][]gatewayv1.HTTPHeader{f.Set, f.Add} {
		for i := range list {
			s.Text += len(list[i].Name) + len(list[i].Value)
		}
	}
}

// value returns *p, "" if p is nil.
func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// is reports whether p points to v.
func is[T comparable](p *T, v T) bool { return p != nil && *p == v }
