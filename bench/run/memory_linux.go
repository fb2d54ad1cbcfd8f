package main

import (
	"bytes"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"turnout/bench/site"
	"turnout/internal/testkit/testhttp"
)

// memoryCase is a way for routes to come to a router.
type memoryCase struct {
	name, about string
	run         func(t *site.T, m *memoryRun) *site.Router
}

// memoryRun is what all cases have in common.
type memoryRun struct {
	objects map[string][]string
	known   *routesAPI // of the routers before; nil = there was none
	env     []string   // of the routers
}

var memoryCases = []memoryCase{
	{"quiet", "no routes", func(t *site.T, m *memoryRun) *site.Router { return t.Start(site.Config{Env: m.env}) }},
	{"folder", "manifests in a folder", func(t *site.T, m *memoryRun) *site.Router {
		var b strings.Builder
		for _, plural := range []string{"routes", "services", "endpointslices"} {
			for _, object := range m.objects[plural] {
				b.WriteString("---\n" + object + "\n")
			}
		}
		return t.Start(site.Config{Manifests: b.String(), Args: uncheckedPods, Env: m.env})
	}},
	{"writes", "a cluster, whose routes it gives their statuses", func(t *site.T, m *memoryRun) *site.Router { return m.cluster(t, newRoutesAPI(m.objects)) }},
	{"cluster", "a cluster, whose routes have their statuses", func(t *site.T, m *memoryRun) *site.Router {
		if m.known == nil {
			m.cluster(t, newRoutesAPI(m.objects)).Stop()
		}
		return m.cluster(t, m.known)
	}},
}

// uncheckedPods has endpoints at which nobody listens not be asked while it is measured.
var uncheckedPods = []string{"--backend-check-interval", "1h"}

// cluster starts a router of an API server, and returns when all statuses are written.
func (m *memoryRun) cluster(t *site.T, api *routesAPI) *site.Router {
	m.known = api
	server := site.ServeHTTP(site.Loopback, api)
	t.Cleanup(server.Close)
	config := filepath.Join(site.Must(os.MkdirTemp("", "turnout-memory-")), "kubeconfig")
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(config)) })
	site.Check(os.WriteFile(config, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],`+
		`"clusters":[{"name":"k","cluster":{"server":"http://%s"}}],"users":[{"name":"u","user":{}}]}`, net.JoinHostPort("127.0.0.1", fmt.Sprint(server.Port()))), 0o600))
	r := t.Start(site.Config{Cluster: config, Args: append([]string{"--admin-open"}, uncheckedPods...), Env: m.env})
	for wanted := len(m.objects["routes"]); api.statuses() < wanted; t.Wait(time.Second) {
		site.Check(r.Died())
	}
	return r
}

// memory prints what routers with many routes hold at rest, and who holds it.
func memory(f *flag.FlagSet) func(*site.T) {
	routes := f.Int("routes", 10_000, "how many routes, with three endpoints each")
	cases := f.String("cases", "all", "which of the cases, separated by commas: quiet, folder, writes, cluster")
	settle := f.Duration("settle", 45*time.Second, "how long the router is at rest before it is looked at")
	rate := f.Int("rate", 512<<10, "bytes between two samples of the heap: fewer say more, and take memory themselves")
	keep := f.String("keep", "", "folder for the profiles of the heaps, for go tool pprof; \"\" = they are not kept")
	bound := f.Float64("bound", 0, "MiB that may be resident without the program's file; 0 = any number")
	return func(t *site.T) {
		some, err := site.Choose(*cases, ",", memoryCases, func(c memoryCase) string { return c.name })
		site.Refuse(err)
		m := &memoryRun{objects: manyRoutes(*routes), env: []string{fmt.Sprintf("GODEBUG=memprofilerate=%d", *rate)}}
		for _, c := range some {
			r := c.run(t, m)
			t.Wait(*settle)
			t.Printf("\n%s: %s\n", c.name, c.about)
			anonymous := printResident(t, r)
			printHeap(t, r, *routes)
			if *keep != "" {
				keepHeap(t, r, filepath.Join(*keep, c.name+".heap"))
			}
			if *bound > 0 && anonymous > *bound {
				t.Failf("%s: %.1f MiB are resident, more than %.1f", c.name, anonymous, *bound)
			}
			r.Stop()
		}
	}
}

// printResident prints what the kernel and the runtime say, and returns what is resident without the program's file, in MiB.
func printResident(t *site.T, r *site.Router) (anonymous float64) {
	kib := map[string]float64{}
	for line := range strings.Lines(r.Proc("status")) {
		var n float64
		if name, rest, ok := strings.Cut(line, ":"); ok {
			if _, err := fmt.Sscan(rest, &n); err == nil {
				kib[name] = n
			}
		}
	}
	anonymous = kib["RssAnon"] / 1024
	t.Printf("%8.1f MiB resident without the program's file, %.1f with it, %.1f at most\n", anonymous, kib["VmRSS"]/1024, kib["VmHWM"]/1024)
	s := r.Samples(t.Context)
	mib := func(name string) float64 { return s["go_memstats_"+name+"_bytes"] / (1 << 20) }
	t.Printf("%8.1f MiB of heap in use, of which %.1f allocated; %.1f idle, of which %.1f returned; %.1f stacks, %.1f spans, %.1f of the collector, %.1f other\n",
		mib("heap_inuse"), mib("heap_alloc"), mib("heap_idle"), mib("heap_released"), mib("stack_inuse"), mib("mspan_sys"), mib("gc_sys"), mib("other_sys")+mib("buck_hash_sys"))
	return anonymous
}

// leastHolding is how many bytes somebody holds who is printed.
const leastHolding = 100 << 10

// printHeap prints who holds what a collection leaves.
func printHeap(t *site.T, r *site.Router, routes int) {
	total, rows := liveByHolder(bytes.NewReader(heap(t, r, "gc=1&debug=1")))
	t.Printf("%8.1f MiB live, by a sample:\n", total/(1<<20))
	rest := 0.0
	for _, row := range rows {
		if row.bytes < leastHolding {
			rest += row.bytes
			continue
		}
		t.Printf("%8.1f MiB %6.0f bytes per route  %s\n", row.bytes/(1<<20), row.bytes/float64(max(routes, 1)), row.holder)
	}
	t.Printf("%8.1f MiB                         all others\n", rest/(1<<20))
}

// keepHeap writes the profile of a heap to a file.
func keepHeap(t *site.T, r *site.Router, path string) {
	site.Check(os.WriteFile(path, heap(t, r, "gc=1"), 0o600))
}

func heap(t *site.T, r *site.Router, query string) []byte {
	status, text, err := testhttp.Get(t.Context, nil, "http://"+r.Admin+"/debug/pprof/heap?"+query, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	site.Checkf(err, "cannot ask for the heap")
	return text
}
