package status

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNewWriterRefuses(t *testing.T) {
	for _, cfg := range []WriterConfig{
		{RouterName: "x"}, {API: newFakeAPI()}, {API: newFakeAPI(), RouterName: "x", Rate: -1}, {API: newFakeAPI(), RouterName: "x", Resync: -1},
	} {
		if w, err := NewWriter(cfg); err == nil || w != nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

// want is an entry as the controller reports it.
func want(host string, c routev1.RouteIngressCondition) *routev1.RouteIngress { return entry(host, c) }

// TestWrite is about what is written where something stands already.
func TestWrite(t *testing.T) {
	yes := admitted("True", "", "", atNow)
	no := admitted("False", "Failed", "generic error", atNow)
	other := func(name string, e *routev1.RouteIngress) *routev1.RouteIngress { e.RouterName = name; return e }
	for _, c := range []struct {
		id     string
		there  []*routev1.RouteIngress
		report *routev1.RouteIngress
		writes int
		want   string
	}{
		{"entry host/canonical equal, Admitted True; admit: none", []*routev1.RouteIngress{entry("h", admitted("True", "", "", earlier))}, want("h", yes), 0, "h True"},
		{"entry with other host, Admitted True; admit: host reset, time = now", []*routev1.RouteIngress{entry("other", admitted("True", "", "", earlier))}, want("h", yes), 1, "h True"},
		{"none; reject Failed/generic error: entry created, False", nil, want("h", no), 1, "h False Failed generic error"},
		{"identical rejection present; same rejection: none", []*routev1.RouteIngress{entry("h", admitted("False", "Failed", "generic error", earlier))}, want("h", no), 0, "h False Failed generic error"},
		{"other host, Admitted False without reason; reject: updated", []*routev1.RouteIngress{entry("other", admitted("False", "", "", earlier))}, want("h", no), 1, "h False Failed generic error"},
		{"entries of routers test1, test2; router test2 admits; : only test2's entry changes", []*routev1.RouteIngress{other("test2", entry("old", yes)), entry("old", yes)}, want("h", yes), 1, "h True"},
		{"entry without conditions; condition: condition appended, not \"created\"", []*routev1.RouteIngress{entry("h")}, want("h", yes), 1, "h True"},
		{"only another router's entry; condition: second entry appended", []*routev1.RouteIngress{other("test2", entry("old", yes))}, want("h", yes), 1, "h True"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			w := start(t, api)
			route := api.put(aRoute("a", c.there...))
			w.Report(route, c.report)
			pass(time.Second)
			got := api.get("a")
			if n := api.count("write"); n != c.writes || said(got, "test1") != c.want {
				t.Errorf("%s: %d writes, want %d; entry %q, want %q", c.id, n, c.writes, said(got, "test1"), c.want)
			}
			if c.writes == 0 {
				if diff := cmp.Diff(route.Status, got.Status); diff != "" {
					t.Errorf("%s: changed:\n%s", c.id, diff)
				}
			}
			if mine := len(got.Status.Ingress); len(c.there) > 0 && c.there[0].RouterName == "test2" && (mine != 2 || said(got, "test2") != "old True") {
				t.Errorf("%s: the entry of another router was touched: %+v", c.id, got.Status.Ingress)
			}
			if s := w.Stats(); int(s.Written) != c.writes || s.Pending != 0 || s.Leader != (c.writes > 0) {
				t.Errorf("%s: %+v", c.id, s)
			}
			w.Report(got, c.report)
			w.Observe(got)
			pass(time.Second)
			if n := api.count("write"); n != c.writes {
				t.Errorf("%s: written again without need", c.id)
			}
		})
	}
}

// TestTimes: a condition keeps its time while it says the same, and has a new one when
// it was not there.
func TestTimes(t *testing.T) {
	later := metav1.NewTime(now.Add(time.Hour))
	at := metav1.NewTime(later.UTC().Truncate(time.Second))
	for _, c := range []struct {
		id   string
		live *routev1.RouteIngress
		want *routev1.RouteIngress
		time metav1.Time
	}{
		{"only the host differs", entry("old", admitted("True", "", "", earlier)), want("h", admitted("True", "", "", atNow)), earlier},
		{"reason differs", entry("h", admitted("False", "A", "", earlier)), want("h", admitted("True", "", "", atNow)), atNow},
		{"no entry", nil, want("h", admitted("True", "", "", earlier)), at},
		{"no condition", entry("h"), want("h", admitted("True", "", "", earlier)), at},
	} {
		got := rules{}.merged(c.live, c.want, later.Time)
		if !got.Conditions[0].LastTransitionTime.Equal(&c.time) {
			t.Errorf("%s: %v, want %v", c.id, got.Conditions[0].LastTransitionTime, c.time)
		}
	}
}

// TestMerged: conditions of others stay, doubles go, and whether the condition about
// later versions is ours depends.
func TestMerged(t *testing.T) {
	yes, no := admitted("True", "", "", earlier), admitted("False", "R", "", earlier)
	future := routev1.RouteIngressCondition{Type: unservable, Status: "True", Reason: "X", LastTransitionTime: &earlier}
	foreign := routev1.RouteIngressCondition{Type: "Foreign", Status: "True", LastTransitionTime: &earlier}
	for _, c := range []struct {
		id         string
		rules      rules
		live, want *routev1.RouteIngress
		merged     *routev1.RouteIngress // nil = they agree
	}{
		{"foreign stays", rules{}, entry("h", foreign, no), entry("h", yes), entry("h", foreign, yes)},
		{"foreign does not count", rules{}, entry("h", foreign, yes), entry("h", yes), nil},
		{"condition none, clear: none", rules{}, entry("h", yes), entry("h", yes), nil},
		{"condition set, clear: removed, others kept", rules{}, entry("h", future, yes), entry("h", yes), entry("h", yes)},
		{"condition set with wrong reason, set: replaced", rules{}, entry("h", yes, routev1.RouteIngressCondition{Type: unservable, Status: "True", Reason: "wrong"}), entry("h", yes, future), entry("h", yes, future)},
		{"condition duplicates of the condition, clear: all removed", rules{}, entry("h", future, yes, future), entry("h", yes), entry("h", yes)},
		{"rejected: left", rules{}, entry("h", future, no), entry("h", no), nil},
		{"not ours: left", rules{keepUnservable: true}, entry("h", future, yes), entry("h", yes), nil},
		{"doubles", rules{}, entry("h", yes, yes), entry("h", yes), entry("h", yes)},
	} {
		if c.merged == nil {
			if !c.rules.agrees(c.live, c.want) {
				t.Errorf("%s: they do not agree", c.id)
			}
			continue
		}
		if c.rules.agrees(c.live, c.want) {
			t.Errorf("%s: they agree", c.id)
		}
		got := c.rules.merged(c.live, c.want, earlier.Time)
		if diff := cmp.Diff(c.merged, got); diff != "" || !c.rules.agrees(got, c.want) {
			t.Errorf("%s: (-want +got):\n%s", c.id, diff)
		}
	}
}

// TestConflict: the write is refused, then made of the newer object.
func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		w := start(t, api)
		old := api.put(aRoute("a"))
		fresh := api.change("a", func(r *routev1.Route) { r.Labels = map[string]string{"x": "y"} })
		w.Report(old, want("h", yesNow()))
		pass(0)
		if n, s := api.count("write"), w.Stats(); n != 1 || s.Conflicts != 1 || s.Pending != 1 || s.Leader {
			t.Fatalf("%d writes, %+v", n, s)
		}
		pass(2 * time.Second)
		if n := api.count("write"); n != 1 {
			t.Fatalf("tried again although nothing new is known: %d writes", n)
		}
		w.Observe(fresh)
		pass(100 * time.Millisecond)
		if s := w.Stats(); s.Written != 1 || s.Pending != 0 || !s.Leader || said(api.get("a"), "test1") != "h True" {
			t.Errorf("not written after the newer object was seen: %+v, %s", s, said(api.get("a"), "test1"))
		}
	})
}

