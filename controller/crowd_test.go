package controller

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/routing"
)

// What crowd makes.
const (
	crowdRoutes = 2000
	crowdPods   = 500
)

// crowd is a controller with many routes to one service of many pods, in slices of a hundred as the API server has them. The first
// pods have the address pod, so that they can be others.
type crowd struct {
	c     *Controller
	store *routing.Store
	sink  source.Sink
	pods  []string
}

func newCrowd(tb testing.TB, annotations func(i int) map[string]string) *crowd {
	w := &crowd{store: routing.NewStore()}
	var err error
	w.c, err = New(Config{Store: w.store, Routing: routing.Options{Registry: balancer.NewRegistry()}})
	if err != nil {
		tb.Fatal(err)
	}
	w.sink = w.c.Sink("test")
	for i := range crowdRoutes {
		e := aRoute(fmt.Sprint("route-", i), fmt.Sprintf("host-%d.apps.example.test", i), i)
		w.sink.Event(e)
		if annotations != nil {
			e.Object.(interface{ SetAnnotations(map[string]string) }).SetAnnotations(annotations(i))
		}
	}
	for i := range crowdPods {
		w.pods = append(w.pods, fmt.Sprintf("10.1.%d.%d", i>>8, i&255))
	}
	for i := range crowdPods / 100 {
		w.slice(i)
	}
	w.sink.Synced()
	w.c.handle()
	return w
}

// slice delivers one of the slices.
func (w *crowd) slice(i int) {
	w.sink.Event(aSlice(fmt.Sprint("s-", i), "s", w.pods[i*100:(i+1)*100]...))
}

// change gives one pod another address, and returns how long it took until all routes had it.
func (w *crowd) change(n int) time.Duration {
	w.pods[n*37%crowdPods] = fmt.Sprintf("10.2.%d.%d", n>>8&255, n&255)
	w.slice(n * 37 % crowdPods / 100)
	began := time.Now()
	w.c.handle()
	return time.Since(began)
}

// use sends requests to each route.
func (w *crowd) use(tb testing.TB, requests int) {
	random := rand.New(rand.NewPCG(1, 1))
	for r := range w.store.Load().Routes {
		for range requests {
			l, ok := r.Pool().Pick(balancer.Pick{Rand: random.Uint64()})
			if !ok {
				tb.Fatal("no server")
			}
			l.Release()
		}
	}
}

// TestManyRoutesShareTheirPods: what routes with the same service hold is not routes times pods, and neither is what a change of a
// pod costs.
func TestManyRoutesShareTheirPods(t *testing.T) {
	const mostMemory, mostPerChange = 50 << 20, 8 << 20
	before := heapInUse()
	w := newCrowd(t, nil)
	w.use(t, 10)
	w.change(0)
	used := heapInUse() - before
	t.Logf("%d bytes with %d routes and %d pods", used, crowdRoutes, crowdPods)
	if used > mostMemory {
		t.Errorf("%d bytes are held, want at most %d", used, mostMemory)
	}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	const changes = 5
	var took []time.Duration
	for i := range changes {
		took = append(took, w.change(i+1))
	}
	runtime.ReadMemStats(&is)
	each := (is.TotalAlloc - was.TotalAlloc) / changes
	t.Logf("%d bytes and %v for a change", each, slices.Min(took))
	if each > mostPerChange+crowdRoutes*crowdPods*8 { // pools in use have their servers by place
		t.Errorf("a change of a pod allocates %d bytes", each)
	}
	for r := range w.store.Load().Routes {
		if r.Pool().Len() != crowdPods {
			t.Fatalf("route %s has %d servers", r.Name(), r.Pool().Len())
		}
	}
	runtime.KeepAlive(w)
}

// BenchmarkPodChange is the time from the event of a pod that has another address to the table with it, for all routes of its service.
func BenchmarkPodChange(b *testing.B) {
	for name, annotations := range map[string]func(int) map[string]string{
		"same": nil,
		"intervals": func(i int) map[string]string {
			return map[string]string{"router.openshift.io/haproxy.health.check.interval": fmt.Sprint(2000+i, "ms")}
		},
		"leastconn": func(int) map[string]string {
			return map[string]string{"haproxy.router.openshift.io/balance": "leastconn"}
		},
	} {
		for _, used := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/used=%v", name, used), func(b *testing.B) {
				before := heapInUse()
				w := newCrowd(b, annotations)
				if used {
					w.use(b, 10)
				}
				w.change(0)
				held := float64(heapInUse()-before) / (1 << 20)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					w.change(i + 1)
				}
				b.ReportMetric(held, "MB")
				runtime.KeepAlive(w)
			})
		}
	}
}
