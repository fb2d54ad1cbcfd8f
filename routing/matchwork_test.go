package routing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"turnout/internal/wire/field"
)

// inNamespace gives a rule on host h.test its namespace and key.
func inNamespace(namespace string, n int, m Match) RuleSpec {
	s := ruleOf(n, m)
	s.Namespace, s.UID = namespace, "u-"+namespace
	return s
}

func rulesTable(t testing.TB, specs ...RuleSpec) *Table {
	t.Helper()
	table, rejections := CompileRules(Options{}, nil, specs)
	if len(rejections) > 0 {
		t.Fatalf("rejected: %v", rejections[0])
	}
	return table
}

// slowest is an expression below 1,024 bytes whose program has as many steps for each byte as the
// limits permit.
const slowest = "/(?:[^/]?){900}x"

func manyCookies(bytes int) []field.Field {
	return []field.Field{{Name: []byte("cookie"), Value: []byte(strings.Repeat("a=1; ", bytes/5))}}
}

// attacks are the figures of known attacks. Each took from 2 ms to 5 s of an event loop.
func attacks() map[string]struct {
	rules []RuleSpec
	view  View
} {
	path := "/" + strings.Repeat("a", 20<<10)
	expressions := make([]RuleSpec, 64)
	for i := range expressions {
		expressions[i] = ruleOf(i, Match{Path: matching(fmt.Sprintf("%s%d", slowest, i))})
	}
	var parameters []RuleSpec
	for r := range 8 {
		for m := range 128 {
			var query []ValueMatch
			for q := range 16 {
				query = append(query, ValueMatch{Name: fmt.Sprintf("p%d", q), Value: "v"})
			}
			query[15].Value = fmt.Sprintf("w%d.%d", r, m)
			parameters = append(parameters, ruleOf(len(parameters), Match{Query: query}))
		}
	}
	var query strings.Builder
	query.WriteString("?")
	for i := range 1000 {
		fmt.Fprintf(&query, "%%70%d=v&", 15-i%16)
	}
	for query.Len() < 20<<10 {
		query.WriteString("&")
	}
	canary := []RuleSpec{ruleOf(0, Match{}), ruleOf(1, Match{Cookies: valuesOf("canary=always")})}
	return map[string]struct {
		rules []RuleSpec
		view  View
	}{
		"an expression and a long path":      {expressions[:1], View{Path: []byte(path)}},
		"64 expressions and a long path":     {expressions, View{Path: []byte(path)}},
		"64 expressions and a short path":    {expressions, View{Path: []byte(path[:200])}},
		"16,384 conditions on parameters":    {parameters, View{Path: []byte("/"), Query: []byte(query.String())}},
		"a canary by cookie and 20 KB of it": {canary, View{Path: []byte("/"), Fields: manyCookies(20 << 10)}},
	}
}

