package status

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// atOnce is an API that takes every write.
type atOnce struct{ version int }

func (a *atOnce) GetRoute(context.Context, string, string) (*routev1.Route, error) { return nil, nil }

func (a *atOnce) WriteStatus(_ context.Context, route *routev1.Route) (*routev1.Route, error) {
	a.version++
	next := *route
	next.ResourceVersion = strconv.Itoa(a.version)
	return &next, nil
}

func (a *atOnce) List(context.Context, string) ([]routev1.Route, string, error) {
	return nil, "", nil
}

// pending returns a writer with routes that wait to be written, and the routes.
func pending(b *testing.B, routes int) (*Writer, []*routev1.Route, *routev1.RouteIngress) {
	b.Helper()
	w, err := NewWriter(WriterConfig{API: &atOnce{version: 1000}, RouterName: "test1", Rate: 1e9})
	if err != nil {
		b.Fatal(err)
	}
	entry := want("h", yesNow())
	objects := make([]*routev1.Route, routes)
	for i := range objects {
		objects[i] = aRoute(fmt.Sprint("route-", i))
		objects[i].ResourceVersion = "7"
	}
	return w, objects, entry
}

// BenchmarkPending is 10,000 first entries: what the controller waits for to hand them
// over, what they take while they wait, and what it takes to write them, without the API.
func BenchmarkPending(b *testing.B) {
	const routes = 10000
	for b.Loop() {
		w, objects, entry := pending(b, routes)
		before := inUse()
		begun := time.Now()
		for _, o := range objects {
			w.Report(o, entry)
		}
		handed := time.Since(begun)
		held := inUse() - before
		begun = time.Now()
		for range objects {
			job, _ := w.nextCall(time.Now())
			job(b.Context())
		}
		written := time.Since(begun)
		rest := inUse() - before
		if s := w.Stats(); s.Written != routes || s.Pending != 0 {
			b.Fatalf("%+v", s)
		}
		b.ReportMetric(float64(handed.Nanoseconds())/routes, "ns/report")
		b.ReportMetric(float64(written.Nanoseconds())/routes, "ns/write")
		b.ReportMetric(float64(held)/routes, "B/pending")
		b.ReportMetric(float64(rest)/routes, "B/written")
		runtime.KeepAlive(objects)
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkUnchanged is a report of what stands there already, as of all routes after a
// start.
func BenchmarkUnchanged(b *testing.B) {
	w, objects, entry := pending(b, 10000)
	for _, o := range objects {
		o.Status.Ingress = []routev1.RouteIngress{*entry}
		w.Report(o, entry)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		w.Observe(objects[i%len(objects)])
		i++
	}
	if n := w.Stats().Pending; n != 0 {
		b.Fatalf("%d pending", n)
	}
}
