package controller

import (
	"fmt"
	"runtime"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/balancer"
	shards "turnout/controller/shard/api"
	"turnout/controller/source"
	"turnout/routing"
)

// memoryPerRoute bounds what controller, table and pools hold for one route with a
// service of its own and two endpoints, in bytes. What is kept of a Route is in it; the objects are not: they belong
// to who delivers them.
const memoryPerRoute = 10 << 9

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestMemoryPerRoute(t *testing.T) {
	const n = 2000
	for name, tls := range map[string]*routev1.TLSConfig{"plain": nil, "edge": {Termination: "edge"}} {
		events := make([]source.Event, 0, 3*n)
		for i := range n {
			service := fmt.Sprint("service-", i)
			events = append(events,
				aRoute(fmt.Sprint("route-", i), fmt.Sprintf("host-%d.apps.example.test", i), i, func(o *routev1.Route) {
					o.Spec.To.Name, o.Spec.TLS = service, tls
				}),
				event(source.Service, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: service}}),
				aSlice(service+"-x", service, fmt.Sprintf("10.1.%d.%d", i>>8, i&255), fmt.Sprintf("10.2.%d.%d", i>>8, i&255)))
		}
		before := heapInUse()
		c, err := New(Config{Store: routing.NewStore(), Routing: routing.Options{Registry: balancer.NewRegistry()}})
		if err != nil {
			t.Fatal(err)
		}
		sink := c.Sink("test")
		for _, e := range events {
			sink.Event(e)
		}
		sink.Synced()
		c.handle()
		used := (heapInUse() - before) / n
		t.Logf("%s: %d bytes per route", name, used)
		if used > memoryPerRoute {
			t.Errorf("%s: %d bytes per route, want at most %d", name, used, memoryPerRoute)
		}
		runtime.KeepAlive(c)
		runtime.KeepAlive(events)
	}
}

// memoryAside bounds what the controller holds for a route that it does not serve, in bytes.
const memoryAside = 800

// TestMemoryAside: routes that are put aside cost little: a router of some namespaces has those of all others there.
func TestMemoryAside(t *testing.T) {
	const n = 5000
	c, err := New(Config{Store: routing.NewStore(), Routing: routing.Options{Registry: balancer.NewRegistry()}, Options: Options{Router: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	sink := c.Sink("test")
	sink.Synced()
	c.handle()
	before := heapInUse()
	for i := range n {
		e := aRoute(fmt.Sprint("route-", i), fmt.Sprintf("host-%d.apps.example.test", i), i, func(o *routev1.Route) {
			o.Annotations = map[string]string{
				shards.AnnotationRouters: fmt.Sprint("two-", i%30), shards.AnnotationDNS: fmt.Sprintf("host-%d.apps.example.test", i), shards.AnnotationPhase: "Served",
			}
			o.Status.Ingress = []routev1.RouteIngress{{RouterName: "two", Conditions: []routev1.RouteIngressCondition{{Type: routev1.RouteAdmitted, Status: corev1.ConditionTrue}}}}
		})
		sink.Event(e)
		c.handle()
	}
	used := (heapInUse() - before) / n
	t.Logf("%d bytes per route", used)
	if used > memoryAside {
		t.Errorf("%d bytes per route, want at most %d", used, memoryAside)
	}
	if n := len(c.views.outside["ns"]); n != 5000 {
		t.Errorf("%d are put aside", n)
	}
	runtime.KeepAlive(c)
}