// TestMatchingARequestHasABudget checks that no rules and no request cost more than the budget of a
// namespace. A request that needs more is neither served by a later rule nor answered as if there
// were no rule.
func TestMatchingARequestHasABudget(t *testing.T) {
	for name, a := range attacks() {
		table := rulesTable(t, a.rules...)
		v := a.view
		v.Host = []byte("h.test")
		d := table.Match(&v)
		if most := pooledWork/2 + maxVisits; v.Work() > most {
			t.Errorf("%s: %d units of work, at most %d", name, v.Work(), most)
		}
		if over := v.Undecided() != nil; over != (d.Kind == Exhausted) {
			t.Errorf("%s: decision %d, undecided namespaces %q", name, d.Kind, v.Undecided())
		}
		v.begun = false
		if n := testing.AllocsPerRun(10, func() {
			v.begun = false
			table.Match(&v)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestOrdinaryRequestsAreDecided checks that large but ordinary rules and requests stay far within
// the budget.
func TestOrdinaryRequestsAreDecided(t *testing.T) {
	var rules []RuleSpec
	for i := range 256 {
		rules = append(rules, ruleOf(i, Match{Path: matching(fmt.Sprintf(`/api/v[0-9]+/service-%d/(?:users|orders)/[0-9a-f-]{36}(?:/.*)?`, i))}))
	}
	for i := range 256 {
		rules = append(rules, ruleOf(256+i, Match{Path: begins("/"), Headers: valuesOf(fmt.Sprintf("x-version=%d", i), "x-tenant~[a-z]+")}))
	}
	table := rulesTable(t, append(rules, ruleOf(512, Match{Path: begins("/"), Query: valuesOf("debug=1"), Cookies: valuesOf("beta=always")}))...)
	for text, want := range map[string]int{
		"GET /api/v1/service-255/users/01234567-89ab-cdef-0123-456789abcdef/" + strings.Repeat("long/", 200): 255,
		"GET /\nx-version: 255\nx-tenant: shop": 511,
		"GET /x?" + strings.Repeat("a=b&", 400) + "debug=1\ncookie: " + strings.Repeat("c=d; ", 300) + "beta=always": 512,
	} {
		v := request(text)
		if got := taker(table, v); got != want || v.Work() > pooledWork/6 {
			t.Errorf("%.60s: rule %d, want %d; %d units of work", text, got, want, v.Work())
		}
	}
}

// TestBudgetIsSharedByNamespaces checks that rules of one namespace that use all their work do not
// affect another namespace's requests on the same host and path, in any order of rules. Their own
// requests do not fall through to another rule of their namespace.
func TestBudgetIsSharedByNamespaces(t *testing.T) {
	costly := func(namespace string, first int) (rules []RuleSpec) {
		for i := range 64 {
			rules = append(rules, inNamespace(namespace, first+i, Match{Path: matching(fmt.Sprintf("%s%d", slowest, i))}))
		}
		return rules
	}
	path := "/" + strings.Repeat("a", 200)
	var attackers []RuleSpec
	for _, namespace := range []string{"m1", "m2", "m3", "m4"} {
		attackers = append(attackers, costly(namespace, 0)...)
	}
	victim := Match{Path: begins("/"), Headers: valuesOf("x-shop~[a-z]+", "x-version=1"), Query: valuesOf("q=1"), Cookies: valuesOf("c=1")}
	table := rulesTable(t, append(attackers, inNamespace("shop", 0, victim))...)
	v := request("GET " + path + "?q=1\nx-shop: abc\nx-version: 1\ncookie: c=1")
	if d := table.Match(v); d.Kind != Serve || d.Route.Namespace() != "shop" || len(v.Undecided()) != 4 {
		t.Errorf("decision %d, route %v, undecided %q", d.Kind, d.Route, v.Undecided())
	}
	if v.Work() > MatchWork {
		t.Errorf("%d units of work, at most %d", v.Work(), MatchWork)
	}
	// Whatever rule of its own namespace comes later, with conditions or without, on the same host
	// or on a wildcard of it.
	for name, later := range map[string]RuleSpec{
		"with a condition":    inNamespace("m1", 100, Match{Path: begins("/"), Headers: valuesOf("x-shop=abc")}),
		"without a condition": inNamespace("m1", 100, Match{Path: begins("/")}),
		"an exact path":       inNamespace("m1", 100, Match{Path: begins(path)}),
		"of a wildcard": func() RuleSpec {
			s := inNamespace("m1", 100, Match{})
			s.Host, s.Wildcard = "x.test", true
			return s
		}(),
	} {
		table := rulesTable(t, append(costly("m1", 0), later)...)
		v := request("GET " + path + "\nx-shop: abc")
		if d := table.Match(v); d.Kind != Exhausted || d.Route != nil {
			t.Errorf("%s: decision %d, route %v", name, d.Kind, d.Route)
		}
	}
}

// TestRulesThatAreLookedAtAreBounded checks that many rules cost a request little if their path
// does not cover it or the work of their namespace is used up. However many namespaces have such
// rules on the same host and path, and in whatever order, requests to a rule of another namespace
// are served.
func TestRulesThatAreLookedAtAreBounded(t *testing.T) {
	const n = 18 << 10
	of := func(namespaces int, m Match) (rules []RuleSpec) {
		for i := range n {
			s := inNamespace(fmt.Sprint("m", i%namespaces), i, m)
			s.Created = time.Unix(int64(i), 0)
			rules = append(rules, s)
		}
		return rules
	}
	costly := valuesOf("x=1")
	all, one, few := MatchWork, pooledWork/2+maxVisits+64, 64
	for name, c := range map[string]struct {
		namespaces int
		match      Match
		most       int
	}{
		"another path":              {1, Match{Path: begins("/a"), Headers: costly}, few},
		"another path of two":       {2, Match{Path: begins("/a"), Headers: costly}, few},
		"a namespace without work":  {1, Match{Path: begins("/"), Headers: costly}, one},
		"expressions without work":  {1, Match{Path: matching("/c"), Headers: costly}, one},
		"of two that alternate":     {2, Match{Path: begins("/"), Headers: costly}, all},
		"of many that alternate":    {90, Match{Path: begins("/b"), Headers: costly}, all},
		"expressions that do":       {2, Match{Path: matching("/c"), Headers: costly}, all},
		"expressions of many":       {90, Match{Path: matching("/c"), Headers: costly}, all},
		"exact paths of many":       {90, Match{Path: exactly("/b"), Headers: costly}, all},
		"without a condition":       {90, Match{Path: exactly("/b/c")}, few},
		"a method of the same path": {7, Match{Path: begins("/b"), Method: "PUT"}, all},
	} {
		rivals := rulesTable(t, of(c.namespaces, c.match)...)
		for what, own := range map[string]Match{
			"a path": {Path: begins("/")}, "the same path": {Path: begins("/b")},
			"conditions": {Path: begins("/"), Headers: valuesOf("x=2", "y~[a-z]+")}, "an expression": {Path: matching("/[a-c]")},
		} {
			v := request("GET /b\nx: 2\ny: abc")
			table, _ := rivals.ApplyRules([]RuleSpec{inNamespace("shop", n, own)}, nil)
			d := table.Match(v)
			if d.Kind != Serve || d.Route.Namespace() != "shop" || v.Work() > c.most {
				t.Errorf("%s, %s: decision %d with %d units of work, want at most %d", name, what, d.Kind, v.Work(), c.most)
			}
		}
	}
	// The same without any condition, where paths alone decide.
	table := rulesTable(t, append(of(1, Match{Path: begins("/a")}), inNamespace("shop", 0, Match{Path: begins("/")}))...)
	g := table.hosts.find([]byte("h.test"))
	if m := g.more; m.special || m.entries[m.last([]byte("/b"))].up != 0 {
		t.Error("entries of a path that does not cover the request are looked at one by one")
	}
}

// TestApartDecidesAsInOrder checks that the rules of several namespaces have the same decision if
// those of each namespace are looked at apart.
func TestApartDecidesAsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var specs []RuleSpec
		for i := range 1 + r.IntN(40) {
			s := inNamespace(fmt.Sprint("m", r.IntN(4)), i, precedence[r.IntN(len(precedence))])
			s.Insecure = []InsecurePolicy{InsecureAllow, InsecureRedirect, InsecureNone}[r.IntN(3)]
			if r.IntN(8) == 0 {
				s.Host, s.Wildcard = "x.test", true
			}
			specs = append(specs, s)
		}
		table := rulesTable(t, specs...)
		for _, text := range []string{"GET /a/b/c?q1=1&q2=2\nh1: 1\nh2: 2", "PUT /a/b/c?q2=2\nh2: 2", "GET /a/b", "PUT /", "GET /a/b/cd\nh1: 1"} {
			v := request(text)
			v.Secure = r.IntN(2) == 0
			apart := *v
			apart.Matching = nil
			apart.begin().visits = maxVisits + 1
			if a, b := table.Match(v), table.Match(&apart); a != b {
				t.Fatalf("%q: decision %d, route %v; apart %d, %v", text, a.Kind, a.Route, b.Kind, b.Route)
			}
		}
	}
}

// TestIndexesAreBounded checks that a request with more names than an index can hold is undecided.
// It is not decided by a part of the names.
func TestIndexesAreBounded(t *testing.T) {
	last := strings.Repeat("a=1&", maxNames-1)
	for name, c := range map[string]struct {
		m    Match
		view *View
		want DecisionKind
	}{
		"parameters":          {Match{Query: valuesOf("z=1")}, request("GET /?" + distinct("&", maxNames-1) + "&z=1"), Serve},
		"too many parameters": {Match{Query: valuesOf("z=1")}, request("GET /?" + distinct("&", maxNames) + "&z=1"), Exhausted},
		"many of one name":    {Match{Query: valuesOf("z=1")}, request("GET /?" + last + last + "z=1"), Serve},
		"cookies":             {Match{Cookies: valuesOf("z=1")}, request("GET /\ncookie: " + distinct(";", maxNames-1) + ";z=1"), Serve},
		"too many cookies":    {Match{Cookies: valuesOf("z=1")}, request("GET /\ncookie: " + distinct(";", maxNames) + ";z=1"), Exhausted},
	} {
		if d := rulesTable(t, ruleOf(0, c.m)).Match(c.view); d.Kind != c.want {
			t.Errorf("%s: decision %d, want %d", name, d.Kind, c.want)
		}
	}
}

// distinct joins n parameters or cookies with different names.
func distinct(separator string, n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("n%d=%d", i, i))
	}
	return strings.Join(list, separator)
}

