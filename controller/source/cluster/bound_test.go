package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"

	shards "turnout/controller/shard/api"
	"turnout/controller/source"
)

// bindingOf is a RouteBinding of a route in the same namespace.
func bindingOf(namespace, name, route, router string) *shards.RouteBinding {
	return &shards.RouteBinding{ObjectMeta: metaOf(namespace, name), Spec: shards.RouteBindingSpec{RouteNamespace: namespace, RouteName: route, Router: router}}
}

// TestOnlyBoundRoutes: a replica of a Router gets the routes that are bound to it, those that are bound later, too, and no others.
func TestOnlyBoundRoutes(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old=%v", old), func(t *testing.T) {
			a := newFakeAPI(t)
			a.old = old
			for i := range 50 {
				a.put(routeOf("ns", fmt.Sprint("r", i), "v", "1"))
			}
			a.put(bindingOf("ns", "b0", "r0", "one"))
			a.put(bindingOf("ns", "b1", "r1", "another"))
			foreign := bindingOf("other", "b2", "r2", "one")
			foreign.Spec.RouteNamespace = "ns"
			a.put(foreign)
			f, sink := start(t, a, Config{Router: "one"})
			sink.wantSynced(t)
			sink.wantObjects(t, "Route ns/r0", "RouteBinding ns/b0", "RouteBinding other/b2")
			before := a.count("list routes")
			if f.Objects() != 3 {
				t.Errorf("%d objects", f.Objects())
			}

			a.put(routeOf("ns", "r3", "v", "2"))
			a.put(bindingOf("ns", "b3", "r3", "one"))
			a.put(bindingOf("ns", "b3-again", "r3", "one"))
			sink.wantObjects(t, "Route ns/r0", "Route ns/r3", "RouteBinding ns/b0", "RouteBinding ns/b3", "RouteBinding ns/b3-again", "RouteBinding other/b2")
			sink.wantVersion(t, "Route ns/r3", "2")
			if n := a.count("list routes") - before; n > 1 {
				t.Errorf("one route was read %d times", n)
			}
			a.put(routeOf("ns", "r3", "v", "3"))
			sink.wantVersion(t, "Route ns/r3", "3")
			a.put(bindingOf("ns", "b4", "new", "one")) // before its route
			a.put(routeOf("ns", "new", "v", "1"))
			sink.wantVersion(t, "Route ns/new", "1")

			a.remove(bindingOf("ns", "b0", "", ""))
			a.remove(bindingOf("ns", "b3", "", ""))
			a.remove(routeOf("ns", "new"))
			a.remove(routeOf("ns", "r4"))
			sink.wantObjects(t, "Route ns/r3", "RouteBinding ns/b3-again", "RouteBinding ns/b4", "RouteBinding other/b2")
			a.remove(bindingOf("ns", "b3-again", "", ""))
			sink.wantObjects(t, "RouteBinding ns/b4", "RouteBinding other/b2")
			if f.Objects() != 2 {
				t.Errorf("%d objects", f.Objects())
			}
			a.cutWatches()
			a.forget()
			a.put(bindingOf("ns", "b5", "r5", "one"))
			sink.wantVersion(t, "Route ns/r5", "1")
		})
	}
}

// boundRig is what reads of a route meet: the store of routes, and the answer that is under way.
type boundRig struct {
	*recorder
	b       *boundRoutes
	routes  *store
	reading chan source.Key
	answers chan reply
	looked  chan struct{} // a value for each route that was read
	t       *testing.T
}

type reply struct {
	route *routev1.Route
	err   error
}

