package kube

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"turnout/test/kube/internal/pods"
	"turnout/test/kube/internal/router"
)

// scale makes TestScale measure; otherwise it only shows that it could.
var scale = flag.Bool("scale", false, "measure with 1,000 and 10,000 routes")

// figures is one column of the table in docs/lab/scale.md.
type figures struct {
	routes            int
	firstReady, ready time.Duration // process start to ready: nothing is said in any status; all is said
	said              time.Duration // ready to all said
	resident, heap    int64         // bytes at rest
	busy              int64         // bytes resident after the changes
	empty, emptyHeap  int64         // the same of a router without routes
	cpu               float64       // share of one processor at rest
	latency           map[string]latencies
}

// TestScale measures what docs/lab/scale.md shows.
func TestScale(t *testing.T) {
	sizes, samples, rest := []int{20}, 3, time.Second
	if *scale {
		sizes, samples, rest = []int{1000, 10000}, 200, time.Minute
	}
	empty := newRouter(t, "empty")
	base := figures{}
	base.memory(t, empty)
	if err := empty.Kill(); err != nil {
		t.Fatal(err)
	}
	var table []figures
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			f := measure(t, size, samples, rest)
			f.empty, f.emptyHeap = base.resident, base.heap
			table = append(table, f)
			if *scale {
				f.check(t)
			}
		})
	}
	t.Logf("%s, %d processors\n%s", runtime.Version(), runtime.NumCPU(), format(table))
}

// measure fills the cluster and takes the figures.
func measure(t *testing.T, size, samples int, rest time.Duration) figures {
	n := newNamespace(t, "a", nil)
	fill(t, size, n.fillOne)
	f := figures{routes: size, latency: map[string]latencies{}}

	changes := must[watch.Interface](t)(shared.routes.RouteV1().Routes(n.name).Watch(t.Context(), metav1.ListOptions{}))
	start := time.Now()
	first := startRouter(t, "default")
	first.WaitReady(t)
	f.firstReady = time.Since(start)
	waitSaid(t, changes, size)
	f.said = time.Since(start) - f.firstReady
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}

	start = time.Now()
	r := startRouter(t, "default")
	r.WaitReady(t)
	f.ready = time.Since(start)
	lasts(rest / 4) // what starting has left behind goes
	cpu := must[time.Duration](t)(r.CPU())
	lasts(rest)
	f.cpu = (must[time.Duration](t)(r.CPU()) - cpu).Seconds() / rest.Seconds()
	f.memory(t, r)

	ctx, cancel := context.WithCancel(t.Context())
	background := make(chan struct{})
	go func() {
		defer close(background)
		n.change50(ctx, size)
	}()
	p := newProbe(t, r)
	f.latency["new route"] = p.newRoutes(samples)
	f.latency["changed weight"] = p.weights(samples)
	f.latency["new certificate"] = p.certificates(samples)
	f.latency["endpoint removed"] = p.endpointsRemoved(samples)
	cancel()
	<-background
	f.busy = must[int64](t)(r.Resident())
	return f
}

// check compares with what the router is meant to need at most.
func (f *figures) check(t *testing.T) {
	if f.resident > 150<<20 {
		t.Errorf("%d bytes resident at rest, at most 150 MiB", f.resident)
	}
	if perRoute := (f.heap - f.emptyHeap) / int64(f.routes); perRoute > 9<<10 && f.routes >= 10000 {
		t.Errorf("%d bytes of heap per route, at most 9 KiB", perRoute)
	}
	if f.cpu > 0.1 { // 500 health checks per second are all that there is to do
		t.Errorf("%.2f %% of a processor at rest, at most 10 %%", f.cpu*100)
	}
	for what, l := range f.latency {
		if l.share(0.5) > 25*time.Millisecond || l.share(0.99) > 100*time.Millisecond {
			t.Errorf("%s is served after %s (p50 / p99), at most 25 / 100 ms", what, l)
		}
	}
}

// waitSaid waits until the router has said of so many routes that they are admitted.
func waitSaid(t *testing.T, changes watch.Interface, routes int) {
	defer changes.Stop()
	said := map[string]bool{}
	timeout := time.NewTimer(10 * time.Minute) // there is a limit to the rate
	defer timeout.Stop()
	for len(said) < routes {
		select {
		case event, ok := <-changes.ResultChan():
			route, isRoute := event.Object.(*routev1.Route)
			if !ok || !isRoute {
				t.Fatalf("the watch broke: %v", event)
			}
			if verdict(route, "default") == route.Spec.Host+" True" {
				said[route.Name] = true
			}
		case <-timeout.C:
			t.Fatalf("%d of %d routes have a status", len(said), routes)
		}
	}
}