// TestIndexesDecideAsScans checks that conditions on fields have the same result with an index and
// without.
func TestIndexesDecideAsScans(t *testing.T) {
	for n := range 3 * maxScans {
		headers := valuesOf("b~[x-z]")
		for i := range n {
			headers = append(headers, ValueMatch{Name: fmt.Sprintf("h%d", i), Value: "1"})
		}
		for text, want := range map[string]bool{"b: a\nb: y": true, "b: y\nb: a": true, "b: a": false, "": false} {
			v := request("GET /\n" + text)
			for i := range n {
				v.Fields = append(v.Fields, field.Field{Name: []byte(fmt.Sprintf("h%d", i)), Value: []byte("1")})
			}
			if got := taker(compileRules(t, Match{Headers: headers}), v) == 0; got != want {
				t.Errorf("%d conditions before, %q: %t", n, text, got)
			}
		}
	}
}

// TestCookiesAreConditions checks that all pairs of all Cookie fields count, that names are exact,
// and that quotes around values do not matter.
func TestCookiesAreConditions(t *testing.T) {
	table := compileRules(t, Match{Cookies: valuesOf("canary=always")})
	for fields, want := range map[string]int{
		"cookie: canary=always": 0, "cookie: a=b; canary=always": 0, "cookie: a=b;canary=always;c": 0, "cookie: canary=never; canary=always": 0,
		"cookie: a=b\ncookie: canary=always": 0, `cookie: canary="always"`: 0, "cookie: canary=always2": -1, "cookie: xcanary=always": -1,
		"cookie: a=canary=always": -1, "cookie: Canary=always": -1, "x: canary=always": -1, "cookie: canary": -1, "cookie: ;;;": -1, "cookie: ": -1,
	} {
		if got := taker(table, request("GET /\n"+fields)); got != want {
			t.Errorf("%q: rule %d, want %d", fields, got, want)
		}
	}
}

