package translate

import (
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/internal/expression"
	"turnout/routing"
)

// Match translates a match of an HTTPRoute.
func (c *Compiler) Match(m *gatewayv1.HTTPRouteMatch) (routing.Match, *Error) {
	out := routing.Match{Method: string(value(m.Method, ""))}
	var err *Error
	if out.Path, err = c.path(m.Path); err != nil {
		return out, err
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		v, err := c.condition(string(h.Name), h.Value, string(value(h.Type, gatewayv1.HeaderMatchExact)))
		if err != nil {
			return out, err
		}
		out.Headers = append(out.Headers, v)
	}
	for i := range m.QueryParams {
		q := &m.QueryParams[i]
		v, err := c.condition(string(q.Name), q.Value, string(value(q.Type, gatewayv1.QueryParamMatchExact)))
		if err != nil {
			return out, err
		}
		out.Query = append(out.Query, v)
	}
	return out, nil
}

// path translates a path match; nil = all paths.
func (c *Compiler) path(m *gatewayv1.HTTPPathMatch) (routing.PathMatch, *Error) {
	if m == nil {
		return routing.PathMatch{Kind: routing.PathPrefix, Value: "/"}, nil
	}
	out := routing.PathMatch{Value: value(m.Value, "/")}
	switch kind := value(m.Type, gatewayv1.PathMatchPathPrefix); kind {
	case gatewayv1.PathMatchPathPrefix:
		out.Kind = routing.PathPrefix
	case gatewayv1.PathMatchExact:
		out.Kind = routing.PathExact
	case gatewayv1.PathMatchRegularExpression:
		return c.pathExpression(out.Value)
	default:
		return out, dropped(unsupportedf("path match type %q is unknown", kind))
	}
	if !strings.HasPrefix(out.Value, "/") {
		return out, dropped(unsupportedf("path %q does not begin with a slash", out.Value))
	}
	return out, nil
}

// condition translates a match of a header or a query parameter; both have the same words for types.
func (c *Compiler) condition(name, text, kind string) (routing.ValueMatch, *Error) {
	out := routing.ValueMatch{Name: name, Value: text}
	switch kind {
	case string(gatewayv1.HeaderMatchExact):
		return out, nil
	case string(gatewayv1.HeaderMatchRegularExpression):
		var err *Error
		out.Expression = true
		out.Compiled, err = c.expression(text)
		return out, err
	}
	return out, dropped(unsupportedf("match type %q of %q is unknown", kind, name))
}

// expression compiles a regular expression; equal texts share it.
func (c *Compiler) expression(text string) (*expression.Expression, *Error) {
	e, err := c.expressions.Of(text, func() (*expression.Expression, error) {
		return expression.New(text, expression.Whole, expression.Tenant())
	})
	if err != nil {
		return nil, dropped(unsupportedf("regular expression %q: %v", text, err))
	}
	return e, nil
}

// pathExpression is a path that a regular expression matches.
func (c *Compiler) pathExpression(text string) (routing.PathMatch, *Error) {
	e, err := c.expression(text)
	return routing.PathMatch{Kind: routing.PathExpression, Value: text, Expression: e}, err
}

// dropped makes e the error of a rule that has no requests.
func dropped(e *Error) *Error {
	e.Drop = true
	return e
}

// GRPCMatch translates a match of a GRPCRoute: a service and a method are the two segments of a path (gRPC over HTTP/2, Requests).
func (c *Compiler) GRPCMatch(m *gatewayv1.GRPCRouteMatch) (routing.Match, *Error) {
	out := routing.Match{Path: routing.PathMatch{Kind: routing.PathPrefix, Value: "/"}}
	if m.Method != nil {
		var err *Error
		if out.Path, err = c.grpcPath(m.Method); err != nil {
			return out, err
		}
	}
	for i := range m.Headers {
		h := &m.Headers[i]
		v, err := c.condition(string(h.Name), h.Value, string(value(h.Type, gatewayv1.GRPCHeaderMatchExact)))
		if err != nil {
			return out, err
		}
		out.Headers = append(out.Headers, v)
	}
	return out, nil
}

// grpcPath translates a service, a method or both.
func (c *Compiler) grpcPath(m *gatewayv1.GRPCMethodMatch) (routing.PathMatch, *Error) {
	service, method := value(m.Service, ""), value(m.Method, "")
	kind := value(m.Type, gatewayv1.GRPCMethodMatchExact)
	switch kind {
	case gatewayv1.GRPCMethodMatchExact:
		if strings.Contains(service, "/") || strings.Contains(method, "/") {
			return routing.PathMatch{}, dropped(unsupportedf("service %q or method %q has a slash", service, method))
		}
	case gatewayv1.GRPCMethodMatchRegularExpression:
	default:
		return routing.PathMatch{}, dropped(unsupportedf("method match type %q is unknown", kind))
	}
	exact := kind == gatewayv1.GRPCMethodMatchExact
	switch {
	case service == "" && method == "":
		return routing.PathMatch{Kind: routing.PathPrefix, Value: "/"}, nil
	case exact && method == "":
		return routing.PathMatch{Kind: routing.PathPrefix, Value: "/" + service}, nil
	case exact && service != "":
		return routing.PathMatch{Kind: routing.PathExact, Value: "/" + service + "/" + method}, nil
	}
	if exact {
		method = expression.Quote(method)
	}
	text := "/" + part(service) + "/" + part(method)
	return c.pathExpression(text)
}

// part is an expression for one segment.
func part(text string) string {
	if text == "" {
		return "[^/]+"
	}
	return "(?:" + text + ")"
}