func newBoundRig(t *testing.T) *boundRig {
	r := &boundRig{t: t, looked: make(chan struct{}, 1), recorder: newRecorder(), routes: newStore(source.Route), reading: make(chan source.Key), answers: make(chan reply)}
	r.b = newBoundRoutes(new(clients), zap.NewNop(), backoff{time.Microsecond, time.Microsecond})
	r.b.read = func(ctx context.Context, key source.Key) (*routev1.Route, error) {
		select {
		case r.reading <- key:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		a := <-r.answers
		return a.route, a.err
	}
	r.b.join(r.routes)
	r.routes.sink = r
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.b.more:
			}
			for r.b.readNext(ctx) {
				r.looked <- struct{}{}
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

// at is a version of the route.
func (r *boundRig) at(version string) *routev1.Route {
	o := routeOf("ns", "r", "v", version)
	o.ResourceVersion = version
	return o
}

func (r *boundRig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// watched is what the watch says.
func (r *boundRig) watched(o *routev1.Route) { r.check(r.routes.Update(o)) }
func (r *boundRig) deleted()                 { r.check(r.routes.Delete(r.at("1"))) }

// bind binds the route, and waits until it is read.
func (r *boundRig) bind() {
	r.b.bind(source.Key{Namespace: "ns", Name: "b"}, bindingOf("ns", "b", "r", "one"))
	<-r.reading
}

// say answers the read that is under way, and waits until the answer has been looked at.
func (r *boundRig) say(route *routev1.Route) {
	r.answers <- reply{route: route}
	<-r.looked
}

// TestReadsRace: what the watch says of a route while it is read by name counts, and what was read counts until the watch has reached it.
func TestReadsRace(t *testing.T) {
	latest := func(r *boundRig) string {
		r.mu.Lock()
		defer r.mu.Unlock()
		e, known := r.latest["Route ns/r"]
		switch o, _ := e.Object.(*routev1.Route); {
		case !known:
			return "never told"
		case o == nil:
			return "gone"
		default:
			return o.Annotations["router.openshift.io/cookie_name"]
		}
	}
	for name, f := range map[string]struct {
		do   func(r *boundRig)
		want string
	}{
		"read":              {func(r *boundRig) { r.say(r.at("1")) }, "1"},
		"changed meanwhile": {func(r *boundRig) { r.watched(r.at("2")); r.say(r.at("1")) }, "2"},
		"deleted meanwhile": {func(r *boundRig) { r.deleted(); r.say(r.at("1")) }, "never told"},
		"unbound meanwhile": {func(r *boundRig) { r.b.bind(source.Key{Namespace: "ns", Name: "b"}, nil); r.say(r.at("1")) }, "never told"},
		"not there":         {func(r *boundRig) { r.say(nil) }, "never told"},
		"refused, then read": {func(r *boundRig) {
			r.answers <- reply{err: errors.New("refused")}
			<-r.reading
			r.say(r.at("1"))
		}, "1"},
		"the watch is behind":         {func(r *boundRig) { r.say(r.at("3")); r.watched(r.at("2")) }, "3"},
		"the watch gets there":        {func(r *boundRig) { r.say(r.at("3")); r.watched(r.at("2")); r.watched(r.at("4")) }, "4"},
		"deleted when it was read":    {func(r *boundRig) { r.say(r.at("3")); r.deleted() }, "gone"},
		"listed again while it reads": {func(r *boundRig) { r.check(r.routes.Replace([]any{r.at("1")}, "9")); r.say(r.at("1")) }, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBoundRig(t)
			r.routes.synced = func() {}
			r.check(r.routes.Add(r.at("1")))
			if got := latest(r); got != "never told" {
				t.Fatalf("before it is bound: %s", got)
			}
			r.bind()
			f.do(r)
			if got := latest(r); got != f.want {
				t.Errorf("%s, want %s", got, f.want)
			}
		})
	}
}

// TestLeanUnbound: of a route that is not bound only who it is stays in memory while all are read.
func TestLeanUnbound(t *testing.T) {
	r := newBoundRig(t)
	r.b.bind(source.Key{Namespace: "ns", Name: "b"}, bindingOf("ns", "b", "r", "one"))
	for name, want := range map[string]string{"r": "*v1.Route", "other": "*v1.PartialObjectMetadata"} {
		o, err := r.routes.Transformer()(routeOf("ns", name))
		if got := fmt.Sprintf("%T", o); err != nil || got != want {
			t.Errorf("%s becomes %s, want %s (%v)", name, got, want, err)
		}
	}
}
