package view

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/controller"
	"turnout/internal/testkit/testaddr"
	"turnout/routing"
)

// newGatewayRig is a rig of n HTTPRoutes, each of two rules for two host names of one listener, which lead to the same two servers, and a Route of the same name.
func newGatewayRig(t testing.TB, n int) *rig {
	t.Helper()
	r := newRig(t, 1)
	var rules []routing.RuleSpec
	for i := range n {
		name := fmt.Sprintf("r%05d", i)
		for rule := range 2 {
			for h := range 2 {
				spec := routing.RuleSpec{
					RouteKey: routing.RouteKey{Namespace: "ns00", Name: name, UID: "http-" + name, Rule: 2*rule + h + 1}, Listener: "Gateway/ns00/gw/web", Host: fmt.Sprintf("g%d-%d.test", i, h),
					Match: routing.Match{Path: routing.PathMatch{Kind: routing.PathPrefix, Value: []string{"/", "/a"}[rule]}}, Policy: routing.Policy{ServerTimeout: time.Second},
				}
				var targets []balancer.Target
				for s := range 2 {
					targets = append(targets, balancer.Target{ID: fmt.Sprint(s), Service: "s", Addr: testaddr.Of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(s)}), 80)), Weight: 1})
				}
				spec.Backends = []routing.BackendSpec{{Key: "ns00/s:80", Weight: 1, Targets: targets}}
				rules = append(rules, spec)
			}
		}
		r.objects = append(r.objects, controller.Summary{Kind: "HTTPRoute", Namespace: "ns00", Name: name, UID: "http-" + name, Host: fmt.Sprintf("g%d-0.test", i), Hosts: []string{fmt.Sprintf("g%d-0.test", i)}, Admitted: true})
	}
	r.objects = append(r.objects, controller.Summary{Kind: "Gateway", Namespace: "ns00", Name: "gw", Host: "*", Termination: "HTTP", Reason: "AddressNotAssigned"})
	table, rejected := r.table.ApplyRules(rules, nil)
	table, more := table.ApplyListeners([]routing.ListenerSpec{{Name: "Gateway/ns00/gw/web", Port: "ns00/gw:80"}}, nil)
	if len(rejected)+len(more) > 0 {
		t.Fatal(rejected, more)
	}
	store := routing.NewStore()
	store.Publish(table)
	r.table, r.cfg.Table = table, store.Load
	r.cfg.Gateway = func(kind, namespace, name string) (*controller.GatewayReport, bool) {
		return &controller.GatewayReport{
			Kind: kind, Namespace: namespace, Name: name, UID: "http-" + name, Accepted: true, Hosts: []string{"g0-0.test"},
			Conditions: []controller.GatewayCondition{{Of: "Gateway ns00/gw", Type: "Accepted", Status: "True"}, {Of: "Gateway ns00/gw", Type: "ResolvedRefs", Status: "False", Reason: "BackendNotFound", Message: "gone"}},
		}, name != "none"
	}
	return r
}

// rule is a rule of the table.
func (r *rig) rule(name string, number int) *routing.Route {
	return r.table.Route(routing.RouteKey{Namespace: "ns00", Name: name, UID: "http-" + name, Rule: number})
}

// TestRoutesOfGateways: an HTTPRoute is one line, found by any of its host names, with what all of its rules count and each of its servers once; a Route of
// the same name is another.
func TestRoutesOfGateways(t *testing.T) {
	r := newGatewayRig(t, 3)
	for number := range 4 {
		r.rule("r00000", number+1).Stats().Errors.Add(2)
	}
	for _, c := range []struct {
		text string
		want string // KIND NAME of the lines
	}{
		{"ns00/r00000", "HTTPRoute r00000, Route r00000"}, {"httproute r00000", "HTTPRoute r00000"}, {"g1-1.test", "HTTPRoute r00001"}, {"G2-0.TEST", "HTTPRoute r00002"}, {"gateway", "Gateway gw"},
		{"rejected", "Gateway gw"}, {"trouble", "Gateway gw, Route r00000"}, {"h0.test", "Route r00000"},
	} {
		var got []string
		for _, l := range r.Routes(Search{Text: c.text}).Lines {
			got = append(got, l.Kind+" "+l.Name)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%q: %s, want %s", c.text, text, c.want)
		}
	}
	l := r.Routes(Search{Text: "g0-0.test"}).Lines[0]
	if l.Errors != 8 || l.Servers != (Servers{All: 2, Usable: 2}) || l.Hosts != 2 || l.Termination != "http" {
		t.Errorf("%+v", l)
	}
	if o := r.Overview(); o.Routes != 4 || o.Rejected != 0 {
		t.Errorf("%d routes, %d rejected", o.Routes, o.Rejected)
	}
}

// TestRouteOfGateway: its own page has its servers once, its rules, its settings and what its status says is wrong.
func TestRouteOfGateway(t *testing.T) {
	r := newGatewayRig(t, 1)
	r.rule("r00000", 1).Stats().Errors.Add(1)
	one, ok := r.Route("HTTPRoute", "ns00", "r00000")
	if !ok || one.Kind != "HTTPRoute" || len(one.Servers) != 2 || one.Servers[0].Share != 50 || len(one.Rules) != 4 || one.Errors != 1 || one.Gateway == nil {
		t.Fatalf("%+v", one)
	}
	if rule := one.Rules[0]; rule.Listener != "Gateway/ns00/gw/web" || rule.Host != "g0-0.test" || len(rule.Asks) != 1 || rule.Backends[0] != "ns00/s:80" {
		t.Errorf("%+v", rule)
	}
	if len(one.Report.Settings) == 0 || len(one.Report.Notes) != 1 || !strings.Contains(one.Report.Notes[0], "BackendNotFound") {
		t.Errorf("%+v", one.Report)
	}
	if _, ok := r.Route("HTTPRoute", "ns00", "none"); ok {
		t.Error("a route that there is not")
	}
	if plain, ok := r.Route("", "ns00", "r00000"); !ok || plain.Kind != "Route" || plain.Gateway != nil || len(plain.Servers) != 3 {
		t.Errorf("the Route of the same name: %+v", plain)
	}
	r.cfg.Gateway = nil
	if _, ok := r.Route("HTTPRoute", "ns00", "r00000"); ok {
		t.Error("without the Gateway API")
	}
}

// TestGatewayRoutesAtScale: a page of 10,000 HTTPRoutes takes less than 300 ms, and so does the page of one.
func TestGatewayRoutesAtScale(t *testing.T) {
	n := 10_000
	if testing.Short() || raced {
		n = 500
	}
	r := newGatewayRig(t, n)
	spent := func() time.Duration { // by the process: others may have the processor meanwhile
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	least := func(what func()) time.Duration {
		took := time.Hour
		for range 5 {
			began := spent()
			what()
			took = min(took, spent()-began)
		}
		return took
	}
	list := least(func() {
		if p := r.Routes(Search{Text: "g7-1.test", Order: "errors"}); p.Total != 1 {
			t.Fatalf("%d found", p.Total)
		}
	})
	one := least(func() { r.Route("HTTPRoute", "ns00", "r00007") })
	t.Logf("%d HTTPRoutes, %d rules: a search %v, one route %v", n, r.table.Len(), list, one)
	if list > 300*time.Millisecond || one > 300*time.Millisecond {
		t.Errorf("a search takes %v, one route %v", list, one)
	}
}
