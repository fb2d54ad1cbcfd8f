package routing

import (
	"maps"
	"slices"
	"testing"

	"turnout/balancer"
	"turnout/internal/testkit/testaddr"
)

// poolKeys returns the keys of the pools that the routes of t have, sorted, and fails if a key has
// two pools.
func poolKeys(t *testing.T, table *Table) []string {
	t.Helper()
	all := make(map[string]*balancer.Pool)
	for p := range table.Pools {
		if known := all[p.Key()]; known != nil && known != p {
			t.Errorf("pool %s is there twice", p.Key())
		}
		all[p.Key()] = p
	}
	return slices.Sorted(maps.Keys(all))
}

// sharing returns n rules of an object with two backends and a mirror each, and a rule for the main
// pool and one for another pool.
func sharingRules(uid string, n int, targets []balancer.Target) []RuleSpec {
	var specs []RuleSpec
	for i := range n {
		s := RuleSpec{RouteKey: RouteKey{Namespace: "ns", Name: "app", UID: uid, Rule: i}, Host: "app.test"}
		s.Match.Path = begins("/" + uid + "/" + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		switch i {
		case 0:
			s.Targets = targets
		case 1, 2:
			s.PoolKey, s.Targets = "canary", targets
		default:
			s.Backends = []BackendSpec{{Key: "a", Weight: i, Targets: targets}, {Key: "b", Weight: 1, Targets: targets}}
			s.Mirrors = []MirrorSpec{{Key: "a", Targets: targets}}
		}
		specs = append(specs, s)
	}
	return specs
}

// TestRulesOfAnObjectSharePools checks that the number of pools of an object follows from its
// backends and not from its rules, through every way to make and change a table, and that the
// counters of a pool outlive these changes.
func TestRulesOfAnObjectSharePools(t *testing.T) {
	targets := []balancer.Target{{ID: "pod", Addr: testaddr.Parse("10.0.0.1:80"), Weight: 1}}
	want := []string{"ns/app/1", "ns/app/1#backend/a", "ns/app/1#backend/b", "ns/app/1#mirror/a", "ns/app/1#targets/canary"}
	registry, store := balancer.NewRegistry(), NewStore()
	publish := func(table *Table, rejected []Rejection) *Table {
		t.Helper()
		if len(rejected) > 0 {
			t.Fatal(rejected)
		}
		store.Publish(table)
		registry.Sweep(table.Pools)
		if pools, _ := registry.Len(); pools != len(poolKeys(t, table)) {
			t.Errorf("the registry has %d pools, the table %d", pools, len(poolKeys(t, table)))
		}
		return table
	}
	table := publish(CompileRules(Options{Registry: registry}, nil, sharingRules("1", 40, targets)))
	if got := poolKeys(t, table); !slices.Equal(got, want) {
		t.Errorf("pools %q, want %q", got, want)
	}
	last := RouteKey{Namespace: "ns", Name: "app", UID: "1", Rule: 39}
	lease, _ := table.Route(last).poolOf("a").Pick(balancer.Pick{})
	defer lease.Release()
	check := func(what string, key RouteKey) {
		t.Helper()
		if p := table.Route(key).poolOf("a"); p.Servers()[0] != lease.Server() || p.Servers()[0].Requests() != 1 {
			t.Errorf("%s: the counters of the pool are others", what)
		}
	}
	check("another rule", RouteKey{Namespace: "ns", Name: "app", UID: "1", Rule: 3})
	changed := sharingRules("1", 40, targets)[39]
	changed.Policy.HSTS = "max-age=1"
	table = publish(table.ApplyRules([]RuleSpec{changed}, nil))
	check("the rule is changed", last)
	table = publish(table.ApplyRules(sharingRules("1", 50, targets)[40:], []RouteKey{last}))
	check("rules come and go", RouteKey{Namespace: "ns", Name: "app", UID: "1", Rule: 49})
	table = publish(table.ApplyRules(sharingRules("2", 5, targets), nil))
	if got := poolKeys(t, table); len(got) != 2*len(want) {
		t.Errorf("two objects have the pools %q", got)
	}
	table = publish(CompileRules(Options{Registry: registry}, table, sharingRules("1", 4, targets)))
	check("compiled again", RouteKey{Namespace: "ns", Name: "app", UID: "1", Rule: 3})
	other := append(slices.Clone(targets), balancer.Target{ID: "second", Addr: testaddr.Parse("10.0.0.2:80"), Weight: 1})
	refill := sharingRules("1", 4, other)[3]
	if table.Route(refill.RouteKey).Refill(&refill); table.Route(refill.RouteKey).poolOf("a").Len() != 2 {
		t.Error("a pool is not refilled")
	}
	check("refilled", refill.RouteKey)
	publish(CompileRules(Options{Registry: registry}, table, nil))
	if pools, _ := registry.Len(); pools != 0 {
		t.Errorf("%d pools are left", pools)
	}
}

// TestPoolsHaveOneContent checks that a rule is rejected whose pool has other servers than the pool
// of that name of another rule. It would send the requests of one of them to the wrong service.
func TestPoolsHaveOneContent(t *testing.T) {
	targets := []balancer.Target{{ID: "pod", Addr: testaddr.Parse("10.0.0.1:80"), Weight: 1}}
	others := []balancer.Target{{ID: "other", Addr: testaddr.Parse("10.0.0.2:80"), Weight: 1}}
	for what, change := range map[string]func(specs []RuleSpec){
		"main pool":    func(specs []RuleSpec) { specs[1].PoolKey, specs[1].Targets = "", others },
		"other pool":   func(specs []RuleSpec) { specs[2].Targets = others },
		"backend":      func(specs []RuleSpec) { specs[4].Backends[1].Targets = others },
		"no endpoints": func(specs []RuleSpec) { specs[4].Backends[1].Targets = nil },
		"mirror":       func(specs []RuleSpec) { specs[4].Mirrors[0].Targets = others },
		"config":       func(specs []RuleSpec) { specs[4].Backends[0].Pool.Limit = 3 },
		"": func(specs []RuleSpec) {
			specs[4].Backends[0] = BackendSpec{Key: "a", Weight: 1, Status: 500, Targets: others}
			specs[4].Backends[1].Targets = slices.Clone(targets)
		},
	} {
		specs := sharingRules("1", 5, targets)
		change(specs)
		_, rejected := CompileRules(Options{}, nil, specs)
		if (len(rejected) > 0) != (what != "") || len(rejected) > 1 {
			t.Errorf("%s: %v", what, rejected)
		}
	}
	specs := append(sharingRules("1", 5, targets), sharingRules("2", 5, others)...)
	if _, rejected := CompileRules(Options{}, nil, specs); len(rejected) > 0 {
		t.Errorf("objects with pools of the same names: %v", rejected)
	}
}
