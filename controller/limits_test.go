package controller

import (
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestAllowListOfNothingIsLogged(t *testing.T) {
	core, logs := observer.New(zapcore.WarnLevel)
	r := newRig(t, Options{}, func(c *Config) { c.Log = zap.New(core) })
	list := func(text string) func(*routev1.Route) {
		return func(o *routev1.Route) {
			o.Annotations = map[string]string{"haproxy.router.openshift.io/ip_allowlist": text}
		}
	}
	const want = "route lets nobody in: its allow-list has no valid entry"
	for _, step := range []struct {
		text string
		logs int
	}{{"10.0.0.1", 0}, {"nonsense", 1}, {"other nonsense", 1}, {"10.0.0.1 nonsense", 1}, {"nonsense", 2}} {
		r.do(aRoute("a", "a.test", 0, list(step.text)))
		if n := logs.FilterMessage(want).Len(); n != step.logs {
			t.Errorf("after %q it was logged %d times, want %d", step.text, n, step.logs)
		}
	}
	const note = "annotation haproxy.router.openshift.io/ip_allowlist: no valid entry; nobody may connect"
	if notes := r.c.Notes("ns", "a"); !slices.Contains(notes, note) {
		t.Errorf("notes are %q", notes)
	}
	r.do(aRoute("b", "b.test", 0))
	some, _ := r.c.Explanations("", 0)
	all := slices.Collect(some)
	if i := slices.IndexFunc(all, func(e Explanation) bool { return e.Name == "a" && e.Namespace == "ns" }); i < 0 || !slices.Contains(all[i].Notes, note) {
		t.Errorf("explanations are %+v", all)
	}
}

// TestCostlyHeaderActionsAreRefused: a route whose header actions cost too much is rejected and says why, whatever it was before;
// its host is free for another one, and what is only wrong is noted.
func TestCostlyHeaderActionsAreRefused(t *testing.T) {
	r := newRig(t, Options{})
	set := func(value string) func(*routev1.Route) {
		return func(o *routev1.Route) {
			o.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{Request: []routev1.RouteHTTPHeader{{
				Name: "x-a", Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: value}},
			}}}}
		}
	}
	converters := func(n int) string { return "%[req.hdr(big)" + strings.Repeat(",base64", n) + "]" }
	r.do(aRoute("a", "a.test", 0, set(converters(16))), aRoute("b", "a.test", 1))
	if got := r.serves("a.test", "/"); got != "a" {
		t.Fatalf("served by %q", got)
	}
	const place = "False InvalidHeaderActions: spec.httpHeaders.actions.request[0]: header x-a: cannot use value "
	for value, why := range map[string]string{
		converters(17): "an expression has at most 16 converters, not 17", converters(1000): "an expression has at most 16 converters, not 1000",
		strings.Repeat("%[ssl_c_der]", 65): "a value has at most 64 expressions",
	} {
		r.do(aRoute("a", "a.test", 0, set(value)))
		if got := r.condition("a"); !strings.HasPrefix(got, place) || !strings.HasSuffix(got, why) {
			t.Errorf("condition %q, want %q and %q", got, place, why)
		}
		if got := r.serves("a.test", "/"); got != "b" {
			t.Errorf("served by %q", got)
		}
	}
	r.do(aRoute("a", "a.test", 0, set("%[req.hdr(big),upper]")))
	if got := r.serves("a.test", "/"); got != "a" || len(r.c.Notes("ns", "a")) == 0 {
		t.Errorf("served by %q, notes %q", got, r.c.Notes("ns", "a"))
	}
}