// BenchmarkMatch measures Match for hosts whose rules have paths only, and for hosts whose rules
// have conditions.
func BenchmarkMatch(b *testing.B) {
	var paths []RuleSpec
	for i := range 100 {
		paths = append(paths, ruleOf(i, Match{Path: begins(fmt.Sprintf("/a/%d", i))}))
	}
	canary := []RuleSpec{ruleOf(0, Match{}), ruleOf(1, Match{Headers: valuesOf("x-canary=always")})}
	for _, c := range []struct {
		name  string
		rules []RuleSpec
		view  *View
	}{
		{"sole", paths[:1], request("GET /a/0/users/1")},
		{"one path", []RuleSpec{ruleOf(0, Match{})}, request("GET /a/0/users/1")},
		{"100 paths", paths, request("GET /a/77/users/1?x=y")},
		{"canary header", canary, request("GET /a/77/users/1\nhost: h.test\nuser-agent: x\naccept: */*\ncookie: a=b\naccept-encoding: gzip")},
		{"expression", []RuleSpec{ruleOf(0, Match{Path: matching("/a/[0-9]+/users/.*")})}, request("GET /a/77/users/1?x=y")},
		{"query", []RuleSpec{ruleOf(0, Match{Query: valuesOf("x=y")})}, request("GET /a/77/users/1?z=1&x=y")},
	} {
		b.Run(c.name, func(b *testing.B) {
			table := rulesTable(b, c.rules...)
			var matching Matching
			b.ReportAllocs()
			for b.Loop() {
				v := *c.view
				v.Matching = &matching
				table.Match(&v)
			}
		})
	}
}
