//go:build !race

package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// large is a table of so many routes with three servers each, all of which have had a request.
func large(tb testing.TB, routes int) *routing.Table {
	tb.Helper()
	specs := make([]routing.RouteSpec, routes)
	for i := range specs {
		name := fmt.Sprintf("route-%05d", i)
		specs[i] = routing.RouteSpec{RouteKey: routing.RouteKey{Namespace: fmt.Sprint("namespace-", i/10), Name: name, UID: name}, Host: name + ".apps.example.test"}
		for n := range 3 {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(n)}), 8080)
			pod := fmt.Sprintf("%s-5d4f8c7b6-%05d", name, n)
			specs[i].Targets = append(specs[i].Targets, balancer.Target{
				ID: balancer.ServerID(pod, name, "http", addr.Addr().String(), addr.Port()), Addr: testaddr.Of(addr), Weight: 1, Pod: pod, Service: name,
			})
		}
	}
	table, rejected := routing.Compile(routing.Options{Registry: balancer.NewRegistry()}, nil, specs)
	if len(rejected) > 0 {
		tb.Fatal(rejected[0])
	}
	routing.NewStore().Publish(table)
	for r := range table.Routes {
		r.Stats().Sessions.Begin(0)
		for _, s := range r.Pool().Servers() {
			s.Traffic().Answers[2].Add(12345)
			s.Traffic().CountBytes(123456789, 987654321)
		}
	}
	return table
}

// counting is an answer that is not kept.
type counting struct {
	header http.Header
	bytes  int
}

func (c *counting) Header() http.Header { return c.header }
func (c *counting) WriteHeader(int)     {}
func (c *counting) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

// scraping returns what scrapes a table once and says how many bytes that were.
func scraping(tb testing.TB, table *routing.Table, threshold int, header http.Header) func() int {
	tb.Helper()
	cfg := config(tb)
	cfg.Table, cfg.ServerThreshold = func() *routing.Table { return table }, threshold
	h, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return func() int {
		w, r := &counting{header: http.Header{}}, httptest.NewRequest("GET", "/metrics", nil)
		r.Header = header
		h.ServeHTTP(w, r)
		return w.bytes
	}
}

const protobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// TestScrapeAllocations: 10,000 routes with three servers each are more than 150 MB of text; a scrape of them takes 24 MiB at most, in any format. Without
// the series of servers it takes 4.5 MiB, which stay resident until the next collection.
func TestScrapeAllocations(t *testing.T) {
	const routes = 10_000
	table := large(t, routes)
	for _, c := range []struct {
		name      string
		threshold int // of servers
		most      uint64
		times     uint64
		header    http.Header
	}{
		{"text", 1 << 20, 24 << 20, 5 * routes, http.Header{}},
		{"Protocol Buffers", 1 << 20, 24 << 20, 5 * routes, http.Header{"Accept": {protobuf}}},
		{"gzip", 1 << 20, 24 << 20, 5 * routes, http.Header{"Accept-Encoding": {"gzip"}}},
		{"without servers", 0, 9 << 19, routes, http.Header{"Accept-Encoding": {"gzip"}}},
	} {
		name, most := c.name, c.most
		scrape := scraping(t, table, c.threshold, c.header)
		scrape() // what is made once
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := scrape()
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s: a scrape allocates %d bytes, want at most %d", name, used, most)
		} else {
			t.Logf("%s: %d bytes of answer, %d bytes and %d times allocated", name, n, used, after.Mallocs-before.Mallocs)
		}
		// What is allocated is for routes and families, not for series: there are a million of those.
		if times := after.Mallocs - before.Mallocs; times > c.times {
			t.Errorf("%s: a scrape allocates %d times", name, times)
		}
	}
}

// BenchmarkScrape is a scrape of 10,000 routes with three servers each, below and above the threshold.
func BenchmarkScrape(b *testing.B) {
	table := large(b, 10_000)
	for _, c := range []struct {
		name      string
		threshold int
		header    http.Header
	}{
		{"routes/text", 0, http.Header{}}, {"routes/gzip", 0, http.Header{"Accept-Encoding": {"gzip"}}}, {"routes/protobuf", 0, http.Header{"Accept": {protobuf}}},
		{"servers/text", 1 << 20, http.Header{}}, {"servers/gzip", 1 << 20, http.Header{"Accept-Encoding": {"gzip"}}}, {"servers/protobuf", 1 << 20, http.Header{"Accept": {protobuf}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			scrape := scraping(b, table, c.threshold, c.header)
			b.ReportAllocs()
			n, began := 0, time.Now()
			for b.Loop() {
				n = scrape()
			}
			b.ReportMetric(float64(n), "bytes/scrape")
			b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(b.N), "ms/scrape")
		})
	}
}
