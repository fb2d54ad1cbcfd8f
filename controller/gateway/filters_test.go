package gateway

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/routing"
)

// TestRulesThatCannotBe: a route none of whose rules can be is not accepted, nor is one with filters that exclude each other; of others the good rules
// are served, and the requests of the bad ones are answered with an error.
func TestRulesThatCannotBe(t *testing.T) {
	const ok = "{matches: [{path: {value: /ok}}], backendRefs: [{name: a, port: 80}]}"
	bad := func(text string) string {
		return "{matches: [{path: {value: /bad}}], backendRefs: [{name: a, port: 80}], " + text + "}"
	}
	for what, c := range map[string]struct {
		rules, accepted string
		partly          bool
		good, failing   int
	}{
		"good":                       {ok, "True Accepted", false, 1, 0},
		"an unknown filter":          {bad("filters: [{type: X}]"), "False UnsupportedValue", false, 0, 0},
		"an unknown filter of two":   {ok + ", " + bad("filters: [{type: X}]"), "True Accepted", true, 1, 1},
		"somebody's filter":          {bad("filters: [{type: ExtensionRef, extensionRef: {group: x.org, kind: Y, name: z}}]"), "False UnsupportedValue", false, 0, 0},
		"an authority":               {bad("filters: [{type: ExternalAuth}]"), "False UnsupportedValue", false, 0, 0},
		"an empty filter":            {bad("filters: [{type: URLRewrite}]"), "False UnsupportedValue", false, 0, 0},
		"redirect and rewrite":       {ok + ", " + bad("filters: [{type: RequestRedirect, requestRedirect: {port: 81}}, {type: URLRewrite, urlRewrite: {hostname: x.test}}]"), "False IncompatibleFilters", false, 0, 0},
		"one twice":                  {bad("filters: [{type: RequestRedirect, requestRedirect: {port: 81}}, {type: RequestRedirect, requestRedirect: {port: 82}}]"), "False IncompatibleFilters", false, 0, 0},
		"a field that is ours":       {bad("filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: connection, value: x}]}}]"), "False UnsupportedValue", false, 0, 0},
		"an expression":              {ok + ", {matches: [{path: {type: RegularExpression, value: '('}}]}", "True Accepted", true, 1, 0},
		"one of two matches":         {"{matches: [{path: {type: RegularExpression, value: '('}}, {path: {value: /bad}}]}, " + ok, "True Accepted", true, 1, 1},
		"a prefix of what is none":   {"{matches: [{path: {type: Exact, value: /bad}}], filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}}]}", "False UnsupportedValue", false, 0, 0},
		"a time":                     {bad("timeouts: {request: 1x}"), "False UnsupportedValue", false, 0, 0},
		"a pause":                    {bad("retry: {backoff: x}"), "False UnsupportedValue", false, 0, 0},
		"a session":                  {bad("sessionPersistence: {type: X}"), "False UnsupportedValue", false, 0, 0},
		"a redirect of a backend":    {"{backendRefs: [{name: a, port: 80, filters: [{type: RequestRedirect, requestRedirect: {port: 81}}]}]}", "False UnsupportedValue", false, 0, 0},
		"a bad filter of a backend":  {"{backendRefs: [{name: a, port: 80, filters: [{type: X}]}]}", "False UnsupportedValue", false, 0, 0},
		"a good filter of a backend": {"{backendRefs: [{name: a, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: y}]}}]}]}", "True Accepted", false, 1, 0},
	} {
		w := newWorld(t).add(plainGateway).add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [" + c.rules + "]}}")
		r := w.judge()
		route := r.Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}]
		list := route.Status.Parents[0].Conditions
		if got := say(list, gatewayv1.RouteConditionAccepted); got != c.accepted {
			t.Errorf("%s: %s, want %s", what, got, c.accepted)
		}
		partly := say(list, gatewayv1.RouteConditionPartiallyInvalid)
		if partly != map[bool]string{true: "True UnsupportedValue"}[c.partly] || c.partly && !strings.HasPrefix(list[1].Message, "Dropped Rule ") {
			t.Errorf("%s: partly %q", what, partly)
		}
		good, failing := 0, 0
		for i := range route.Rules() {
			if b := route.Rules()[i].Backends[0]; b.Status == 500 {
				failing++
			} else if b.Status == 0 {
				good++
			}
		}
		if good != c.good || failing != c.failing {
			t.Errorf("%s: %d good rules, %d failing, want %d and %d", what, good, failing, c.good, c.failing)
		}
		if attached := r.Gateways[source.Key{Namespace: namespace, Name: "gw"}].Status.Listeners[0].AttachedRoutes; (attached == 1) != strings.HasPrefix(c.accepted, "True") {
			t.Errorf("%s: %d attached", what, attached)
		}
	}
}

