package status

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// other is a model of an OpenShift router's status writer: one job at a time, made of
// the object its informer has, the time of a condition new with each write, any change
// of its entry by others counted, and all routes looked at again at a resync.
type other struct {
	api     *fakeAPI
	opinion func(*routev1.Route) *routev1.RouteIngress
	events  chan event

	cache   map[types.NamespacedName]*routev1.Route
	queue   map[types.NamespacedName]time.Time
	order   []types.NamespacedName
	lease   lease
	tracker contention
	written int
}

// others runs models with a feed of the API's changes each, after those that are there.
func others(t *testing.T, api *fakeAPI, n int, opinion func(*routev1.Route) *routev1.RouteIngress) []*other {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	all := make([]*other, n)
	for i := range all {
		all[i] = &other{
			api: api, opinion: opinion, events: make(chan event, 1<<16),
			cache: make(map[types.NamespacedName]*routev1.Route), queue: make(map[types.NamespacedName]time.Time),
			lease:   lease{chance: rand.New(rand.NewPCG(uint64(i), 9)).Float64},
			tracker: newContention(3 * time.Minute),
		}
		running.Go(func() { all[i].run(ctx) })
	}
	before := api.changed
	api.changed = func(old, route *routev1.Route) {
		before(old, route)
		for _, o := range all {
			o.events <- event{old, route, time.Time{}}
		}
	}
	return all
}

func (o *other) run(ctx context.Context) {
	resync, flush := time.NewTicker(30*time.Minute), time.NewTicker(6*time.Minute)
	defer resync.Stop()
	defer flush.Stop()
	for {
		wait := o.work(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case e := <-o.events:
			o.handle(e)
		case <-resync.C:
			for _, route := range o.cache {
				o.try(keyOf(route))
			}
		case <-flush.C:
			o.tracker.flush(time.Now())
		}
	}
}

func (o *other) find(route *routev1.Route) *routev1.RouteIngress {
	return Find(Options{RouterName: "test1"}, route.Status.Ingress)
}

func (o *other) handle(e event) {
	o.cache[keyOf(e.route)] = e.route
	if e.old != nil {
		if a, b := o.find(e.old), o.find(e.route); a != nil && b != nil && !sameOpinion(a, b) {
			o.tracker.changed(e.route.Namespace, e.route.UID, b, time.Now())
		}
	}
	o.try(keyOf(e.route))
}

func (o *other) try(key types.NamespacedName) {
	if _, queued := o.queue[key]; !queued {
		o.order = append(o.order, key)
	}
	o.queue[key] = time.Now().Add(max(o.lease.wait(key.Namespace, time.Now(), time.Now()), o.lease.first()))
}

// work does what is due and returns how long nothing else is.
func (o *other) work(ctx context.Context) time.Duration {
	wait := time.Hour
	for i := 0; i < len(o.order); i++ {
		key, now := o.order[i], time.Now()
		if d := max(o.queue[key].Sub(now), o.lease.wait(key.Namespace, now, now)); d > 0 {
			wait = min(wait, d)
			continue
		}
		if again := o.write(ctx, o.cache[key], now); again > 0 {
			o.queue[key] = time.Now().Add(again)
			wait = min(wait, again)
			continue
		}
		delete(o.queue, key)
		o.order = append(o.order[:i], o.order[i+1:]...)
		i--
	}
	return wait
}

func (o *other) write(ctx context.Context, route *routev1.Route, now time.Time) time.Duration {
	live, want := o.find(route), o.opinion(route)
	if (rules{}).agrees(live, want) {
		if lastWriter(route.Status.Ingress) == "test1" {
			o.lease.followed(route.Namespace, now)
		}
		return 0
	}
	if live != nil && o.tracker.holds(route.UID, now) {
		o.lease.lost(route.Namespace, now)
		return 0
	}
	next, at := route.DeepCopy(), metav1.NewTime(now.Truncate(time.Second))
	want.Conditions[0].LastTransitionTime = &at
	next.Status.Ingress = WithEntry(Options{RouterName: "test1"}, next.Status.Ingress, want)
	_, err := o.api.WriteStatus(ctx, next)
	switch {
	case err == nil:
		o.lease.wrote()
		o.tracker.confirmed(route.UID, want)
		o.written++
		return 0
	case apierrors.IsNotFound(err):
		o.lease.lost(route.Namespace, time.Now())
		return 0
	}
	o.lease.lost(route.Namespace, time.Now())
	return retryAfter
}

// TestMixed: replicas of both kinds, as during a migration, do not fight, also where
// they put a rejection in other words.
func TestMixed(t *testing.T) {
	no := func(words string) func(*routev1.Route) *routev1.RouteIngress {
		return func(route *routev1.Route) *routev1.RouteIngress {
			return want(route.Spec.Host, admitted("False", "HostAlreadyClaimed", words, atNow))
		}
	}
	for _, c := range []struct {
		id           string
		ours, theirs func(*routev1.Route) *routev1.RouteIngress
		most         int // writes for each change, in percent
	}{
		{"the same", asHost, asHost, 105},
		{"other words", no("ours"), no("theirs"), 250},
	} {
		t.Run(c.id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newFakeAPI()
				api.delay = 4 * time.Millisecond
				writers := someWriters(t, api, 2)
				replicas(t, api, 20*time.Millisecond, writers, c.ours)
				models := others(t, api, 2, c.theirs)
				const routes = 200
				for i := range routes {
					r := aRoute(fmt.Sprint("r", i))
					r.Spec.Host = "first.test"
					api.put(r)
				}
				pass(5 * time.Minute)
				changes := routes
				for round := range 20 {
					for i := range 10 {
						api.change(fmt.Sprint("r", (round*7+i*11)%routes), func(r *routev1.Route) { r.Spec.Host = fmt.Sprintf("h%d.test", round) })
						changes++
					}
					pass(time.Minute)
				}
				pass(3 * time.Hour)
				api.mu.Lock()
				all, last := len(api.writes), api.at[len(api.at)-1]
				api.mu.Unlock()
				t.Logf("%d changes, %d writes, %d of them here: %+v; the last %v ago", changes, all, all-models[0].written-models[1].written, total(writers), time.Since(last))
				if all < changes || all*100 > changes*c.most {
					t.Errorf("%d changes, %d writes", changes, all)
				}
				if n := total(writers).Pending; n != 0 {
					t.Errorf("%d are pending", n)
				}
				for i := range routes {
					if route := api.get(fmt.Sprint("r", i)); !(rules{}).agreesButWords(Find(Options{RouterName: "test1"}, route.Status.Ingress), c.ours(route)) {
						t.Errorf("route %d: %s", i, said(route, "test1"))
					}
				}
			})
		})
	}
}
