package metrics

import (
	"fmt"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// TestQueueSeries: a route with a limit says who waits; of others nobody waits.
func TestQueueSeries(t *testing.T) {
	cfg := config(t)
	spec := routing.RouteSpec{
		RouteKey: routing.RouteKey{Namespace: "ns", Name: "limited", UID: "l"}, Host: "l.test", Limit: 1,
		Policy:  routing.Policy{ServerTimeout: time.Second, TunnelTimeout: time.Second, ConnectTimeout: time.Second},
		Targets: []balancer.Target{{ID: "ept:svc::10.9.9.9:80", Addr: testaddr.Parse("10.9.9.9:80"), Weight: 1, Service: "svc"}},
	}
	table, rejected := cfg.Table().Apply([]routing.RouteSpec{spec}, nil)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	routing.NewStore().Publish(table)
	cfg.Table = func() *routing.Table { return table }
	pool := table.Route(spec.RouteKey).Pool()
	lease, _ := pool.Pick(balancer.Pick{})
	cookie := []byte(lease.Server().Cookie())
	for _, in := range []balancer.Pick{{}, {}, {Cookie: cookie}} {
		pool.Wait(in, &balancer.Waiter{Ready: func() {}}, 0)
	}
	got := scrape(t, cfg)
	back, server := "{backend=http,namespace=ns,route=limited}", "{namespace=ns,pod=,route=limited,server=10.9.9.9:80,service=svc}"
	for name, want := range map[string]float64{
		"haproxy_backend_current_queue" + back:                                       2,
		"haproxy_backend_max_queue" + back:                                           2,
		"haproxy_backend_http_average_queue_latency_milliseconds" + back:             0,
		"haproxy_server_current_queue" + server:                                      1,
		"haproxy_server_max_queue" + server:                                          1,
		"haproxy_server_http_average_queue_latency_milliseconds" + server:            0,
		"haproxy_backend_connections_total{backend=http,namespace=ns,route=limited}": 0,
	} {
		if v, ok := got[name]; !ok || fmt.Sprint(v) != fmt.Sprint(want) {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	if n, ok := got["haproxy_backend_current_queue{backend=http,namespace=ns,route=http-route}"]; !ok || n != 0 {
		t.Error("a route without a limit does not say that nobody waits")
	}
}
