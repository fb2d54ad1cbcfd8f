package controller

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnout/controller/source"
	"turnout/internal/problem"
)

// problemsOf are those of a list, as "kind route reason: text".
func problemsOf(l *problem.List) string {
	all, _ := l.All("", 0)
	var lines []string
	for p := range all {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s %s: %s", p.Kind, p.Route, p.Reason, p.Text), "\n"))
	}
	return strings.Join(lines, "\n")
}

func annotated(key, value string) func(*routev1.Route) {
	return func(o *routev1.Route) { o.Annotations = map[string]string{key: value} }
}

// TestProblems: what is wrong with routes stands in one list, in the words of status, notes and log, as long as it is so.
func TestProblems(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	list := problem.NewList()
	r := newRig(t, Options{}, func(c *Config) { c.Log, c.Problems = zap.New(core), list })
	cert, key := keyPair(t, "c.test")
	r.do(aSlice("svc-1", "svc", "10.0.0.1"), aRoute("a", "a.test", 0), aRoute("b", "a.test", 1),
		aRoute("c", "c.test", 0, annotated("haproxy.router.openshift.io/timeout", "soon"), edge(cert, key)))
	leaf := r.store.Load().SNI("c.test").Certificate.Leaf
	r.now = leaf.NotAfter.Add(-time.Hour)
	r.c.state.warnExpiry(r.now)
	got := problemsOf(list)
	for _, want := range []string{
		"rejected ns/b HostAlreadyClaimed: route a already exposes a.test and is older",
		"note ns/c : " + r.c.Notes("ns", "c")[0],
		"certificate ns/c : certificate expires on " + leaf.NotAfter.UTC().Format(time.RFC3339),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("list:\n%s\nwant %s", got, want)
		}
	}
	if counts := list.Counts(); counts[problem.Rejected] != 1 || counts[problem.Certificate] != 1 {
		t.Errorf("counts %v", counts)
	}
	lines := logs.FilterMessage("route has a note").AllUntimed()
	if len(lines) == 0 || lines[0].ContextMap()["namespace"] != "ns" || !slices.ContainsFunc(lines, func(e observer.LoggedEntry) bool {
		return e.ContextMap()["route"] == "ns/c" && e.ContextMap()["message"] == r.c.Notes("ns", "c")[0]
	}) {
		t.Errorf("logged %v", lines)
	}
	r.do(gone(source.Route, "a"), gone(source.Route, "b"), gone(source.Route, "c"))
	if got := problemsOf(list); got != "" {
		t.Errorf("nothing is wrong, and the list has\n%s", got)
	}
}

// TestDefaultCertificateEnds: the end of the certificate that all other routes are served with is a problem too, until there is another one.
func TestDefaultCertificateEnds(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	list := problem.NewList()
	old, next := aPair(t), aPair(t)
	r := newRig(t, Options{}, func(c *Config) { c.Log, c.Problems, c.Routing.DefaultCertificate = zap.New(core), list, old })
	r.do(aRoute("a", "a.test", 0), aSlice("svc-1", "svc", "10.0.0.1"))
	r.now = old.Leaf.NotAfter.Add(time.Minute)
	r.c.state.warnExpiry(r.now)
	want := "default certificate expired on " + old.Leaf.NotAfter.UTC().Format(time.RFC3339)
	if got := problemsOf(list); !strings.Contains(got, "certificate  : "+want) {
		t.Errorf("list:\n%s\nwant %s", got, want)
	}
	lines := logs.FilterMessage("certificates of routes have expired or expire soon").All()
	if len(lines) != 1 || fmt.Sprint(lines[0].ContextMap()["routes"]) != "["+want+"]" {
		t.Errorf("logged %v", lines)
	}
	r.now = old.Leaf.NotBefore.Add(time.Minute)
	r.c.state.setDefaultCertificate(next)
	if got := list.Counts()[problem.Certificate]; got != 0 {
		t.Errorf("%d problems with another certificate", got)
	}
}

// aPair is a certificate with its key.
func aPair(t *testing.T) *tls.Certificate {
	t.Helper()
	cert, key := keyPair(t, "default.test")
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return &pair
}

// TestNotesAreLogged: a note is logged when it comes, not when it stays; tenants with many do not fill the log.
func TestNotesAreLogged(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	list := problem.NewList()
	r := newRig(t, Options{}, func(c *Config) { c.Log, c.Problems = zap.New(core), list })
	var events []source.Event
	for i := range 2 * notesAtOnce {
		name := fmt.Sprint("r", i)
		events = append(events, aRoute(name, name+".test", 0, annotated("haproxy.router.openshift.io/timeout", "soon")))
	}
	r.do(append(events, aSlice("svc-1", "svc", "10.0.0.1"))...)
	const line = "route has a note"
	if n := len(logs.FilterMessage(line).TakeAll()); n != notesAtOnce || list.Counts()[problem.Note] < 2*notesAtOnce {
		t.Errorf("%d lines, counts %v", n, list.Counts())
	}
	logs.TakeAll()
	r.do(aSlice("svc-1", "svc", "10.0.0.1", "10.0.0.2"))
	if n := len(logs.FilterMessage(line).TakeAll()); n != 0 {
		t.Errorf("%d lines about notes that stay", n)
	}
	r.now = r.now.Add(time.Second)
	r.do(aRoute("last", "last.test", 0, annotated("haproxy.router.openshift.io/timeout", "soon")))
	lines := logs.FilterMessage(line).TakeAll()
	if len(lines) == 0 || lines[0].ContextMap()["lines_left_out"] == nil {
		t.Errorf("after a second: %v", lines)
	}
}