// memory takes the memory figures of a router.
func (f *figures) memory(t *testing.T, r *router.Router) {
	f.resident = must[int64](t)(r.Resident())
	f.heap = int64(r.Metric(t, "go_memstats_heap_alloc_bytes"))
}

// fillOne makes a service with three endpoints and a route to it, every second one with TLS.
func (n namespace) fillOne(ctx context.Context, i int) error {
	name := fmt.Sprintf("r%d", i)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: pods.HTTP}},
	}}
	if _, err := shared.core.CoreV1().Services(n.name).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := shared.core.DiscoveryV1().EndpointSlices(n.name).Create(ctx, scaleSlice(i, 0), metav1.CreateOptions{}); err != nil {
		return err
	}
	route := newRoute(name, name+".scale.test")
	route.Spec.To.Name = name
	if i%2 == 1 {
		edge(route, routev1.InsecureEdgeTerminationPolicyRedirect)
	}
	_, err := shared.routes.RouteV1().Routes(n.name).Create(ctx, route, metav1.CreateOptions{})
	return err
}

// scaleSlice holds three endpoints of service number i, different ones for each version.
func scaleSlice(i, version int) *discoveryv1.EndpointSlice {
	address := func(k int) string {
		return fmt.Sprintf("10.%d.%d.%d", 128+(i/250/250)*3+k, i/250%250, 1+(i+version)%250)
	}
	slice := newSlice(fmt.Sprintf("r%d", i), address(0), address(1), address(2))
	slice.Ports = slice.Ports[:1]
	return slice
}

// change50 makes 50 changes a second to what nobody measures: endpoints three times out
// of four, else a weight.
func (n namespace) change50(ctx context.Context, size int) {
	tick := time.NewTicker(time.Second / 50)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		target := rand.IntN(size)
		if i%4 != 0 {
			go func() { // the API server may take its time; the rate stays
				_, err := shared.core.DiscoveryV1().EndpointSlices(n.name).Update(ctx, scaleSlice(target, i), metav1.UpdateOptions{})
				if err != nil && ctx.Err() == nil {
					n.Error(err)
				}
			}()
			continue
		}
		go func() {
			patch := fmt.Appendf(nil, `{"spec":{"to":{"weight":%d}}}`, 1+i%200)
			_, err := shared.routes.RouteV1().Routes(n.name).Patch(ctx, fmt.Sprintf("r%d", target), mergePatch, patch, metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				n.Error(err)
			}
		}()
	}
}

// format writes the table of docs/lab/scale.md.
func format(table []figures) string {
	var b strings.Builder
	line := func(what string, value func(figures) string) {
		b.WriteString("| " + what)
		for _, f := range table {
			b.WriteString(" | " + value(f))
		}
		b.WriteString(" |\n")
	}
	mib := func(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }
	perRoute := func(bytes int64, f figures) string {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/1024/float64(f.routes))
	}
	line("routes", func(f figures) string { return fmt.Sprint(f.routes) })
	b.WriteString("|---" + strings.Repeat("|---:", len(table)) + "|\n")
	line("process start to ready", func(f figures) string { return f.ready.Round(10 * time.Millisecond).String() })
	line("the same when no route has a status yet", func(f figures) string { return f.firstReady.Round(10 * time.Millisecond).String() })
	line("after that, until every status is written", func(f figures) string { return f.said.Round(100 * time.Millisecond).String() })
	line("resident at rest", func(f figures) string { return mib(f.resident) })
	line("resident while 50 changes per second arrive", func(f figures) string { return mib(f.busy) })
	line("resident per route, above a router without routes", func(f figures) string { return perRoute(f.resident-f.empty, f) })
	line("heap per route, above a router without routes", func(f figures) string { return perRoute(f.heap-f.emptyHeap, f) })
	line("processor at rest", func(f figures) string { return fmt.Sprintf("%.2f %%", f.cpu*100) })
	for _, what := range []string{"new route", "changed weight", "new certificate", "endpoint removed"} {
		line(what+": watch event to first correct response, p50 / p99", func(f figures) string { return f.latency[what].String() })
	}
	return b.String()
}
