package controller

import (
	"slices"
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
	all := r.c.Explanations()
	if i := slices.IndexFunc(all, func(e Explanation) bool { return e.Name == "a" && e.Namespace == "ns" }); i < 0 || !slices.Contains(all[i].Notes, note) {
		t.Errorf("explanations are %+v", all)
	}
}
