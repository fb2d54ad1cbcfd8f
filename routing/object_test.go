package routing

import (
	"net/netip"
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/ratelimit"
	"turnout/internal/testkit/testaddr"
)

// TestLimitsBelongToTheObject checks that all rules of one object share one request count and one
// table of rates, through every change of the table. Another object has its own count and table.
func TestLimitsBelongToTheObject(t *testing.T) {
	rule := func(uid string, n int) RuleSpec {
		s := RuleSpec{RouteKey: RouteKey{Namespace: "ns", Name: "app", UID: uid, Rule: n}, Host: "app.test"}
		s.Match.Path.Value = "/" + uid + string(rune('a'+n))
		s.Policy.Rates = ratelimit.Limits{HTTP: ratelimit.Limit{On: true, N: 20}}
		return s
	}
	all := func(n int) (specs []RuleSpec) {
		for i := range n {
			specs = append(specs, rule("1", i), rule("2", i))
		}
		return specs
	}
	check := func(what string, tab *Table, want *object) *object {
		t.Helper()
		var first *object
		for r := range tab.Routes {
			switch {
			case r.key.UID == "1" && first == nil:
				first = r.object
			case (r.key.UID == "1") != (r.object == first) && first != nil:
				t.Errorf("%s: rule %v has another object", what, r.key)
			}
			if r.Rates() != r.object.rates.Load() || r.Rates() == nil {
				t.Errorf("%s: rule %v has rates of its own", what, r.key)
			}
		}
		if want != nil && first != want {
			t.Errorf("%s: the counters were lost", what)
		}
		return first
	}
	tab, _ := CompileRules(Options{}, nil, all(3))
	object := check("compiled", tab, nil)
	again, _ := CompileRules(Options{}, tab, all(5))
	check("compiled again", again, object)
	more, _ := again.ApplyRules([]RuleSpec{rule("1", 7)}, []RouteKey{rule("1", 0).RouteKey, rule("2", 1).RouteKey})
	check("the first rule is gone, one has come", more, object)
	none, _ := more.ApplyRules(nil, func() (keys []RouteKey) {
		for r := range more.Routes {
			keys = append(keys, r.key)
		}
		return keys
	}())
	if none.objects.count != 0 {
		t.Errorf("%d objects are left without rules", none.objects.count)
	}
	// The limit holds for the sum over the rules.
	now, passed := int64(time.Hour), 0
	client := netip.MustParseAddr("192.0.2.1")
	for range 30 {
		for n := range 3 {
			r := tab.Route(rule("1", n).RouteKey)
			if ticket, ok := r.Rates().Enter(client, now, r.Policy().Rates, true); ok {
				passed++
				ticket.Leave()
			}
		}
	}
	if passed != 20 {
		t.Errorf("%d requests passed a limit of 20", passed)
	}
}

// TestLimitOfAPodBelongsToTheObject checks that the limit of a route holds once for a pod that
// several of its pools select. Mirrored copies do not count against it.
func TestLimitOfAPodBelongsToTheObject(t *testing.T) {
	spec := RouteSpec{RouteKey: RouteKey{Namespace: "ns", Name: "app", UID: "1"}, Host: "app.test", Limit: 2}
	spec.Targets = []balancer.Target{{ID: "pod", Addr: testaddr.Of(netip.MustParseAddrPort("10.0.0.1:80")), Weight: 1}}
	var rules []RuleSpec
	for n := range 3 {
		rule := spec.Rule()
		rule.RouteKey.Rule, rule.Match.Path.Value = n, "/"+string(rune('a'+n))
		rule.PoolKey = []string{"", "one", "two"}[n]
		rule.Mirrors = []MirrorSpec{{Key: "m", Pool: rule.Pool, Targets: spec.Targets}}
		rules = append(rules, rule)
	}
	tab, rejected := CompileRules(Options{}, nil, rules)
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	NewStore().Publish(tab)
	got, copies := 0, 0
	for r := range tab.Routes {
		for range 3 {
			if _, ok := r.Mirrors()[0].Pool().Pick(balancer.Pick{}); ok {
				copies++
			}
			if _, ok := r.Pool().Pick(balancer.Pick{}); ok {
				got++
			}
		}
	}
	if got != 2 || copies != 2 {
		t.Errorf("the pod has %d requests and %d copies, want 2 and 2", got, copies)
	}
}
