package status

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/types"
)

// replica is a writer with what stands before it: a source that tells of changes some
// time after they were made, in order, and a controller with an opinion.
type replica struct {
	w       *Writer
	opinion func(*routev1.Route) *routev1.RouteIngress // nil = the route is not selected
	last    map[types.NamespacedName]*routev1.RouteIngress
	events  chan event
}

type event struct {
	old, route *routev1.Route
	at         time.Time // not before
}

// replicas runs writers with a feed of the API's changes each.
func replicas(t *testing.T, api *fakeAPI, lag time.Duration, writers []*Writer, opinions ...func(*routev1.Route) *routev1.RouteIngress) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	all := make([]*replica, len(writers))
	for i, w := range writers {
		all[i] = &replica{
			w: w, opinion: opinions[i%len(opinions)], last: make(map[types.NamespacedName]*routev1.RouteIngress),
			events: make(chan event, 1<<16),
		}
		running.Go(func() { all[i].run(ctx) })
	}
	chance := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	api.changed = func(old, route *routev1.Route) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range all {
			r.events <- event{old, route, time.Now().Add(lag/2 + time.Duration(chance.Int64N(int64(lag))))}
		}
	}
}

func (r *replica) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.events:
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(e.at)):
			}
			r.handle(e)
		}
	}
}

func (r *replica) handle(e event) {
	key := keyOf(e.route)
	opinion := r.opinion(e.route)
	last := r.last[key]
	switch {
	case opinion == nil:
		delete(r.last, key)
		if last != nil {
			r.w.Withdraw(e.route)
		}
		return
	case last == nil || !reflect.DeepEqual(last, opinion):
		r.last[key] = opinion
		r.w.Report(e.route, opinion)
	}
	r.w.Observe(e.route)
}

// asHost admits every route with its host.
func asHost(route *routev1.Route) *routev1.RouteIngress {
	return want(route.Spec.Host, yesNow())
}

func someWriters(t *testing.T, api API, n int, change ...func(*WriterConfig)) []*Writer {
	t.Helper()
	out := make([]*Writer, n)
	for i := range out {
		out[i] = start(t, api, change...)
		out[i].lease.chance = rand.New(rand.NewPCG(uint64(i), 7)).Float64
	}
	return out
}

func total(writers []*Writer) (s Stats) {
	for _, w := range writers {
		one := w.Stats()
		s.Written += one.Written
		s.Removed += one.Removed
		s.Conflicts += one.Conflicts
		s.Contended += one.Contended
		s.Failed += one.Failed
		s.Pending += one.Pending
	}
	return s
}

// TestReplicas: several processes of one router write each change about once, nobody
// fights, and one takes over when the leader is gone.
func TestReplicas(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.delay = 4 * time.Millisecond
				writers := someWriters(t, api, n)
				replicas(t, api, 20*time.Millisecond, writers, asHost)
				const routes = 300
				for i := range routes {
					r := aRoute(fmt.Sprint("r", i))
					r.Spec.Host = "first.test"
					api.put(r)
				}
				pass(2 * time.Minute)
				changes := routes
				for round := range 20 {
					for i := range 10 {
						api.change(fmt.Sprint("r", (round*7+i*11)%routes), func(r *routev1.Route) { r.Spec.Host = fmt.Sprintf("h%d.test", round) })
						changes++
					}
					pass(10 * time.Second)
				}
				pass(2 * time.Minute)
				s := total(writers)
				for i := range routes {
					route := api.get(fmt.Sprint("r", i))
					if got := said(route, "test1"); got != route.Spec.Host+" True" {
						t.Errorf("route %d: %s, want %s", i, got, route.Spec.Host)
					}
				}
				t.Logf("%d replicas, %d changes: %+v", n, changes, s)
				if int(s.Written) < changes || int(s.Written) > changes+changes/20 || int(s.Conflicts) > 30*n || s.Contended > 0 || s.Pending > 0 {
					t.Errorf("%d changes: %+v", changes, s)
				}
			})
		})
	}
}

// TestTwoOpinions: two routers with one name that see things differently stop writing
// soon and say why.
func TestTwoOpinions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := observer.New(zap.InfoLevel)
		api := newFakeAPI()
		api.delay = 4 * time.Millisecond
		writers := someWriters(t, api, 2, func(cfg *WriterConfig) { cfg.Log = zap.New(log) })
		replicas(t, api, 20*time.Millisecond, writers, asHost, func(*routev1.Route) *routev1.RouteIngress {
			return want("other.test", yesNow())
		})
		const routes = 100
		for i := range routes {
			r := aRoute(fmt.Sprint("r", i))
			r.Spec.Host = "one.test"
			api.put(r)
		}
		pass(time.Minute)
		first := total(writers).Written
		pass(time.Hour)
		hour := total(writers).Written - first
		pass(23 * time.Hour)
		day := total(writers).Written - first
		t.Logf("%d writes in the first minute, %d more in an hour, %d in a day", first, hour, day)
		if first > 3*routes || hour > 30 || day > 600 {
			t.Errorf("%d writes in the first minute, %d more in an hour, %d in a day", first, hour, day)
		}
		if logged := lines.FilterField(zap.String("router", "test1")).Len(); logged == 0 {
			t.Error("nothing is said of it")
		}
	})
}

// TestLeaderGone: when the leader cannot write any more, one of the others goes on within
// seconds.
func TestLeaderGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.delay = 4 * time.Millisecond
		hosts := make([]*mortal, 4)
		writers := make([]*Writer, len(hosts))
		for i := range hosts {
			hosts[i] = &mortal{fakeAPI: api}
			writers[i] = start(t, hosts[i])
			writers[i].lease.chance = rand.New(rand.NewPCG(uint64(i), 7)).Float64
		}
		replicas(t, api, 20*time.Millisecond, writers, asHost)
		put := func(name string) {
			r := aRoute(name)
			r.Spec.Host = "h"
			api.put(r)
		}
		for i := range 100 {
			put(fmt.Sprint("r", i))
			pass(time.Second)
		}
		for alive := len(hosts); alive > 1; alive-- {
			for i, w := range writers {
				if w.Stats().Leader && !hosts[i].dead.Load() {
					hosts[i].dead.Store(true)
				}
			}
			put(fmt.Sprint("after", alive))
			pass(leaseFor + time.Second)
			if got := said(api.get(fmt.Sprint("after", alive)), "test1"); got != "h True" {
				t.Errorf("%d alive: %s", alive, got)
			}
		}
	})
}

// mortal is an API that one replica stops to reach.
type mortal struct {
	*fakeAPI
	dead atomic.Bool
}

func (m *mortal) WriteStatus(ctx context.Context, route *routev1.Route) (*routev1.Route, error) {
	if m.dead.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.fakeAPI.WriteStatus(ctx, route)
}
