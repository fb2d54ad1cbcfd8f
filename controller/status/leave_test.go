package status

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inBubble is an entry whose condition has changed at a time that lies d from now.
func inBubble(host string, d time.Duration) *routev1.RouteIngress {
	return entry(host, admitted("True", "", "", metav1.NewTime(time.Now().Add(d).Truncate(time.Second))))
}

func named(router string, e *routev1.RouteIngress) *routev1.RouteIngress {
	e.RouterName = router
	return e
}

// TestWithdraw: the entry of a route that is not selected any more goes, and nothing
// else does.
func TestWithdraw(t *testing.T) {
	for _, c := range []struct {
		id     string
		keep   bool
		change func(api *fakeAPI, w *Writer) // after the report, before the withdrawal
		want   string
		gets   int
		writes int
	}{
		{"left", false, nil, "none", 1, 1},
		{"stale entries are kept", true, nil, "h True", 0, 0},
		{"deleted", false, func(api *fakeAPI, _ *Writer) { api.remove("a") }, "", 1, 0},
		{"made again", false, func(api *fakeAPI, _ *Writer) { api.change("a", func(r *routev1.Route) { r.UID = "again" }) }, "h True", 1, 0},
		{"changed since", false, func(api *fakeAPI, _ *Writer) {
			api.change("a", func(r *routev1.Route) { r.Labels = map[string]string{"x": "y"} })
		}, "none", 1, 1},
		{"removed already", false, func(api *fakeAPI, _ *Writer) {
			api.change("a", func(r *routev1.Route) { r.Status.Ingress = r.Status.Ingress[:1] })
		}, "none", 1, 0},
		{"another has it now", false, func(api *fakeAPI, _ *Writer) {
			api.change("a", func(r *routev1.Route) { r.Status.Ingress[1] = *inBubble("h", 5*time.Second) })
		}, "h True", 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			w := start(t, api, func(cfg *WriterConfig) { cfg.KeepStale = c.keep })
			route := api.put(aRoute("a", named("test2", inBubble("two", 0)), inBubble("h", 0)))
			w.Report(route, inBubble("h", 0))
			pass(time.Second)
			if c.change != nil {
				c.change(api, w)
			}
			w.Withdraw(route)
			pass(time.Second)
			live := api.get("a")
			if live != nil && (said(live, "test1") != c.want || said(live, "test2") != "two True") || (live == nil) != (c.want == "") {
				t.Errorf("%s: status %+v", c.id, live.Status)
			}
			if gets, writes := api.count("get"), api.count("write"); gets != c.gets || writes != c.writes {
				t.Errorf("%s: %d gets, %d writes", c.id, gets, writes)
			}
			if s := w.Stats(); s.Pending != 0 || w.records() != 0 || int(s.Removed) != c.writes {
				t.Errorf("%s: %+v, %d records", c.id, s, w.records())
			}
			w.Withdraw(route)
			pass(time.Second)
			if w.records() != 0 || api.count("get") != c.gets {
				t.Errorf("%s: something was done for a route that nobody reported", c.id)
			}
		})
	}
}

// TestWithdrawWhileWriting: what is in flight does not stay.
func TestWithdrawWhileWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = time.Second
		w := start(t, api)
		route := api.put(aRoute("a"))
		w.Report(route, inBubble("h", 0))
		pass(500 * time.Millisecond)
		w.Withdraw(route)
		pass(5 * time.Second)
		if said(api.get("a"), "test1") != "none" || w.records() != 0 {
			t.Errorf("%s, %d records", said(api.get("a"), "test1"), w.records())
		}
		// And the other way round.
		route = api.put(aRoute("b", inBubble("h", -time.Minute)))
		w.Report(route, inBubble("h", -time.Minute))
		pass(time.Second)
		w.Withdraw(route)
		pass(1500 * time.Millisecond)
		w.Report(route, inBubble("h", -time.Minute))
		pass(10 * time.Second)
		if said(api.get("b"), "test1") != "h True" || w.Stats().Pending != 0 {
			t.Errorf("came back: %s, %+v", said(api.get("b"), "test1"), w.Stats())
		}
		// It is seen again, but there is nothing to say of it yet.
		for _, wait := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond} {
			w.Withdraw(api.get("b"))
			pass(wait)
			w.Observe(api.get("b"))
			pass(10 * time.Second)
			if w.records() != 1 || w.Stats().Pending != 0 {
				t.Errorf("seen again after %v: %d records, %+v", wait, w.records(), w.Stats())
			}
			w.Report(api.get("b"), inBubble("h", 0))
			pass(10 * time.Second)
		}
	})
}

