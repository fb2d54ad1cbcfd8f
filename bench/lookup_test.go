package bench

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// lookupSizes are the numbers of routes the table benchmarks run with.
var lookupSizes = []int{1, 1_000, 10_000, 100_000, 1_000_000}

// lookupSpec returns the spec of route i: a host of its own, usual for a cluster.
func lookupSpec(i int) routing.RouteSpec {
	name := "web-" + strconv.Itoa(i)
	namespace := "team-" + strconv.Itoa(i%997)
	return routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: namespace, Name: name, UID: strconv.Itoa(i)},
		Host:     name + "-" + namespace + ".apps.example.test",
		Policy:   routing.Policy{ServerTimeout: 30 * time.Second}, CookieName: "c",
		Targets: []balancer.Target{{
			ID:   "pod:" + name,
			Addr: testaddr.Of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 8080)), Weight: 1,
		}},
	}
}

func lookupSpecs(n int) []routing.RouteSpec {
	specs := make([]routing.RouteSpec, n)
	for i := range specs {
		specs[i] = lookupSpec(i)
	}
	return specs
}

// heap returns the bytes in use after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// queries is host names of random routes, one behind the other in memory: a router
// has just received the name it looks up, so reading the name itself must not cost a
// cache miss.
type queries struct {
	names []byte
	ends  []uint32
	next  int
	begin uint32
}

func newQueries(specs []routing.RouteSpec) *queries {
	n := min(max(2*len(specs), 1<<17), 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	q := &queries{ends: make([]uint32, n)}
	for i := range q.ends {
		q.names = append(q.names, specs[random.IntN(len(specs))].Host...)
		q.ends[i] = uint32(len(q.names))
	}
	return q
}

// host returns the next name, after the last one the first.
func (q *queries) host() []byte {
	if q.next == len(q.ends) {
		q.next, q.begin = 0, 0
	}
	end := q.ends[q.next]
	name := q.names[q.begin:end:end]
	q.next, q.begin = q.next+1, end
	return name
}

// BenchmarkHostLookup finds the route of random hosts over all routes. Besides the
// time of one lookup it reports bytes per route: index-B is the host index alone,
// all-B with routes, counters, pools, servers and endpoints.
func BenchmarkHostLookup(b *testing.B) {
	for _, n := range lookupSizes {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			specs := lookupSpecs(n)
			q := newQueries(specs)
			options := routing.Options{Registry: balancer.NewRegistry()}
			before := heap()
			store := routing.NewStore()
			t, _ := routing.Compile(options, nil, specs)
			store.Publish(t)
			all := heap() - before
			before = heap()
			again, _ := routing.Compile(options, t, specs) // shares the routes: only the index is new
			store.Publish(again)
			index := heap() - before
			path := []byte("/index.html")
			b.ReportAllocs()
			i, found := 0, 0
			for b.Loop() {
				if again.Match(&routing.View{Host: q.host(), Path: path}).Kind == routing.Serve {
					found++
				}
				i++
			}
			if found != i {
				b.Fatalf("%d of %d lookups found a route", found, i)
			}
			b.ReportMetric(float64(index)/float64(n), "index-B/route")
			b.ReportMetric(float64(all)/float64(n), "all-B/route")
			runtime.KeepAlive(t)
			runtime.KeepAlive(specs)
		})
	}
}

// BenchmarkTableBuild compiles and publishes all routes with nothing to take over from.
func BenchmarkTableBuild(b *testing.B) {
	for _, n := range lookupSizes {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			specs := lookupSpecs(n)
			b.ReportAllocs()
			for b.Loop() {
				t, _ := routing.Compile(routing.Options{}, nil, specs)
				if routing.NewStore().Publish(t); t.Len() != n {
					b.Fatalf("the table has %d routes", t.Len())
				}
			}
		})
	}
}

// BenchmarkTableApplyOne changes one route of a table: its endpoint, its policy and
// its path, and publishes the result.
func BenchmarkTableApplyOne(b *testing.B) {
	for _, n := range lookupSizes {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			specs := lookupSpecs(n)
			store := routing.NewStore()
			t, _ := routing.Compile(routing.Options{}, nil, specs)
			store.Publish(t)
			random := rand.New(rand.NewPCG(1, 2))
			runtime.GC() // the garbage of the build is not the cost of a change
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				change := &specs[random.IntN(n)]
				change.Path = "/v" + strconv.Itoa(i)
				change.Policy.ServerTimeout++
				change.Targets[0].Addr = testaddr.Of(netip.AddrPortFrom(change.Targets[0].Addr.AddrPort().Addr(), uint16(1+i%60000)))
				one := [1]routing.RouteSpec{*change}
				next, _ := store.Load().Apply(one[:], nil)
				store.Publish(next)
			}
		})
	}
}

// BenchmarkManyPaths has all routes on one host: the time per path to compile, to
// find one and to change one.
func BenchmarkManyPaths(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		specs := lookupSpecs(n)
		paths := make([][]byte, n)
		for i := range specs {
			specs[i].Host, specs[i].Path = "one.example.test", fmt.Sprintf("/team/%d/app/%d", i%100, i)
			paths[i] = []byte(specs[i].Path + "/index.html")
		}
		t, _ := routing.Compile(routing.Options{}, nil, specs)
		b.Run(fmt.Sprintf("compile/paths=%d", n), func(b *testing.B) {
			for b.Loop() {
				routing.Compile(routing.Options{}, nil, specs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/path")
		})
		b.Run(fmt.Sprintf("match/paths=%d", n), func(b *testing.B) {
			random, host := rand.New(rand.NewPCG(1, 2)), []byte("one.example.test")
			b.ReportAllocs()
			for b.Loop() {
				i := random.IntN(n)
				if d := t.Match(&routing.View{Host: host, Path: paths[i]}); d.Route == nil || d.Route.Path() != specs[i].Path {
					b.Fatalf("%s is served by %v", paths[i], d.Route)
				}
			}
		})
		b.Run(fmt.Sprintf("apply/paths=%d", n), func(b *testing.B) {
			runtime.GC()
			table, i := t, 0
			for b.Loop() {
				one := [1]routing.RouteSpec{specs[i%n]}
				one[0].Path += "/" + strconv.Itoa(i)
				table, _ = table.Apply(one[:], nil)
				i++
			}
		})
	}
}
