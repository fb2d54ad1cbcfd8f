package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fakeAPI is an API server with optimistic concurrency.
type fakeAPI struct {
	delay   time.Duration                   // of each call
	changed func(old, route *routev1.Route) // each change, nil for none; called without lock

	mu      sync.Mutex
	fail    func(call, name string) error // nil = never; call is get, write or list
	routes  map[types.NamespacedName]*routev1.Route
	version int
	calls   map[string]int
	writes  []string // router/route of each write that changed something
	at      []time.Time
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{routes: make(map[types.NamespacedName]*routev1.Route), calls: make(map[string]int), version: 1000}
}

// aRoute returns a route with entries in its status.
func aRoute(name string, entries ...*routev1.RouteIngress) *routev1.Route {
	r := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	for _, e := range entries {
		r.Status.Ingress = append(r.Status.Ingress, *e)
	}
	return r
}

// put stores a route as it is, as somebody with every right would, and returns it.
func (f *fakeAPI) put(route *routev1.Route) *routev1.Route {
	f.mu.Lock()
	next := route.DeepCopy()
	f.version++
	next.ResourceVersion = strconv.Itoa(f.version)
	old := f.routes[keyOf(next)]
	f.routes[keyOf(next)] = next
	f.mu.Unlock()
	if f.changed != nil {
		f.changed(old, next)
	}
	return next.DeepCopy()
}

// change changes a route.
func (f *fakeAPI) change(name string, change func(*routev1.Route)) *routev1.Route {
	return f.changeIn("ns", name, change)
}

// changeIn changes a route of a namespace.
func (f *fakeAPI) changeIn(namespace, name string, change func(*routev1.Route)) *routev1.Route {
	route := f.getIn(namespace, name)
	change(route)
	return f.put(route)
}

func (f *fakeAPI) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.routes, types.NamespacedName{Namespace: "ns", Name: name})
}

func (f *fakeAPI) get(name string) *routev1.Route { return f.getIn("ns", name) }

// getIn returns a route of a namespace as it is now.
func (f *fakeAPI) getIn(namespace, name string) *routev1.Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.routes[types.NamespacedName{Namespace: namespace, Name: name}].DeepCopy()
}

func (f *fakeAPI) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// written are the names of the routes that were written, in that order.
func (f *fakeAPI) written() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.writes)
}

// failing makes calls fail from now on.
func (f *fakeAPI) failing(fail func(call, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *fakeAPI) begin(ctx context.Context, call, name string) error {
	f.mu.Lock()
	f.calls[call]++
	fail := f.fail
	f.mu.Unlock()
	if f.delay > 0 {
		timer := time.NewTimer(f.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fail != nil {
		return fail(call, name)
	}
	return ctx.Err()
}

func (f *fakeAPI) GetRoute(ctx context.Context, namespace, name string) (*routev1.Route, error) {
	if err := f.begin(ctx, "get", name); err != nil {
		return nil, err
	}
	if r := f.getIn(namespace, name); r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(routev1.Resource("routes"), name)
}

func (f *fakeAPI) WriteStatus(ctx context.Context, route *routev1.Route) (*routev1.Route, error) {
	if err := f.begin(ctx, "write", route.Name); err != nil {
		return nil, err
	}
	f.mu.Lock()
	live := f.routes[keyOf(route)]
	if live == nil {
		f.mu.Unlock()
		return nil, apierrors.NewNotFound(routev1.Resource("routes"), route.Name)
	}
	if live.ResourceVersion != route.ResourceVersion || live.UID != route.UID {
		f.mu.Unlock()
		return nil, apierrors.NewConflict(routev1.Resource("routes"), route.Name, errors.New("the object has been modified"))
	}
	next := live.DeepCopy()
	next.Status = *route.Status.DeepCopy()
	f.version++
	next.ResourceVersion = strconv.Itoa(f.version)
	f.routes[keyOf(route)] = next
	f.writes = append(f.writes, route.Name)
	f.at = append(f.at, time.Now())
	f.mu.Unlock()
	if f.changed != nil {
		f.changed(live, next)
	}
	return next.DeepCopy(), nil
}

// List has pages of two.
func (f *fakeAPI) List(ctx context.Context, token string) ([]routev1.Route, string, error) {
	if err := f.begin(ctx, "list", ""); err != nil {
		return nil, "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(f.routes), func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	at, _ := strconv.Atoi(token)
	var page []routev1.Route
	for ; at < len(keys) && len(page) < 2; at++ {
		page = append(page, *f.routes[keys[at]].DeepCopy())
	}
	if at >= len(keys) {
		return page, "", nil
	}
	return page, strconv.Itoa(at), nil
}

// start runs a writer until the end of the test, in the bubble of the test.
func start(t *testing.T, api API, change ...func(*WriterConfig)) *Writer {
	t.Helper()
	cfg := WriterConfig{API: api, RouterName: "test1"}
	for _, f := range change {
		f(&cfg)
	}
	w, err := NewWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.lease.chance, w.outage.chance = func() float64 { return 0.5 }, func() float64 { return 0.5 }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return w
}

// pass lets virtual time pass and everything that happens in it.
func pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
	synctest.Wait()
}

// said is the host and the Admitted condition of a router's entry, as text.
func said(route *routev1.Route, router string) string {
	e := Find(Options{RouterName: router}, route.Status.Ingress)
	if e == nil {
		return "none"
	}
	c := conditionOf(e, routev1.RouteAdmitted)
	if c == nil {
		return e.Host
	}
	return strings.TrimRight(fmt.Sprintf("%s %s %s %s", e.Host, c.Status, c.Reason, c.Message), " ")
}

// records returns how many routes the writer remembers.
func (w *Writer) records() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.routes.Len()
}
