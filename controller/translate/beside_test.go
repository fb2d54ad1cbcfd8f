package translate

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/endpoints"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// each is a service with an endpoint of its own, with two ports.
func each(name string) *endpoints.Set {
	addr := netip.AddrFrom4([4]byte{10, 0, 0, name[0]})
	return &endpoints.Set{Service: name, Endpoints: []endpoints.Endpoint{
		{ID: name + ":http", Addr: testaddr.Of(netip.AddrPortFrom(addr, 8080)), Port: "http"}, {ID: name + ":other", Addr: testaddr.Of(netip.AddrPortFrom(addr, 9090)), Port: "other"},
	}}
}

// reached are the endpoints of targets, "ID=WEIGHT", in order.
func reached(spec *routing.RuleSpec) string {
	var list []string
	for _, t := range spec.Targets {
		list = append(list, fmt.Sprintf("%s=%d", t.ID, t.Weight))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func translatedWith(t *testing.T, service func(string) *endpoints.Set, r *routev1.Route) *Result {
	t.Helper()
	return translator(t, Options{}).Route(Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: service, Shared: new(Shared)})
}

// TestMirror: where copies go, and what is said about values that cannot be used.
func TestMirror(t *testing.T) {
	for _, c := range []struct {
		annotations []string
		want        string // mirrors with share and targets
		notes       int
	}{
		{nil, "", 0},
		{[]string{annotationMirror, ""}, "", 0},
		{[]string{annotationMirror, "m"}, "m 0/0 [m:http=1]", 0},
		{[]string{annotationMirror, "m:other", annotationMirrorPercent, "5"}, "m:other 5/100 [m:other=1]", 0},
		{[]string{annotationMirror, "m:9090, n"}, "m:9090 0/0 [m:other=1] n 0/0 [n:http=1]", 0},
		{[]string{annotationMirror, "m n o p q"}, "m 0/0 [m:http=1] n 0/0 [n:http=1] o 0/0 [o:http=1] p 0/0 [p:http=1]", 1},
		{[]string{annotationMirror, "m", annotationMirrorPercent, "0"}, "", 0},
		{[]string{annotationMirror, "m", annotationMirrorPercent, "101"}, "m 0/0 [m:http=1]", 1},
		{[]string{annotationMirror, "other/m m:/ https://m M m.other"}, "", 5},
		{[]string{annotationMirror, "m:none"}, "m:none 0/0 []", 2},
		{[]string{annotationMirrorPercent, "5"}, "", 1},
	} {
		r := terminated("edge", "", c.annotations...)
		r.Spec.Port = &routev1.RoutePort{}
		r.Spec.Port.TargetPort.StrVal, r.Spec.Port.TargetPort.Type = "http", 1
		got := translatedWith(t, each, r)
		var said []string
		rules := got.Rules()
		for _, m := range rules[0].Mirrors {
			said = append(said, fmt.Sprintf("%s %d/%d [%s]", m.Key, m.Numerator, m.Denominator, reached(&routing.RuleSpec{Targets: m.Targets})))
		}
		if text := strings.Join(said, " "); text != c.want || len(got.Notes) != c.notes || len(rules) != 1 {
			t.Errorf("%q: %s, want %s; notes %q", c.annotations, text, c.want, got.Notes)
		}
	}
	if got := translated(t, Options{}, terminated("passthrough", "", annotationMirror, "m", annotationCanary, "c")); got.beside != nil || len(got.Notes) != 2 {
		t.Errorf("passthrough: %v, notes %q", got.beside, got.Notes)
	}
}

// TestMirrorsAreRefilled: endpoints of a mirror and of a canary that come later are found, and their services are among those of the route.
func TestMirrorsAreRefilled(t *testing.T) {
	there := false
	late := func(name string) *endpoints.Set {
		if name == "a" || there {
			return each(name)
		}
		return &endpoints.Set{Service: name}
	}
	got := translatedWith(t, late, terminated("edge", "", annotationMirror, "m", annotationCanary, "c", annotationCanaryHeader, "x-canary"))
	if !slices.Equal(got.Services, []string{"a", "c", "m"}) || len(got.Notes) != 2 {
		t.Errorf("services %q, notes %q", got.Services, got.Notes)
	}
	pool := got.Spec.Pool()
	if n := got.Release(); n != 2 {
		t.Errorf("the route has %d servers", n)
	}
	got.Settle()
	there = true
	got.Refill(late, new(Shared))
	first, second := got.Fill(0, pool), got.Fill(1, pool)
	if reached(&first) != "a:http=1 a:other=1" || reached(&second) != "c:http=1 c:other=1" || len(second.Mirrors[0].Targets) != 2 || len(got.Notes) != 0 {
		t.Errorf("%s; %s; %v; notes %q", reached(&first), reached(&second), second.Mirrors, got.Notes)
	}
}

// TestCanary: which requests go to the canary, and what is said about values that cannot be used.
func TestCanary(t *testing.T) {
	const by, value, cookie, weight = annotationCanaryHeader, annotationCanaryValue, annotationCanaryCookie, annotationCanaryWeight
	const alone = "a:http=1"
	for _, c := range []struct {
		annotations []string
		first       string // targets of the route
		asked       string // of the other rules: name, value
		notes       int
	}{
		{[]string{by, "x", weight, "5"}, alone, "", 2},
		{[]string{annotationCanary, "c"}, alone, "", 1},
		{[]string{annotationCanary, "c", by, "X-Canary"}, alone, "x-canary always", 0},
		{[]string{annotationCanary, "c", by, "X-Canary", value, "blue team"}, alone, "x-canary blue team", 0},
		{[]string{annotationCanary, "c", by, "X-Canary", value, " blue"}, alone, "", 2},
		{[]string{annotationCanary, "c", by, "X-Canary", value, "a\nb"}, alone, "", 2},
		{[]string{annotationCanary, "c", by, "X-Canary", value, strings.Repeat("x", 1025)}, alone, "", 2},
		{[]string{annotationCanary, "c", by, "x canary"}, alone, "", 2},
		{[]string{annotationCanary, "c", value, "blue"}, alone, "", 2},
		{[]string{annotationCanary, "c", annotationCanaryCookie, "a b"}, alone, "", 2},
		{[]string{annotationCanary, "c", by, "x", annotationCanaryCookie, "y"}, alone, "x always cookie y always", 0},
		{[]string{annotationCanary, "other/c", by, "x"}, alone, "", 1},
		{[]string{annotationCanary, "", by, "x"}, alone, "", 1},
		{[]string{annotationCanary, "c", weight, "25"}, "a:http=256 c:http=85", "", 0},
		{[]string{annotationCanary, "c", weight, "25", by, "x"}, "a:http=256 c:http=85", "x always", 0},
		{[]string{annotationCanary, "c", weight, "0"}, alone, "", 0},
		{[]string{annotationCanary, "c", weight, "101"}, alone, "", 1},
		{[]string{annotationCanary, "a", weight, "25"}, alone, "", 0},
	} {
		r := terminated("edge", "", c.annotations...)
		*r.Spec.To.Weight = 1
		r.Spec.Port = &routev1.RoutePort{}
		r.Spec.Port.TargetPort.StrVal, r.Spec.Port.TargetPort.Type = "http", 1
		got := translatedWith(t, each, r)
		var said []string
		rules := got.Rules()
		for i := range rules[1:] {
			rule := &rules[i+1]
			if rule.RouteKey.Rule != i+1 || len(rule.Match.Headers)+len(rule.Match.Cookies) != 1 || reached(rule) != "c:http=1" || rule.Policy != rules[0].Policy {
				t.Errorf("%q: rule %d: %+v", c.annotations, i+1, rule)
			}
			for _, h := range rule.Match.Headers {
				said = append(said, h.Name+" "+h.Value)
			}
			for _, k := range rule.Match.Cookies {
				said = append(said, "cookie "+k.Name+" "+k.Value)
			}
		}
		if first, text := reached(&rules[0]), strings.Join(said, " "); first != c.first || text != c.asked || len(got.Notes) != c.notes {
			t.Errorf("%.100q: %s and %q, want %s and %q; notes %q", c.annotations, first, text, c.first, c.asked, got.Notes)
		}
	}
	r := terminated("edge", "", annotationCanary, "c", annotationCanaryWeight, "25")
	r.Spec.AlternateBackends = []routev1.RouteTargetReference{{Kind: "Service", Name: "b"}}
	if got := translatedWith(t, each, r); !slices.Equal(got.Services, []string{"a", "b"}) || len(got.Notes) != 1 {
		t.Errorf("beside alternateBackends: services %q, notes %q", got.Services, got.Notes)
	}
}

// TestChoosesAs: another mirror or canary is another choice.
func TestChoosesAs(t *testing.T) {
	with := func(annotations ...string) *Result {
		return translatedWith(t, each, terminated("edge", "", annotations...))
	}
	if !with(annotationMirror, "m").ChoosesAs(with(annotationMirror, "m")) {
		t.Error("the same mirror is another choice")
	}
	canary := []string{annotationCanary, "c", annotationCanaryHeader, "x"}
	for _, other := range [][]string{nil, {annotationMirror, "n"}, {annotationMirror, "m:other"}, canary} {
		if with(other...).ChoosesAs(with(annotationMirror, "m")) {
			t.Errorf("%q is the same choice as mirror m", other)
		}
	}
}

// FuzzServices: what is taken for a service is a name in the route's own namespace.
func FuzzServices(f *testing.F) {
	for _, s := range []string{"a", "a:http", "a:80", "ns/a", "a.ns", "a:", ":80", "-a", "a-", "A", "a b", "a\x00"} {
		f.Add(s)
	}
	name := regexp.MustCompile(`\A[a-z]([a-z0-9-]{0,61}[a-z0-9])?\z`)
	both := regexp.MustCompile(`\A[a-z]([a-z0-9-]{0,61}[a-z0-9])?(:[a-zA-Z0-9-]{1,63})?\z`)
	f.Fuzz(func(t *testing.T, text string) {
		if isLabel(text) != name.MatchString(text) || isService(text) != both.MatchString(text) {
			t.Fatalf("%q: service %v, with port %v", text, isLabel(text), isService(text))
		}
	})
}