// TestFiltersOfRules: what a rule says is what the table does with its requests.
func TestFiltersOfRules(t *testing.T) {
	w := newWorld(t).add(`
kind: Gateway
metadata: {name: gw}
spec: {gatewayClassName: turnout, listeners: [{name: http, port: 8080, protocol: HTTP}, {name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: good}]}}]}
---
kind: HTTPRoute
metadata: {name: r}
spec:
  parentRefs: [{name: gw}]
  rules:
  - name: all
    matches: [{path: {value: /a}, method: PUT}]
    timeouts: {request: 3s, backendRequest: 1s}
    retry: {codes: [503], attempts: 2}
    sessionPersistence: {sessionName: S}
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: y}]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {remove: [x]}}
    - {type: URLRewrite, urlRewrite: {hostname: x.test, path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}}
    - {type: CORS, cors: {allowOrigins: ["https://a.test"]}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}, percent: 25}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: c, port: 80}, fraction: {numerator: 1, denominator: 3}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}
    backendRefs: [{name: a, port: 80, filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x, value: y}]}}]}]
  - matches: [{path: {value: /r}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: o.test, statusCode: 307}}]
`)
	w.certificate(namespace, "good", "a.test")
	route := w.judge().Routes[Ref{kindHTTPRoute, source.Key{Namespace: namespace, Name: "r"}}]
	if got := say(route.Status.Parents[0].Conditions, gatewayv1.RouteConditionResolvedRefs); got != "False BackendNotFound" {
		t.Errorf("a mirror that is missing: %s", got)
	}
	if len(route.Rules()) != 4 {
		t.Fatalf("%d rules", len(route.Rules()))
	}
	for i := range route.Rules() {
		s := &route.Rules()[i]
		p, tls := &s.Policy, strings.HasSuffix(s.Listener, "/tls")
		if (s.Termination == routing.TermEdge) != tls {
			t.Errorf("%s: %v", s.Listener, s.Termination)
		}
		if want := map[bool]uint16{false: 8080, true: 443}[tls]; p.ForwardedPort != want {
			t.Errorf("%s: pods are told port %d, want that of the Gateway, %d", s.Listener, p.ForwardedPort, want)
		}
		if s.Match.Path.Value == "/r" {
			if p.Redirect == nil || p.Redirect.Status() != 307 || p.Rewrite != nil {
				t.Errorf("redirect %+v", p)
			}
			continue
		}
		if s.Match.Method != "PUT" || p.RequestTimeout.Seconds() != 3 || p.AttemptTimeout.Seconds() != 1 || p.Retry == nil || p.Retry.Attempts != 2 || p.RequestActions == nil || p.ResponseActions == nil || p.Rewrite == nil || p.CORS == nil || p.Redirect != nil {
			t.Errorf("%s: %+v", s.Listener, p)
		}
		if s.CookieName != "S" || strings.Contains(p.CookieAttributes, "Secure") != tls {
			t.Errorf("%s: cookie %s %s", s.Listener, s.CookieName, p.CookieAttributes)
		}
		if len(s.Mirrors) != 3 || s.Mirrors[0].Numerator != 25 || s.Mirrors[0].Denominator != 100 || s.Mirrors[1].Denominator != 3 || s.Mirrors[2].Denominator != 0 || s.Mirrors[0].Key == s.Mirrors[2].Key {
			t.Errorf("mirrors %+v", s.Mirrors)
		}
		if b := s.Backends; len(b) != 1 || b[0].ResponseActions == nil || b[0].RequestActions != nil {
			t.Errorf("backends %+v", b)
		}
	}
}

