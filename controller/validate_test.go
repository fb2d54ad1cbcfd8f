package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"

	"turnout/balancer"
	"turnout/controller/source"
	"turnout/controller/source/folder"
	"turnout/routing"
)

const manifests = `apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: good, annotations: {haproxy.router.openshift.io/balance: RoundRobin}}
spec: {host: good.test, path: /p, to: {name: s}}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: bad}
spec: {host: bad.test, to: {name: s}, tls: {termination: nonsense}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-1, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}, {addresses: [169.254.169.254]}]
ports: [{port: 8080}]
---
kind: Nonsense
`

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(manifests), 0o644); err != nil {
		t.Fatal(err)
	}
	content, err := folder.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Validate(Options{AllowLoopback: true, RouterName: "x"}, content)
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Files: 1, Objects: 3, Problems: report.Problems, places: report.places,
		Routes: []RouteReport{
			{
				Namespace: "default", Name: "bad", Host: "bad.test", Termination: "nonsense", Origin: dir + "/m.yaml, document 2",
				Reason:  "ExtendedValidationFailed",
				Message: `spec.tls.termination: Unsupported value: "nonsense": supported values: "edge", "passthrough", "reencrypt"`,
			},
			{
				Namespace: "default", Name: "good", Host: "good.test", Path: "/p", Termination: "http", Admitted: true, Servers: 1, Origin: dir + "/m.yaml, document 1",
				Check: &CheckReport{Kind: "tcp", Interval: "5s"},
				Notes: []string{
					`annotation haproxy.router.openshift.io/balance: "RoundRobin" is not roundrobin, leastconn, source or random; random is used`,
					"endpoint slice s-1: address 169.254.169.254 is not used: it is a link-local address",
				},
			},
		},
	}
	if diff := cmp.Diff(want, report, cmp.AllowUnexported(Report{}), cmp.Comparer(func(a, b places) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(report.Problems) != 1 || !strings.Contains(report.Problems[0].String(), "m.yaml, document 4: apiVersion and kind must be set") {
		t.Errorf("problems %v", report.Problems)
	}
	if !report.Failed() {
		t.Error("nothing failed")
	}
	if _, err := folder.Load(dir + "/none"); err == nil {
		t.Error("a folder that does not exist is taken")
	}
	if (&Report{}).Failed() {
		t.Error("an empty report failed")
	}
}

// TestFolderToTable runs feeder and controller together.
func TestFolderToTable(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(dir+"/.new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(dir+"/.new", dir+"/m.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	write(manifests)
	store := routing.NewStore()
	c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}, Options: Options{AllowLoopback: true}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := folder.New(folder.Config{Paths: []string{dir}, Sink: c.Sink("manifests"), Settle: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx := run(t, c)
	fed := make(chan error)
	inner, stop := context.WithCancel(ctx)
	go func() { fed <- f.Run(inner) }()
	defer func() {
		stop()
		if err := <-fed; err != nil {
			t.Errorf("feeder: %v", err)
		}
	}()
	<-c.Ready()
	if d := store.Load().Match(&routing.View{Host: []byte("good.test"), Path: []byte("/p")}); d.Kind != routing.Serve || d.Route.Pool().Len() != 1 {
		t.Fatalf("decision %+v", d)
	}
	generation := store.Load().Generation()
	write(strings.ReplaceAll(manifests, "good.test", "better.test"))
	if err := store.Wait(ctx, generation+1); err != nil {
		t.Fatal(err)
	}
	if d := store.Load().Match(&routing.View{Host: []byte("better.test"), Path: []byte("/p/x")}); d.Kind != routing.Serve {
		t.Errorf("decision after a change %+v", d)
	}
}

// fleetOf returns a controller with n routes, each with a service of two endpoints.
func fleetOf(b *testing.B, n int) (*Controller, *routing.Store) {
	store := routing.NewStore()
	c, err := New(Config{Store: store, Routing: routing.Options{Registry: balancer.NewRegistry()}})
	if err != nil {
		b.Fatal(err)
	}
	sink := c.Sink("bench")
	cert, key := keyPair(b, "h.test")
	for i := range n {
		r := aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.apps.test", i), i)
		if i%10 == 0 {
			r = aRoute(fmt.Sprint("r", i), fmt.Sprintf("h%d.apps.test", i), i, edge(cert, key))
		}
		sink.Event(r)
		sink.Event(aSlice(fmt.Sprint("s-", i), fmt.Sprint("s", i), "10.0.0.1", "10.0.0.2"))
	}
	sink.Event(aSlice("s-1", "s", "10.0.0.1", "10.0.0.2"))
	sink.Synced()
	c.handle()
	if got := store.Load().Len(); got != n {
		b.Fatalf("%d routes", got)
	}
	return c, store
}

// BenchmarkOneRoute is one changed route of 10,000 from the event to the published
// table and the status.
func BenchmarkOneRoute(b *testing.B) {
	c, store := fleetOf(b, 10_000)
	sink := &sink{inbox: c.inbox}
	cert, key := keyPair(b, "h.test")
	for _, kind := range []struct {
		name   string
		change func(*routev1.Route)
	}{{"plain", func(*routev1.Route) {}}, {"edge", edge(cert, key)}} {
		b.Run(kind.name, func(b *testing.B) {
			events := [2]source.Event{
				aRoute("r5001", "h5001-a.apps.test", 5001, kind.change), aRoute("r5001", "h5001-b.apps.test", 5001, kind.change),
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				generation := store.Load().Generation()
				sink.Event(events[i&1])
				c.handle()
				if store.Load().Generation() != generation+1 {
					b.Fatal("not published")
				}
			}
		})
	}
}

// BenchmarkOneSlice is one changed EndpointSlice next to 10,000 routes.
func BenchmarkOneSlice(b *testing.B) {
	c, store := fleetOf(b, 10_000)
	sink := &sink{inbox: c.inbox}
	sink.Event(aRoute("own", "own.test", 0, func(o *routev1.Route) { o.Spec.To.Name = "s7" }))
	c.handle()
	events := [2]source.Event{aSlice("s-7", "s7", "10.0.0.1"), aSlice("s-7", "s7", "10.0.0.2")}
	generation := store.Load().Generation()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		sink.Event(events[i&1])
		c.handle()
	}
	if store.Load().Generation() != generation {
		b.Fatal("a table was published")
	}
}

// BenchmarkFirstTable is 10,000 routes at once.
func BenchmarkFirstTable(b *testing.B) {
	for b.Loop() {
		fleetOf(b, 10_000)
	}
}
