package gatewayscale

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"turnout/test/cluster/load"
)

// memory measures what the router takes with all routes while ten Services a second get other endpoints.
func memory(t *testing.T, b *table, routes int, during time.Duration) {
	b.rowf(fmt.Sprintf("resident with %d routes", routes), "%.0f MiB", resident(t))
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	most := 0.0
	begin := time.Now()
	for turn := 1; time.Since(begin) < during; turn++ {
		<-tick.C
		i := turn % (routes / services)
		var list []any
		check(t, yaml.Unmarshal([]byte(endpoints(i, turn)), &list))
		check(t, patch(t.Context(), "EndpointSlice", namespaceOf(i*services), fmt.Sprintf("s%d", i%services), map[string]any{"endpoints": list}))
		if turn%10 == 0 {
			most = max(most, resident(t))
		}
	}
	series, sums := metrics(t)
	b.rowf("resident at most while endpoints of 10 Services a second change", "%.0f MiB", most)
	b.rowf("heap allocated after that", "%.0f MiB", sums["go_memstats_heap_alloc_bytes"]/(1<<20))
	b.rowf(fmt.Sprintf("time series with %d routes", routes), "%d", series)
	if *full { // memory is returned in periods in which nothing happens, not even a scrape
		<-time.After(atRest)
		b.rowf(fmt.Sprintf("resident %s after the last change", atRest), "%.0f MiB", resident(t))
	}
}

// atRest is how long nothing changes before what stays is measured.
const atRest = 45 * time.Second

// churn changes routes, backends and Gateways while clients ask: no request may fail.
func churn(t *testing.T, b *table, address string, during time.Duration) {
	check(t, create(t.Context(), aRoute("live", "loaded", "gw", "a")))
	c := client(address, false)
	eventually(t, "the route is served", func() error {
		_, err := load.Ask(t.Context(), c, "loaded.scale.test")
		return err
	})
	end := startLoad(t, address, "loaded.scale.test")
	begin := time.Now()
	changes := 0
	for turn := 0; time.Since(begin) < during; turn++ {
		for _, change := range changesOf(turn) {
			if err := change(t.Context()); err != nil {
				t.Errorf("turn %d: %v", turn, err)
			}
			changes++
		}
	}
	ready(t, "live", "a")
	ready(t, "live", "b")
	asked, failed := end()
	b.rowf("requests while routes, backends and Gateways changed", "%d, %d failed, %d changes", asked, failed, changes)
}

// changesOf are the changes of a turn.
func changesOf(turn int) []func(ctx context.Context) error {
	name := fmt.Sprintf("turn-%d", turn)
	service := []string{"a", "b"}[turn%2]
	listeners := "[{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}, {name: more, port: 8081, protocol: HTTP}]"
	if turn%2 == 1 {
		listeners, _, _ = strings.Cut(listeners, ", {name: more")
		listeners += "]"
	}
	all := []func(ctx context.Context) error{
		func(ctx context.Context) error { return patch(ctx, "HTTPRoute", "live", "loaded", to(service)) },
		func(ctx context.Context) error { return create(ctx, aRoute("live", name, "gw", "a")) },
		func(ctx context.Context) error { return create(ctx, aGateway("live", name)) },
		func(ctx context.Context) error {
			var list []any
			if err := yaml.Unmarshal([]byte(listeners), &list); err != nil {
				return err
			}
			return patch(ctx, "Gateway", "live", "gw", map[string]any{"spec": map[string]any{"listeners": list}})
		},
		func(ctx context.Context) error { return remove(ctx, "HTTPRoute", "live", name) },
		func(ctx context.Context) error { return remove(ctx, "Gateway", "live", name) },
	}
	if turn%10 == 0 { // other pods
		all = append(all, func(ctx context.Context) error {
			return patch(ctx, "Deployment", "live", []string{"a", "b"}[turn/10%2], map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{"turn": name},
			}}}})
		})
	}
	return all
}