// TestWithdrawReplicas: each replica tells that routes have left; another router of the
// same name, which has them now because it was named so by mistake, keeps its entries.
func TestWithdrawReplicas(t *testing.T) {
	shard := func(name string) func(*routev1.Route) *routev1.RouteIngress {
		return func(route *routev1.Route) *routev1.RouteIngress {
			if route.Labels["shard"] != name {
				return nil
			}
			return inBubble(route.Spec.Host, 0)
		}
	}
	for _, both := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.delay = 3 * time.Millisecond
			writers := someWriters(t, api, 4)
			other := shard("none")
			if both {
				other = shard("q")
			}
			replicas(t, api, 20*time.Millisecond, writers, shard("p"), shard("p"), other, other)
			const routes = 50
			for i := range routes {
				r := aRoute(fmt.Sprint("r", i))
				r.Spec.Host, r.Labels = "h", map[string]string{"shard": "p"}
				api.put(r)
			}
			pass(3 * time.Minute)
			for i := range routes {
				api.change(fmt.Sprint("r", i), func(r *routev1.Route) { r.Labels = map[string]string{"shard": "q"} })
			}
			pass(time.Hour)
			want := "none"
			if both {
				want = "h True"
			}
			wrong := 0
			for i := range routes {
				if said(api.get(fmt.Sprint("r", i)), "test1") != want {
					wrong++
				}
			}
			s := total(writers)
			if wrong > 0 || int(s.Removed) > routes+5 || int(s.Written) > 2*routes+5 || s.Pending != 0 {
				t.Errorf("two routers %v: %d entries are wrong, %+v", both, wrong, s)
			}
		})
	}
}

// TestSweep: entries on routes that are not selected are found after the start.
func TestSweep(t *testing.T) {
	for _, back := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			log, lines := observer.New(zap.InfoLevel)
			api := newFakeAPI()
			synced := make(chan struct{})
			w := start(t, api, func(cfg *WriterConfig) { cfg.Sweep, cfg.Log = synced, zap.New(log) })
			w.Observe(api.put(aRoute("unreported", inBubble("u", -time.Hour)))) // its secret is not there yet
			mine := api.put(aRoute("m", inBubble("m", -time.Hour)))
			w.Report(mine, inBubble("m", -time.Hour))
			api.put(aRoute("others", named("test2", inBubble("o", -time.Hour))))
			api.put(aRoute("new", inBubble("n", 2*time.Hour)))
			api.put(aRoute("none"))
			for i := range 5 {
				api.put(aRoute(fmt.Sprint("stale", i), inBubble("s", -time.Hour)))
			}
			if back {
				api.changed = func(_, route *routev1.Route) {
					if len(route.Status.Ingress) == 0 && route.Name != "none" {
						api.change(route.Name, func(r *routev1.Route) { r.Status.Ingress = append(r.Status.Ingress, *inBubble("s", 0)) })
					}
				}
			}
			pass(time.Hour)
			if n := api.count("list"); n != 0 {
				t.Errorf("%d lists before everything is known", n)
			}
			failures := 2
			api.failing(func(call, _ string) error {
				if failures--; call == "list" && failures >= 0 {
					return apierrors.NewInternalError(errors.New("not now"))
				}
				return nil
			})
			close(synced)
			pass(time.Minute)
			if removed := w.Stats().Removed; removed != 1 {
				t.Errorf("%d entries removed before there is proof that nobody puts them back", removed)
			}
			pass(5 * time.Minute)
			want, removed, log2 := "none", uint64(5), 0
			if back {
				want, removed, log2 = "s True", 1, 1
			}
			for i := range 5 {
				if got := said(api.get(fmt.Sprint("stale", i)), "test1"); got != want {
					t.Errorf("back %v: stale%d: %s, want %s", back, i, got, want)
				}
			}
			if n := w.Stats().Removed; n != removed || said(api.get("m"), "test1") != "m True" || said(api.get("unreported"), "test1") != "u True" || said(api.get("others"), "test2") != "o True" || said(api.get("new"), "test1") != "n True" {
				t.Errorf("back %v: removed %d, want %d", back, n, removed)
			}
			if n := lines.FilterField(zap.String("router", "test1")).Len(); n != log2 {
				t.Errorf("back %v: %d lines: %v", back, n, lines.All())
			}
			pass(48 * time.Hour)
			if n := w.Stats().Removed; back && n > sweepTries || !back && n != 5 {
				t.Errorf("back %v: %d removed in two days", back, n)
			}
		})
	}
}
