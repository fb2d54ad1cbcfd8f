package expansion

import (
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// route returns an HTTPRoute with a rule of n matches and a backend.
func route(matches int) *gatewayv1.HTTPRouteSpec {
	spec := &gatewayv1.HTTPRouteSpec{Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: make([]gatewayv1.HTTPBackendRef, 1)}}}
	for i := range matches {
		spec.Rules[0].Matches = append(spec.Rules[0].Matches, gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: new(fmt.Sprint("/", i))}})
	}
	return spec
}

// TestFiguresOfObjects counts each figure of each kind of route.
func TestFiguresOfObjects(t *testing.T) {
	expression, grpcExpression := gatewayv1.HeaderMatchRegularExpression, gatewayv1.GRPCMethodMatchRegularExpression
	pathExpression, queryExpression := gatewayv1.PathMatchRegularExpression, gatewayv1.QueryParamMatchRegularExpression
	full := &gatewayv1.HTTPRouteSpec{Rules: []gatewayv1.HTTPRouteRule{{
		Matches: []gatewayv1.HTTPRouteMatch{{
			Path: &gatewayv1.HTTPPathMatch{Type: &pathExpression, Value: new("/abc")}, Method: new(gatewayv1.HTTPMethodGet),
			Headers:     []gatewayv1.HTTPHeaderMatch{{Name: "a", Value: "b"}, {Name: "c", Value: "d", Type: &expression}},
			QueryParams: []gatewayv1.HTTPQueryParamMatch{{Name: "q", Value: "v", Type: &queryExpression}},
		}, {}},
		Filters: []gatewayv1.HTTPRouteFilter{
			{RequestHeaderModifier: &gatewayv1.HTTPHeaderFilter{Set: []gatewayv1.HTTPHeader{{Name: "n", Value: "value"}}, Remove: []string{"r"}}},
			{RequestMirror: &gatewayv1.HTTPRequestMirrorFilter{}},
			{CORS: &gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{"https://a"}}},
		},
		BackendRefs: make([]gatewayv1.HTTPBackendRef, 3),
	}}}
	grpc := &gatewayv1.GRPCRouteSpec{Rules: []gatewayv1.GRPCRouteRule{{
		Matches: []gatewayv1.GRPCRouteMatch{
			{Method: &gatewayv1.GRPCMethodMatch{Type: &grpcExpression, Service: new("s"), Method: new("m")}},
			{Method: &gatewayv1.GRPCMethodMatch{Method: new("m")}, Headers: []gatewayv1.GRPCHeaderMatch{{Name: "a", Value: "b"}}},
		},
		Filters:     []gatewayv1.GRPCRouteFilter{{RequestMirror: &gatewayv1.HTTPRequestMirrorFilter{}}},
		BackendRefs: make([]gatewayv1.GRPCBackendRef, 1),
	}}}
	tcp := []gatewayv1.TCPRouteRule{{BackendRefs: make([]gatewayv1.BackendRef, 2)}}
	for name, c := range map[string]*struct{ got, want Size }{
		"HTTPRoute":              {HTTPRoute(full, 5, Exact), Size{Rules: 10, Backends: 40, Conditions: 4*5 + 2 + 1, Expressions: 3, Text: 4 + 2 + 2 + 2 + 6 + 9}},
		"rule without a match":   {HTTPRoute(&gatewayv1.HTTPRouteSpec{Rules: make([]gatewayv1.HTTPRouteRule, 2)}, 3, Exact), Size{Rules: 6}},
		"GRPCRoute":              {GRPCRoute(grpc, 2, Exact), Size{Rules: 4, Backends: 8, Conditions: 2, Expressions: 2, Text: 3 + 2}},
		"GRPCRoute without rule": {GRPCRoute(&gatewayv1.GRPCRouteSpec{}, 2, Exact), Size{Rules: 2}},
		"TCPRoute":               {StreamRoute(tcp, func(r *gatewayv1.TCPRouteRule) []gatewayv1.BackendRef { return r.BackendRefs }, 4), Size{Rules: 4, Backends: 8}},
	} {
		if c.got.Compiled > 3*4096 || (c.got.Compiled > 0) != (c.want.Expressions > 0) {
			t.Errorf("%s: %d bytes of expressions", name, c.got.Compiled)
		}
		if c.got.Compiled = 0; c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
}

// TestFigureAndLimitAreNamed checks that the message about an object contains the figure and the
// limit.
func TestFigureAndLimitAreNamed(t *testing.T) {
	for want, s := range map[string]Size{
		"expands to 81,920 rules, limit 4,096":                  HTTPRoute(route(128), 640, Exact),
		"expands to 16,385 conditions, limit 16,384":            {Conditions: MaxConditions + 1},
		"expands to 257 regular expressions, limit 256":         {Expressions: MaxExpressions + 1},
		"expands to 16,385 backends of rules, limit 16,384":     {Backends: MaxBackends + 1},
		"expands to 7,341,056 bytes of memory, limit 7,340,032": {Rules: MaxRules, Backends: 2 * MaxRules, Conditions: 8},
		"": {Rules: MaxRules, Backends: 2 * MaxRules},
	} {
		if got := s.Check(); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// TestCountingCostsLittle checks that a rough count parses no expression, and an exact count parses
// no more expressions than an object may have.
func TestCountingCostsLittle(t *testing.T) {
	kind := gatewayv1.HeaderMatchRegularExpression
	of := func(n int) *gatewayv1.HTTPRouteSpec {
		spec := &gatewayv1.HTTPRouteSpec{Rules: []gatewayv1.HTTPRouteRule{{Matches: make([]gatewayv1.HTTPRouteMatch, n/16)}}}
		for i := range n {
			m := &spec.Rules[0].Matches[i/16]
			m.Headers = append(m.Headers, gatewayv1.HTTPHeaderMatch{Name: "h", Value: "(?i)(a|[^b-k]{2}){2}", Type: &kind})
		}
		return spec
	}
	counted := func(n int, p Precision) float64 {
		spec := of(n)
		return testing.AllocsPerRun(3, func() { HTTPRoute(spec, 1, p) })
	}
	if n := counted(2048, Rough); n != 0 {
		t.Errorf("%v allocations to count roughly", n)
	}
	if most, got := counted(MaxExpressions, Exact), counted(2048, Exact); got > most || most == 0 {
		t.Errorf("%v allocations to count 2,048 expressions, %v for those that an object may have", got, most)
	}
	if exact, rough := HTTPRoute(of(MaxExpressions), 2, Exact), HTTPRoute(of(MaxExpressions), 2, Rough); rough.Bytes() < exact.Bytes() {
		t.Errorf("%d bytes roughly, %d exactly", rough.Bytes(), exact.Bytes())
	}
}
