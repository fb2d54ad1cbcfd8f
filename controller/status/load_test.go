package status

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// TestFlood: 500 changes per second of one route for a minute are a write per second,
// and the last one counts.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 5 * time.Millisecond
		w := start(t, api)
		api.told = func(_, route *routev1.Route) { w.Observe(route.DeepCopy()) }
		route := api.put(aRoute("a"))
		for i := range 500 * 60 {
			w.Report(route, want(fmt.Sprint("h", i), yesNow()))
			pass(2 * time.Millisecond)
		}
		pass(2 * time.Second)
		if got := said(api.get("a"), "test1"); got != "h29999 True" {
			t.Errorf("%s", got)
		}
		if s := w.Stats(); s.Written < 50 || s.Written > 63 || s.Conflicts > 0 || s.Contended > 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestManyAtOnce: 10,000 first entries are written one by one at the rate that is
// configured, oldest first, and a route that changes often does not get ahead.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const routes = 10000
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
		if said(api.get("r0"), "test1") != "h9999 True" {
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
