package gatewayscale

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"turnout/test/cluster/await"
	"turnout/test/cluster/load"
)

// plan is how much is measured.
type plan struct {
	sizes   []int         // routes that are there while others are timed
	samples int           // routes that are timed, per size
	counted int           // routes that come and go at once
	churn   time.Duration // how long routes, backends and Gateways change under load
}

// table is what is printed.
type table struct {
	mu   sync.Mutex
	rows []string
}

func (b *table) rowf(what string, format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = append(b.rows, fmt.Sprintf("| %s | %s |", what, fmt.Sprintf(format, args...)))
}

// TestScale prints a table of what routes of a Gateway cost, and fails where requests do.
func TestScale(t *testing.T) {
	p := plan{sizes: []int{0, 100}, samples: 10, counted: 100, churn: 5 * time.Second}
	if *full {
		p = plan{sizes: []int{0, 1000, 3000, 5000}, samples: *samples, counted: 1000, churn: time.Minute}
	}
	b := new(table)
	mustCreate(t, "{apiVersion: v1, kind: Namespace, metadata: {name: live}}\n---\n"+backend("a")+"\n---\n"+backend("b")+"\n---\n"+aRouter)
	t.Cleanup(func() { keepLog(t) })
	ready(t, "turnout", "turnout")
	ready(t, "live", "a")
	ready(t, "live", "b")
	series, _ := metrics(t)
	b.rowf("time series without a route", "%d", series)
	b.rowf("resident without a route", "%.0f MiB", resident(t))
	mustCreate(t, aGateway("live", "gw"))
	address := addressOf(t, "gw")
	t.Run("counts", func(t *testing.T) { counts(t, b, p.counted) })
	made := 0
	for _, size := range p.sizes {
		t.Run(fmt.Sprintf("%d routes", size), func(t *testing.T) {
			fill(t, made, size)
			made = size
			oneByOne(t, b, address, size, p.samples)
			whileOthersChange(t, b, address, size, p.samples)
		})
	}
	t.Run("memory", func(t *testing.T) { memory(t, b, made, p.churn) })
	t.Run("churn", func(t *testing.T) { churn(t, b, address, p.churn) })
	t.Logf("%d routes at most\n%s", made, strings.Join(b.rows, "\n"))
}

