package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// recorder is a sink that keeps the latest event of each object.
type recorder struct {
	mu     sync.Mutex
	latest map[string]source.Event // by "Kind namespace/name"
	count  int
	synced int
	at     int // events before the first Synced
	logs   []string
	moved  chan struct{} // closed and replaced after each call
}

func newRecorder() *recorder {
	return &recorder{latest: map[string]source.Event{}, moved: make(chan struct{})}
}

func (r *recorder) Event(events ...source.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.latest[e.Kind.String()+" "+e.Key.String()] = e
		r.count++
	}
	r.move()
}

func (r *recorder) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.synced == 0 {
		r.at = r.count
	}
	r.synced++
	r.move()
}

// log is called for each line of the log.
func (r *recorder) log(e zapcore.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, e.Message)
	r.move()
	return nil
}

// wantLogged waits until a text stands in the log, and returns how often it does.
func (r *recorder) wantLogged(t *testing.T, text string) int {
	t.Helper()
	n := 0
	r.until(t, "the log says "+text, func() bool {
		n = 0
		for _, line := range r.logs {
			if strings.Contains(line, text) {
				n++
			}
		}
		return n > 0
	})
	return n
}

func (r *recorder) move() {
	close(r.moved)
	r.moved = make(chan struct{})
}

// until waits until cond holds.
func (r *recorder) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		ok, moved := cond(), r.moved
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-moved:
		case <-deadline:
			t.Fatalf("never: %s; have %v", what, r.names())
		}
	}
}

// wantObjects waits until exactly these objects are there.
func (r *recorder) wantObjects(t *testing.T, names ...string) {
	t.Helper()
	slices.Sort(names)
	r.until(t, "have "+strings.Join(names, ", "), func() bool { return slices.Equal(r.there(), names) })
}

// wantVersion waits until an object is at the version that an annotation of the test names.
func (r *recorder) wantVersion(t *testing.T, name, version string) {
	t.Helper()
	r.until(t, name+" is "+version, func() bool {
		o, ok := r.latest[name].Object.(metav1.Object)
		return ok && o.GetAnnotations()["router.openshift.io/cookie_name"] == version
	})
}

func (r *recorder) there() []string {
	var out []string
	for name, e := range r.latest {
		if e.Object != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.there()
}

func (r *recorder) events() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

func (r *recorder) wantSynced(t *testing.T) {
	t.Helper()
	r.until(t, "synced", func() bool { return r.synced > 0 })
}

func metaOf(namespace, name string, pairs ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "v" {
			m.Annotations = map[string]string{"router.openshift.io/cookie_name": pairs[i+1]}
			continue
		}
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[pairs[i]] = pairs[i+1]
	}
	return m
}

func routeOf(namespace, name string, pairs ...string) *routev1.Route {
	return &routev1.Route{ObjectMeta: metaOf(namespace, name, pairs...), Spec: routev1.RouteSpec{Host: name + ".test", To: routev1.RouteTargetReference{Name: "s"}}}
}

func serviceOf(namespace, name string, pairs ...string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metaOf(namespace, name, pairs...)}
}

func sliceOf(namespace, name, service string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metaOf(namespace, name, discoveryv1.LabelServiceName, service), AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
}

func namespaceOf(name string, pairs ...string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metaOf("", name, pairs...)}
}

// soon is how often tests try again.
var soon = backoff{first: time.Millisecond, last: 4 * time.Millisecond}

// start runs a feeder of a fake API until the test ends.
func start(t *testing.T, a *fakeAPI, cfg Config) (*Feeder, *recorder) {
	t.Helper()
	core, _ := observer.New(zap.DebugLevel)
	sink := newRecorder()
	cfg.Log = zap.New(core, zap.Hooks(sink.log))
	f, err := newFeeder(cfg, a.config, soon)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f, sink
}

func TestReadsAndFollows(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old=%v", old), func(t *testing.T) {
			a := newFakeAPI(t)
			a.old = old
			for i := range 50 {
				a.put(routeOf("ns", fmt.Sprint("r", i)))
			}
			a.put(serviceOf("ns", "s"))
			a.put(sliceOf("ns", "s-1", "s"))
			a.put(namespaceOf("ns"))
			f, sink := start(t, a, Config{})
			sink.wantSynced(t)
			if sink.at != 52 || f.Objects() != 52 {
				t.Errorf("%d events before synced, %d objects", sink.at, f.Objects())
			}
			if old != (a.count("list routes") == 1) {
				t.Errorf("%d lists", a.count("list routes"))
			}
			for i := range 50 {
				a.remove(routeOf("ns", fmt.Sprint("r", i)))
			}
			a.put(routeOf("other", "new", "v", "1"))
			a.put(routeOf("other", "new", "v", "2"))
			a.put(serviceOf("other", "t"))
			a.remove(sliceOf("ns", "s-1", "s"))
			sink.wantObjects(t, "Route other/new", "Service ns/s", "Service other/t")
			sink.wantVersion(t, "Route other/new", "2")
			if f.Objects() != 3 || sink.synced != 1 || f.Problems() != 0 {
				t.Errorf("%d objects, synced %d times, %d problems", f.Objects(), sink.synced, f.Problems())
			}
		})
	}
}

