package view

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/internal/testkit/testaddr"
	"turnout/internal/traffic"
	"turnout/proxy"
	"turnout/routing"
)

// rig is a viewer of a router that exists in memory only.
type rig struct {
	*Viewer

	table   *routing.Table
	objects []controller.Summary
	totals  proxy.Totals
	took    proxy.Latencies
	now     time.Time
}

func newRig(t testing.TB, routes int) *rig {
	t.Helper()
	r := &rig{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	specs := make([]routing.RouteSpec, routes)
	for i := range specs {
		specs[i] = routing.RouteSpec{
			RouteKey: routing.RouteKey{Namespace: fmt.Sprintf("ns%02d", i%10), Name: fmt.Sprintf("r%05d", i), UID: fmt.Sprint(i)}, Host: fmt.Sprintf("h%d.test", i),
		}
		for j := range 3 {
			specs[i].Targets = append(specs[i].Targets, balancer.Target{
				ID: fmt.Sprint(i, "/", j), Addr: testaddr.Of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(j)}), 80)), Weight: j,
			})
		}
		r.objects = append(r.objects, controller.Summary{Namespace: specs[i].Namespace, Name: specs[i].Name, UID: specs[i].UID, Host: specs[i].Host, Termination: "http", Admitted: true})
	}
	store := routing.NewStore()
	table, rejected := routing.Compile(routing.Options{}, nil, specs)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	store.Publish(table)
	r.table = table
	var err error
	r.Viewer, err = New(Config{
		Table: store.Load, Totals: func() proxy.Totals { return r.totals }, Now: func() int64 { return r.now.UnixNano() },
		Latencies: func(func(uint32) bool) *proxy.Latencies {
			all := new(proxy.Latencies)
			all.Merge(&r.took)
			return all
		},
		Routes: func() []controller.Summary { return r.objects },
		Route: func(namespace, name string) (*controller.RouteReport, bool) {
			return &controller.RouteReport{Namespace: namespace, Name: name, Admitted: true}, name != "none"
		},
		Changes: func() []controller.Change { return nil }, Clock: func() time.Time { return r.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// stats are the counters of a route by its number.
func (r *rig) stats(i int) *routing.Stats {
	return r.table.Route(routing.RouteKey{Namespace: fmt.Sprintf("ns%02d", i%10), Name: fmt.Sprintf("r%05d", i), UID: fmt.Sprint(i)}).Stats()
}

// TestRoutes: lists are searched, ordered and cut into pages.
func TestRoutes(t *testing.T) {
	r := newRig(t, 120)
	r.objects[7].Admitted, r.objects[7].Reason = false, "HostAlreadyClaimed"
	r.stats(42).Errors.Add(3)
	r.stats(43).Errors.Add(5)
	for _, tt := range []struct {
		search       Search
		total, lines int
		first        string
	}{
		{Search{}, 120, 50, "r00000"},
		{Search{Offset: 100}, 120, 20, "r00048"},
		{Search{Offset: 1000}, 120, 0, ""},
		{Search{Text: "H42.test"}, 1, 1, "r00042"},
		{Search{Text: "ns03/ r0001"}, 1, 1, "r00013"},
		{Search{Text: "rejected"}, 1, 1, "r00007"},
		{Search{Text: "http ns07"}, 12, 12, "r00007"},
		{Search{Text: "nothing"}, 0, 0, ""},
		{Search{Order: "errors", Limit: 2}, 120, 2, "r00043"},
	} {
		p := r.Routes(tt.search)
		first := ""
		if len(p.Lines) > 0 {
			first = p.Lines[0].Name
		}
		if p.Total != tt.total || len(p.Lines) != tt.lines || first != tt.first {
			t.Errorf("%+v: %d routes, %d lines, the first is %q", tt.search, p.Total, len(p.Lines), first)
		}
	}
	if s := r.Routes(Search{Limit: 1}).Lines[0].Servers; s != (Servers{All: 3, Usable: 2, Idle: 1}) {
		t.Errorf("servers %+v", s)
	}
}

// TestSearchIsChecked: what cannot be used names itself, its value and what is allowed.
func TestSearchIsChecked(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"limit", "201", `limit "201" is not a number from 1 to 200`},
		{"offset", "-1", `offset "-1" is not a number from 0 to 1073741824`},
		{"order", "x", `order "x" is unknown, allowed: name, rate, requests, errors, sessions`},
		{"q", string(make([]byte, 257)), "q is longer than 256 bytes"},
	} {
		_, err := ParseSearch(func(name string) string {
			if name == tt.name {
				return tt.value
			}
			return ""
		})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestOverview: rates, reasons and latencies are of the time since somebody looked first, a minute at most.
func TestOverview(t *testing.T) {
	r := newRig(t, 3)
	scale, h := traffic.NewScale(), new(traffic.Histogram)
	r.took.Requests[0][2] = h
	for range 100 {
		h.Observe(time.Second, scale)
	}
	r.totals.Requests, r.totals.Reasons[proxy.ReasonNoRoute] = 100, 5
	if o := r.Overview(); o.Seconds != 0 || o.Traffic.Requests != 0 || o.Traffic.Total != 100 || o.Latency.P50 < 0.9 || o.Latency.P50 > 1.05 {
		t.Errorf("at first: %+v", o)
	}
	r.now = r.now.Add(10 * time.Second)
	for i := range 200 {
		h.Observe(time.Duration(1+i/196*99)*time.Millisecond, scale)
	}
	r.totals.Requests, r.totals.Reasons[proxy.ReasonNoRoute] = 300, 25
	r.stats(1).Sessions.Begin(r.now.UnixNano())
	o := r.Overview()
	if o.Seconds != 10 || o.Traffic.Requests != 20 || o.Traffic.Failed != 2 || o.Latency.Requests != 200 {
		t.Errorf("then: %+v", o)
	}
	if o.Latency.P50 < 0.0009 || o.Latency.P50 > 0.0011 || o.Latency.P99 < 0.09 || o.Latency.P99 > 0.11 {
		t.Errorf("latency %+v", o.Latency)
	}
	if len(o.Reasons) != 1 || o.Reasons[0] != (Reason{"no-route", 20, 25}) {
		t.Errorf("reasons %+v", o.Reasons)
	}
	if len(o.Top) != 1 || o.Top[0].Name != "r00001" || o.Servers != (Servers{All: 9, Usable: 6, Idle: 3}) {
		t.Errorf("top %+v, servers %+v", o.Top, o.Servers)
	}
	r.now = r.now.Add(2 * time.Minute)
	if o = r.Overview(); o.Seconds != 0 {
		t.Errorf("compared with %v s ago", o.Seconds)
	}
}

// TestSamplesAreBounded: however often somebody looks, samples are a second apart and a minute old at most.
func TestSamplesAreBounded(t *testing.T) {
	r := newRig(t, 1)
	for range 1000 {
		r.now = r.now.Add(100 * time.Millisecond)
		r.Overview()
	}
	if n := len(r.samples); n < 59 || n > 61 {
		t.Errorf("%d samples", n)
	}
}

// TestRoute: a route says what its servers are.
func TestRoute(t *testing.T) {
	r := newRig(t, 2)
	route, ok := r.Route("", "ns01", "r00001")
	if !ok || len(route.Servers) != 3 || route.Servers[0].State != "idle" || route.Servers[2].State != "up" || route.Servers[2].Weight != 2 || route.Servers[2].Share != 66.7 {
		t.Errorf("%v %+v", ok, route)
	}
	if _, ok := r.Route("", "ns01", "none"); ok {
		t.Error("a route that is not there")
	}
}

// BenchmarkRoutes is a page of 10,000 routes with three servers each, searched and ordered.
func BenchmarkRoutes(b *testing.B) {
	r := newRig(b, 10_000)
	for b.Loop() {
		if p := r.Routes(Search{Text: "test ns0", Order: "errors"}); p.Total != 10_000 {
			b.Fatal(p.Total)
		}
	}
}

// BenchmarkOverview is a snapshot of 10,000 routes with three servers each.
func BenchmarkOverview(b *testing.B) {
	r := newRig(b, 10_000)
	for b.Loop() {
		r.Overview()
	}
}

// TestRouteWithBackends: servers of all backends are listed, each with its share of all requests.
func TestRouteWithBackends(t *testing.T) {
	r := newRig(t, 1)
	spec := routing.RuleSpec{RouteKey: r.table.Route(routing.RouteKey{Namespace: "ns00", Name: "r00000", UID: "0"}).Key(), Host: "h0.test"}
	for i, weight := range []int{3, 1, 0} {
		spec.Backends = append(spec.Backends, routing.BackendSpec{Key: fmt.Sprint(i), Weight: weight, Targets: []balancer.Target{
			{ID: fmt.Sprint(i), Addr: testaddr.Of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 80)), Weight: 1},
		}})
	}
	table, rejected := r.table.ApplyRules([]routing.RuleSpec{spec}, nil)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	routing.NewStore().Publish(table)
	r.cfg.Table = func() *routing.Table { return table }
	route, _ := r.Route("", "ns00", "r00000")
	if len(route.Servers) != 3 || route.Servers[0].Share != 75 || route.Servers[1].Share != 25 || route.Servers[2].Share != 0 || route.Line.Servers.All != 3 {
		t.Errorf("%+v", route)
	}
}