// TestConflictBlind: the source does not tell of the newer object. It is written to
// unless it is not known any more what should be.
func TestConflictBlind(t *testing.T) {
	for _, c := range []struct {
		id     string
		change func(*routev1.Route)
		want   string
	}{
		{"label", func(r *routev1.Route) { r.Labels = map[string]string{"x": "y"} }, "h True"},
		{"spec", func(r *routev1.Route) { r.Spec.Host = "other" }, "none"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			w := start(t, api)
			old := api.put(aRoute("a"))
			fresh := api.change("a", c.change)
			w.Report(old, want("h", yesNow()))
			pass(retryAfter + time.Second)
			if n, got := api.count("write"), said(api.get("a"), "test1"); got != c.want || n > 2 {
				t.Errorf("%s: %s after %d writes", c.id, got, n)
			}
			pass(10 * time.Minute)
			w.Report(fresh, want("new", yesNow()))
			pass(retryAfter + 100*time.Millisecond)
			if got := said(api.get("a"), "test1"); got != "new True" || api.count("write") > 3 {
				t.Errorf("%s: notified of the newer object: %s", c.id, got)
			}
		})
	}
}

// TestHotRoute: somebody else writes the route again and again.
func TestHotRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 4 * time.Millisecond
		writers := someWriters(t, api, 2)
		replicas(t, api, 80*time.Millisecond, writers, asHost)
		r := aRoute("a")
		r.Spec.Host = "h"
		api.put(r)
		for i := range 400 {
			api.change("a", func(r *routev1.Route) { r.Annotations = map[string]string{"n": strconv.Itoa(i)} })
			pass(25 * time.Millisecond)
		}
		route := api.get("a")
		if s := total(writers); said(route, "test1") != "h True" || route.Annotations["n"] != "399" || s.Written != 1 || s.Conflicts > 8 {
			t.Errorf("%s, annotations %v, %+v", said(route, "test1"), route.Annotations, s)
		}
	})
}