func TestSelection(t *testing.T) {
	f := func(name string, cfg Config, want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			a := newFakeAPI(t)
			for _, ns := range []string{"a", "b"} {
				a.put(namespaceOf(ns, "name", ns))
				a.put(routeOf(ns, "red", "color", "red"))
				a.put(routeOf(ns, "blue", "color", "blue"))
				a.put(serviceOf(ns, "s"))
				a.put(sliceOf(ns, "s-1", "s"))
			}
			_, sink := start(t, a, cfg)
			sink.wantSynced(t)
			slices.Sort(want)
			if got := sink.names(); !slices.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
	pods := []string{"Service a/s", "EndpointSlice a/s-1", "Service b/s", "EndpointSlice b/s-1"}
	all := append([]string{"Route a/red", "Route a/blue", "Route b/red", "Route b/blue"}, pods...)
	f("none", Config{}, all...)
	f("namespace", Config{Namespace: "b"}, "Route b/red", "Route b/blue", "Service b/s", "EndpointSlice b/s-1")
	f("labels", Config{RouteLabels: "color=red"}, append([]string{"Route a/red", "Route b/red"}, pods...)...)
	f("fields", Config{RouteFields: "metadata.name!=red"}, append([]string{"Route a/blue", "Route b/blue"}, pods...)...)
	f("namespace labels", Config{NamespaceLabels: "name in (b)"}, append([]string{"Namespace b"}, all...)...)
}

func TestSelectionFollowsLabels(t *testing.T) {
	a := newFakeAPI(t)
	a.put(namespaceOf("a", "shard", "1"))
	_, sink := start(t, a, Config{RouteLabels: "shard=1", NamespaceLabels: "shard=1"})
	sink.wantObjects(t, "Namespace a")
	a.put(routeOf("a", "r"))
	a.put(routeOf("a", "r", "shard", "1"))
	a.put(namespaceOf("b", "shard", "1"))
	sink.wantObjects(t, "Namespace a", "Namespace b", "Route a/r")
	a.put(routeOf("a", "r", "shard", "2"))
	a.put(namespaceOf("a", "shard", "2"))
	sink.wantObjects(t, "Namespace b")
}

func TestSlicesThatAreOfNoUse(t *testing.T) {
	a := newFakeAPI(t)
	fqdn := sliceOf("ns", "s-fqdn", "s")
	fqdn.AddressType = discoveryv1.AddressTypeFQDN
	unknown := sliceOf("ns", "s-unknown", "s")
	unknown.AddressType = ""
	a.put(fqdn)
	a.put(unknown)
	a.put(sliceOf("ns", "nobody", ""))
	orphan := sliceOf("ns", "orphan", "s")
	orphan.Labels = nil
	a.put(orphan)
	a.put(sliceOf("ns", "s-1", "s"))
	f, sink := start(t, a, Config{})
	sink.wantSynced(t)
	if got := sink.names(); !slices.Equal(got, []string{"EndpointSlice ns/s-1"}) || f.Objects() != 1 {
		t.Errorf("got %v, %d objects", got, f.Objects())
	}
	a.put(sliceOf("ns", "s-1", "")) // its service is no longer named
	sink.wantObjects(t)
	a.put(sliceOf("ns", "s-1", "other"))
	sink.wantObjects(t, "EndpointSlice ns/s-1")
}

func TestSyncedWaitsForAllKinds(t *testing.T) {
	a := newFakeAPI(t)
	a.status["services"] = http.StatusInternalServerError
	a.put(routeOf("ns", "r"))
	a.put(serviceOf("ns", "s"))
	_, sink := start(t, a, Config{})
	sink.wantObjects(t, "Route ns/r")
	a.asked(t, 3, "watch services")
	sink.mu.Lock()
	if sink.synced != 0 {
		t.Error("synced without services")
	}
	sink.mu.Unlock()
	a.set(func(a *fakeAPI) { delete(a.status, "services") })
	sink.wantSynced(t)
	sink.wantObjects(t, "Route ns/r", "Service ns/s")
	if sink.at != 2 {
		t.Errorf("%d events before synced", sink.at)
	}
}