// keepLog writes what the router said to a file.
func keepLog(t *testing.T) {
	events, err := shared.Audit(account)
	text := fmt.Sprintf("%d requests of the router, %v\n", len(events), err)
	if err := os.WriteFile(filepath.Join(shared.logs, "asked.log"), []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// account is who the router is.
const account = "system:serviceaccount:turnout:router"

// written counts the statuses that the router has written since a moment, by resource.
func written(t *testing.T, since time.Time) map[string]int {
	events, err := shared.Audit(account)
	check(t, err)
	n := map[string]int{}
	for i := range events {
		e := &events[i]
		if e.Stage == auditv1.StageResponseComplete && e.Verb == "patch" && e.ObjectRef != nil && e.ObjectRef.Subresource == "status" && e.RequestReceivedTimestamp.After(since) {
			n[e.ObjectRef.Resource]++
		}
	}
	return n
}

// reported waits until the router has written the status of n routes since a moment.
func reported(t *testing.T, since time.Time, n int) {
	eventually(t, "all routes have a status", func() error {
		if said := written(t, since)["httproutes"]; said < n {
			return fmt.Errorf("%d of %d", said, n)
		}
		return nil
	})
}

// counts has routes come and go at once, and measures when the Gateway says how many there are, and how much is written for it.
func counts(t *testing.T, b *table, n int) {
	mustCreate(t, aGateway("live", "counted"))
	addressOf(t, "counted")
	watcher, err := shared.objects.Resource(resources["Gateway"]).Namespace("live").Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=counted"})
	check(t, err)
	defer watcher.Stop()
	reaches := func(want int) time.Time {
		limit := time.After(patience)
		last := -1
		for last != want {
			select {
			case e := <-watcher.ResultChan():
				if g, ok := e.Object.(*unstructured.Unstructured); ok {
					last = attached(g)
				}
			case <-limit:
				t.Fatalf("the Gateway counts %d routes, want %d", last, want)
			}
		}
		return time.Now()
	}
	began := time.Now()
	name := func(i int) string { return fmt.Sprintf("counted-%d", i) }
	await.InParallel(t, 0, n, func(ctx context.Context, i int) error { return create(ctx, aRoute("live", name(i), "counted", "a")) })
	done := time.Now()
	up := reaches(n).Sub(done)
	reported(t, began, n)
	there := time.Now()
	all := written(t, began)
	await.InParallel(t, 0, n, func(ctx context.Context, i int) error { return remove(ctx, "HTTPRoute", "live", name(i)) })
	gone := time.Now()
	down := reaches(0).Sub(gone)
	b.rowf(fmt.Sprintf("%d routes made in %.1f s: until all are counted", n, done.Sub(began).Seconds()), "%s", max(up, 0).Round(time.Millisecond))
	b.rowf(fmt.Sprintf("deleted in %.1f s: until none is counted", gone.Sub(there).Seconds()), "%s", max(down, 0).Round(time.Millisecond))
	b.rowf("writes per route and Gateway until then", "%.3f (%v)", float64(all["httproutes"]+all["gateways"])/float64(n+1), all)
	back := written(t, there)
	b.rowf("writes while they went", "%v", back)
	if most := 1.1 * float64(n+1); *full && float64(all["httproutes"]+all["gateways"]) > most {
		t.Errorf("%v writes, want at most %.0f", all, most)
	}
	if most := 2 * time.Second; *full && (up > most || down > most) {
		t.Errorf("counted after %s, gone after %s, want %s", up, down, most)
	}
	check(t, remove(t.Context(), "Gateway", "live", "counted"))
}

// perNamespace is how many routes a namespace has, and services how many Services they name there.
const perNamespace, services = 100, 10

func namespaceOf(i int) string { return fmt.Sprintf("many-%d", i/perNamespace) }

// fill makes routes number from to number to: 100 in a namespace, which name ten Services with three endpoints each. Nobody asks for them.
func fill(t *testing.T, from, to int) {
	begin := time.Now()
	for i := from; i < to; i += perNamespace {
		mustCreate(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", namespaceOf(i)))
		await.InParallel(t, 0, services, func(ctx context.Context, k int) error {
			if err := create(ctx, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {namespace: %s, name: s%d}, spec: {ports: [{name: http, port: 8080}], clusterIP: None}}", namespaceOf(i), k)); err != nil {
				return err
			}
			return create(ctx, fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: %s, name: s%d, labels: {kubernetes.io/service-name: s%[2]d}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: %[3]s`, namespaceOf(i), k, endpoints(i+k, 0)))
		})
	}
	await.InParallel(t, from, to, func(ctx context.Context, i int) error {
		return create(ctx, aRoute(namespaceOf(i), fmt.Sprintf("r%d", i), "gw", fmt.Sprintf("s%d", i%services)))
	})
	if to == from {
		return
	}
	made := time.Since(begin)
	eventually(t, "all routes are counted", func() error {
		g, err := get(t.Context(), "Gateway", "live", "gw")
		if err == nil && attached(g) < to {
			err = fmt.Errorf("%d of %d", attached(g), to)
		}
		return err
	})
	t.Logf("%d routes made in %s, counted %s later", to-from, made.Round(time.Second), (time.Since(begin) - made).Round(10*time.Millisecond))
	reported(t, begin, to-from) // what is measured next is at rest
	t.Logf("all had a status %s after they were made", (time.Since(begin) - made).Round(10*time.Millisecond))
}

// endpoints are three addresses at which nobody listens, of a network that documentation may use (RFC 2544); others for each turn.
func endpoints(number, turn int) string {
	var list []string
	for k := range 3 {
		list = append(list, fmt.Sprintf("{addresses: [198.%d.%d.%d]}", 18+number>>16&1, number>>8&255, (number*3+k+turn*7)&255))
	}
	return "[" + strings.Join(list, ", ") + "]"
}

// served makes a route and returns how long the API server took to answer that, and how long from then until the route is served.
func served(t *testing.T, c *http.Client, name string) (made, took time.Duration) {
	begin := time.Now()
	check(t, create(t.Context(), aRoute("live", name, "gw", "a")))
	done := time.Now()
	tick := time.NewTicker(time.Millisecond) // who asks without pause takes the processor from what is measured
	defer tick.Stop()
	for ; ; <-tick.C {
		if got, err := load.Ask(t.Context(), c, name+".scale.test"); err == nil && got == "a" {
			return done.Sub(begin), time.Since(done)
		}
		if time.Since(done) > patience {
			t.Fatalf("route %s is not served", name)
		}
	}
}

// oneByOne times routes that are made one after the other.
func oneByOne(t *testing.T, b *table, address string, size, n int) {
	b.rowf(fmt.Sprintf("a route is served, beside %d", size), "%s", oneAfterTheOther(t, address, fmt.Sprintf("one-%d", size), n))
}

// oneAfterTheOther makes n routes whose names begin so, each when the one before is gone, and returns their times.
func oneAfterTheOther(t *testing.T, address, prefix string, n int) string {
	c := client(address, false)
	before := insideNow(t)
	var answered, all load.Times
	for i := range n {
		name := fmt.Sprintf("%s-%d", prefix, i)
		made, took := served(t, c, name)
		answered, all = append(answered, made), append(all, took)
		check(t, remove(t.Context(), "HTTPRoute", "live", name))
	}
	return fmt.Sprintf("%s; within the router %s; the API server answered after %s", all, insideNow(t).since(before), answered)
}

// whileOthersChange is the same while 50 routes a second change.
func whileOthersChange(t *testing.T, b *table, address string, size, n int) {
	const others = 50
	await.InParallel(t, 0, others, func(ctx context.Context, i int) error {
		return create(ctx, aRoute("live", fmt.Sprintf("other-%d-%d", size, i), "gw", "a"))
	})
	ctx, stop := context.WithCancel(t.Context())
	var changing sync.WaitGroup
	var changes atomic.Int64
	began := time.Now()
	for i := range others { // each once a second
		changing.Go(func() {
			<-time.After(time.Second * time.Duration(i) / others)
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for turn := i; ctx.Err() == nil; turn++ {
				if err := patch(ctx, "HTTPRoute", "live", fmt.Sprintf("other-%d-%d", size, i), to([]string{"b", "a"}[turn%2])); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				changes.Add(1)
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	measured := oneAfterTheOther(t, address, fmt.Sprintf("two-%d", size), n)
	stop()
	changing.Wait()
	b.rowf(fmt.Sprintf("the same while %.0f others a second change", float64(changes.Load())/time.Since(began).Seconds()), "%s", measured)
	await.InParallel(t, 0, others, func(ctx context.Context, i int) error {
		return remove(ctx, "HTTPRoute", "live", fmt.Sprintf("other-%d-%d", size, i))
	})
}
