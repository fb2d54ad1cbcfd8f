package status

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// TestOutage: the API is away for five minutes while things go on changing.
func TestOutage(t *testing.T) {
	for name, err := range map[string]error{
		"no connection": errors.New("connection refused"),
		"503":           apierrors.NewServiceUnavailable("etcd is away"),
		"500":           apierrors.NewInternalError(errors.New("etcd is away")),
		"time out":      context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { outageOf(t, err) }) })
	}
}

func outageOf(t *testing.T, failure error) {
	log, lines := observer.New(zap.InfoLevel)
	api := newFakeAPI()
	w := start(t, api, func(cfg *WriterConfig) { cfg.Log = zap.New(log) })
	const routes = 100
	objects := make([]*routev1.Route, routes)
	for i := range objects {
		objects[i] = api.put(aRoute(fmt.Sprint("r", i)))
	}
	w.Report(objects[0], want("h0", yesNow()))
	pass(time.Second)
	api.failing(func(string, string) error { return failure })
	for i := range 5 * 60 {
		for n, o := range objects[1:] {
			w.Report(o, want(fmt.Sprintf("h%d.%d", n+1, i), yesNow()))
		}
		pass(time.Second)
	}
	if n, s := api.count("write"), w.Stats(); n > 25 || s.Pending != routes-1 {
		t.Errorf("%d calls in the outage, %+v", n-1, s)
	}
	if n := lines.Len(); n != 1 {
		t.Errorf("%d lines in the outage: %v", n, lines.All())
	}
	api.failing(nil)
	pass(70 * time.Second)
	for i := 1; i < routes; i++ {
		if got, want := said(api.get(fmt.Sprint("r", i)), "test1"), fmt.Sprintf("h%d.299 True", i); got != want {
			t.Fatalf("route %d: %s, want %s", i, got, want)
		}
	}
	if s := w.Stats(); s.Written != routes || s.Pending != 0 || lines.Len() != 2 {
		t.Errorf("after the outage: %+v, %d lines", s, lines.Len())
	}
}

// TestFlood: 500 changes per second of one route are a write per second,
// and the last one counts.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 5 * time.Millisecond
		w := start(t, api)
		api.changed = func(_, route *routev1.Route) { w.Observe(route.DeepCopy()) }
		route := api.put(aRoute("a"))
		for i := range 500 * 20 {
			w.Report(route, want(fmt.Sprint("h", i), yesNow()))
			pass(2 * time.Millisecond)
		}
		pass(2 * time.Second)
		if got := said(api.get("a"), "test1"); got != "h9999 True" {
			t.Errorf("%s", got)
		}
		if s := w.Stats(); s.Written < 15 || s.Written > 23 || s.Conflicts > 0 || s.Contended > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestManyAtOnce: thousands of first entries are written one by one at the rate that is
// configured, oldest first, and a route that changes often does not get ahead.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const routes = 4000
		api := newFakeAPI()
		api.delay = 2 * time.Millisecond
		w := start(t, api)
		for i := range routes {
			w.Report(api.put(aRoute(fmt.Sprint("r", i))), want("h", yesNow()))
			w.Report(api.get("r0"), want(fmt.Sprint("h", i), yesNow()))
		}
		begun := time.Now()
		pass(time.Second)
		if n := api.count("write"); n < 150 || n > 205 {
			t.Errorf("%d writes in the first second", n)
		}
		pass(routes/defaultRate*time.Second - time.Second)
		if s := w.Stats(); s.Written < routes || s.Pending != 0 || s.Conflicts != 0 {
			t.Fatalf("after %v: %+v", time.Since(begun), s)
		}
		for i, name := range api.writes[:routes] {
			if name != fmt.Sprint("r", i) {
				t.Fatalf("write %d is of %s", i, name)
			}
		}
		if said(api.get("r0"), "test1") != "h3999 True" {
			t.Errorf("r0: %s", said(api.get("r0"), "test1"))
		}
	})
}

// TestEnd: the write in flight is finished, what else is queued is not begun.
func TestEnd(t *testing.T) {
	for _, c := range []struct {
		delay, within time.Duration
		want          string
	}{
		{time.Second, time.Second, "h True"},
		{time.Hour, endTimeout, "none"},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := newFakeAPI()
			api.delay = c.delay
			w, err := NewWriter(WriterConfig{API: api, RouterName: "test1"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			for i := range 10 {
				w.Report(api.put(aRoute(fmt.Sprint("r", i))), want("h", yesNow()))
			}
			pass(0)
			begun := time.Now()
			cancel()
			if err := <-ended; err != nil || time.Since(begun) > c.within {
				t.Errorf("ended after %v: %v", time.Since(begun), err)
			}
			if n := api.count("write"); n != 1 || said(api.get("r0"), "test1") != c.want {
				t.Errorf("%d writes, %s, want %s", n, said(api.get("r0"), "test1"), c.want)
			}
		})
	}
}

// TestSoak: three replicas, an API that fails every third call in some way, routes that
// come, change, leave and go. In the end everything is as it should be.
func TestSoak(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) { soak(t, rand.New(rand.NewPCG(seed, 3))) })
	}
}

func soak(t *testing.T, chance *rand.Rand) {
	api := newFakeAPI()
	api.delay = 3 * time.Millisecond
	writers := someWriters(t, api, 3)
	selected := func(route *routev1.Route) *routev1.RouteIngress {
		if route.Labels["out"] != "" {
			return nil
		}
		return inBubble(route.Spec.Host, 0)
	}
	replicas(t, api, 30*time.Millisecond, writers, selected)
	var mu sync.Mutex
	faults := rand.New(rand.NewPCG(chance.Uint64(), 4))
	api.failing(func(_, name string) error {
		mu.Lock()
		defer mu.Unlock()
		switch faults.IntN(12) {
		case 0:
			return errors.New("connection reset by peer")
		case 1:
			return apierrors.NewInternalError(errors.New("etcd leader changed"))
		case 2:
			return apierrors.NewTooManyRequests("slowly", 1)
		case 3:
			return apierrors.NewConflict(routev1.Resource("routes"), name, errors.New("somebody was first"))
		}
		return nil
	})
	const routes = 60
	for i := range 3000 {
		name := fmt.Sprint("r", chance.IntN(routes))
		switch live := api.get(name); {
		case live == nil:
			r := aRoute(name)
			r.UID = types.UID(fmt.Sprint(name, "-", i))
			r.Spec.Host = "first"
			api.put(r)
		case chance.IntN(20) == 0:
			api.remove(name)
			api.changed(live, func() *routev1.Route { live.Labels = map[string]string{"out": "deleted"}; return live }())
		default:
			api.change(name, func(r *routev1.Route) {
				r.Spec.Host, r.Labels = fmt.Sprint("h", i), nil
				if chance.IntN(8) == 0 {
					r.Labels = map[string]string{"out": "x"}
				}
			})
		}
		pass(time.Duration(chance.IntN(400)) * time.Millisecond)
	}
	api.failing(nil)
	pass(15 * time.Minute)
	for i := range routes {
		route := api.get(fmt.Sprint("r", i))
		if route == nil {
			continue
		}
		want := route.Spec.Host + " True"
		if route.Labels["out"] != "" {
			want = "none"
		}
		if got := said(route, "test1"); got != want {
			t.Errorf("route %d: %s, want %s", i, got, want)
		}
	}
	if s := total(writers); s.Pending != 0 || s.Contended > 0 || s.Written > 4000 {
		t.Errorf("%+v", s)
	}
	for _, w := range writers {
		if n := w.records(); n > routes {
			t.Errorf("%d records of %d routes", n, routes)
		}
	}
}