func yesNow() routev1.RouteIngressCondition { return admitted("True", "", "", atNow) }

// TestDropped: nothing is asked again of a route that is gone or another one.
func TestDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		w := start(t, api)
		gone := api.put(aRoute("a"))
		api.remove("a")
		w.Report(gone, want("h", yesNow()))
		pass(time.Minute)
		if n, s := api.count("write"), w.Stats(); n != 1 || s.Pending != 0 || w.records() != 0 {
			t.Errorf("gone: %d writes, %+v", n, s)
		}
		before := api.put(aRoute("b"))
		again := api.change("b", func(r *routev1.Route) { r.UID = "again" })
		w.Report(before, want("h", yesNow()))
		pass(time.Minute)
		if s := w.Stats(); said(api.get("b"), "test1") != "none" || s.Pending != 0 || w.records() != 0 {
			t.Errorf("made again: %s, %+v", said(api.get("b"), "test1"), s)
		}
		w.Report(again, want("h", yesNow()))
		pass(time.Minute)
		if s := w.Stats(); said(api.get("b"), "test1") != "h True" || s.Pending != 0 || w.records() != 1 {
			t.Errorf("made again, reported: %s, %+v", said(api.get("b"), "test1"), s)
		}
	})
}

// TestRefused: one attempt now, the next ones later and later; other routes do
// not wait for it.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.failing(func(_, name string) error {
			if name == "bad" {
				return apierrors.NewForbidden(routev1.Resource("routes"), name, errors.New("no"))
			}
			return nil
		})
		w := start(t, api)
		w.Report(api.put(aRoute("bad")), want("h", yesNow()))
		w.Report(api.put(aRoute("good")), want("h", yesNow()))
		pass(time.Second)
		if n, s := api.count("write"), w.Stats(); n != 2 || s.Failed != 1 || s.Written != 1 || s.Pending != 1 {
			t.Errorf("%d writes, %+v", n, s)
		}
		pass(10 * time.Minute)
		if n := api.count("write"); n > 20 {
			t.Errorf("%d writes in 10 minutes", n)
		}
		api.failing(nil)
		pass(2 * time.Minute)
		if said(api.get("bad"), "test1") != "h True" {
			t.Errorf("not written when it was allowed")
		}
	})
}

// TestOneEntry: once a status says what it should, the entry is held once; and it is written again when it no longer does.
func TestOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		w := start(t, api)
		mine := want("mine", yesNow())
		w.Report(api.put(aRoute("a")), mine)
		pass(2 * time.Second)
		w.Observe(api.get("a"))
		w.mu.Lock()
		for r := range w.routes.All() {
			if live := w.entryOf(r); live == nil || r.want != live || r.settled != live || r.seen != live {
				t.Errorf("%p is there, %p wanted, %p settled, %p seen", live, r.want, r.settled, r.seen)
			}
		}
		w.mu.Unlock()
		w.Observe(api.change("a", func(r *routev1.Route) { r.Status.Ingress[0].Host = "x" }))
		pass(2 * time.Second)
		if got := api.get("a").Status.Ingress[0].Host; got != "mine" || api.count("write") != 2 {
			t.Errorf("%s after %d writes", got, api.count("write"))
		}
	})
}

// TestSame is about entries that may stand for each other.
func TestSame(t *testing.T) {
	no := admitted("False", "R", "m", earlier)
	extra := routev1.RouteIngressCondition{Type: unservable, Status: "True"}
	for name, c := range map[string]struct {
		a, b *routev1.RouteIngress
		same bool
	}{
		"nothing":             {nil, nil, true},
		"one":                 {entry("h", no), nil, false},
		"another time":        {entry("h", no), entry("h", admitted("False", "R", "m", atNow)), true},
		"other words":         {entry("h", no), entry("h", admitted("False", "R", "n", earlier)), false},
		"one condition more":  {entry("h", no), entry("h", no, extra), false},
		"another host":        {entry("h", no), entry("i", no), false},
		"in another sequence": {entry("h", no, extra), entry("h", extra, no), false},
	} {
		if Same(c.a, c.b) != c.same || Same(c.b, c.a) != c.same {
			t.Errorf("%s: %v", name, !c.same)
		}
	}
}