// TestGRPCRoutes: services and methods are paths, and all that is common with HTTP is the same.
func TestGRPCRoutes(t *testing.T) {
	w := newWorld(t).add(plainGateway).add(`
kind: GRPCRoute
metadata: {name: r}
spec:
  parentRefs: [{name: gw}]
  hostnames: [g.test]
  rules:
  - matches: [{method: {service: s.S, method: M}, headers: [{name: a, value: b}]}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: y}]}}, {type: RequestMirror, requestMirror: {backendRef: {name: b, port: 80}}}]
    backendRefs: [{name: a, port: 80, weight: 3, filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {remove: [x]}}]}]
---
{kind: GRPCRoute, metadata: {name: bare}, spec: {parentRefs: [{name: gw}]}}
`)
	r := w.judge()
	rules := r.Routes[Ref{kindGRPCRoute, source.Key{Namespace: namespace, Name: "r"}}].Rules()
	if len(rules) != 1 || rules[0].Match.Path != (routing.PathMatch{Kind: routing.PathExact, Value: "/s.S/M"}) || len(rules[0].Match.Headers) != 1 || rules[0].Policy.RequestActions == nil ||
		len(rules[0].Mirrors) != 1 || rules[0].Backends[0].Weight != 3 || rules[0].Backends[0].ResponseActions == nil {
		t.Errorf("%+v", rules)
	}
	bare := r.Routes[Ref{kindGRPCRoute, source.Key{Namespace: namespace, Name: "bare"}}].Rules()
	if len(bare) != 1 || bare[0].Backends[0].Status != 500 {
		t.Errorf("a route without rules: %+v", bare)
	}
}

// TestClasses: ours alone have a status, with the features that there are.
func TestClasses(t *testing.T) {
	for what, c := range map[string]struct {
		spec      string
		installed Installed
		want      string
		retry     bool
	}{
		"ours":             {"controllerName: turnout.router/gateway", Installed{}, "Accepted=True Accepted", false},
		"supported":        {"controllerName: turnout.router/gateway", Installed{"v1.6.3", "standard"}, "Accepted=True Accepted, SupportedVersion=True SupportedVersion", false},
		"experimental":     {"controllerName: turnout.router/gateway", Installed{"v1.5.1", "experimental"}, "Accepted=True Accepted, SupportedVersion=True SupportedVersion", true},
		"not supported":    {"controllerName: turnout.router/gateway", Installed{"v1.60.0", "standard"}, "Accepted=True Accepted, SupportedVersion=False UnsupportedVersion", false},
		"parameters":       {"controllerName: turnout.router/gateway, parametersRef: {group: '', kind: ConfigMap, name: empty, namespace: infra}", Installed{}, "Accepted=True Accepted", false},
		"no namespace":     {"controllerName: turnout.router/gateway, parametersRef: {group: '', kind: ConfigMap, name: empty}", Installed{}, "Accepted=False InvalidParameters", false},
		"another kind":     {"controllerName: turnout.router/gateway, parametersRef: {group: x.org, kind: X, name: empty, namespace: infra}", Installed{}, "Accepted=False InvalidParameters", false},
		"known parameters": {"controllerName: turnout.router/gateway, parametersRef: {group: '', kind: ConfigMap, name: known, namespace: infra}", Installed{}, "Accepted=True Accepted", false},
		"wrong parameters": {"controllerName: turnout.router/gateway, parametersRef: {group: '', kind: ConfigMap, name: wrong, namespace: infra}", Installed{}, "Accepted=False InvalidParameters", false},
		"somebody else's":  {"controllerName: x.org/theirs", Installed{}, "", false},
	} {
		w := newWorld(t).add("{kind: GatewayClass, metadata: {name: c}, spec: {" + c.spec + "}}\n---\n{kind: ConfigMap, metadata: {name: empty}}\n---\n{kind: ConfigMap, metadata: {name: known}, data: {replicas: '2'}}\n---\n{kind: ConfigMap, metadata: {name: wrong}, data: {replicas: x}}")
		w.o.Installed = c.installed
		status := w.judge().Classes[source.Key{Name: "c"}]
		if c.want == "" {
			if status != nil {
				t.Errorf("%s: %+v", what, status)
			}
			continue
		}
		if got := sayAll(status.Conditions); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
		retry := false
		for i, f := range status.SupportedFeatures {
			retry = retry || f.Name == "HTTPRouteRetry"
			if i > 0 && status.SupportedFeatures[i-1].Name >= f.Name {
				t.Errorf("%s: %s is not in order", what, f.Name)
			}
		}
		if retry != c.retry || len(status.SupportedFeatures) > 64 {
			t.Errorf("%s: %d features, retry: %t", what, len(status.SupportedFeatures), retry)
		}
	}
}

// TestFeaturesOfUnknownKinds: what needs a kind that the cluster does not know is not supported, for as long as it does not.
func TestFeaturesOfUnknownKinds(t *testing.T) {
	w := newWorld(t)
	features := func() string {
		var names []string
		for _, f := range w.judge().Classes[source.Key{Name: "turnout"}].SupportedFeatures {
			names = append(names, string(f.Name))
		}
		return " " + strings.Join(names, " ") + " "
	}
	all := features()
	for kind, lost := range map[string][]string{
		kindTCPRoute:    {"TCPRoute"},
		kindUDPRoute:    {"UDPRoute"},
		kindTLSRoute:    {"TLSRoute", "TLSRouteModeTerminate", "TLSRouteModeMixed"},
		kindGRPCRoute:   {"GRPCRoute", "GRPCRouteNamedRouteRule"},
		kindListenerSet: {"ListenerSet"},
		kindPolicy:      {"BackendTLSPolicy", "BackendTLSPolicySANValidation"},
		kindGrant:       {"ReferenceGrant"},
	} {
		want := all
		for _, name := range lost {
			if !strings.Contains(all, " "+name+" ") {
				t.Errorf("%s is not among%s", name, all)
			}
			want = strings.Replace(want, " "+name+" ", " ", 1)
		}
		w.o.Unknown.Set(source.Key{Name: kind}, &metav1.Status{})
		if got := features(); got != want {
			t.Errorf("without %s:%s, want%s", kind, got, want)
		}
		w.o.Unknown.Delete(source.Key{Name: kind})
	}
	if got := features(); got != all {
		t.Errorf("afterwards:%s, want%s", got, all)
	}
}

// TestReferencesOfDroppedRules: what a rule that is dropped refers to is in the status, and followed.
func TestReferencesOfDroppedRules(t *testing.T) {
	w := newWorld(t).add(plainGateway).add("{kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: a, port: 80}]}, {matches: [{path: {type: RegularExpression, value: '('}}], backendRefs: [{name: later, port: 80}]}]}}")
	for _, want := range []string{"True Accepted, False BackendNotFound", "True Accepted, True ResolvedRefs"} {
		if got := routeTold(w.judge(), kindHTTPRoute, "r"); got[0] != want {
			t.Errorf("%s, want %s", got[0], want)
		}
		w.service(namespace, "later", "{name: http, port: 80}", "10.0.0.1")
	}
}
