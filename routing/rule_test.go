package routing

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/expression"
	"turnout/internal/wire/field"
)

// ruleOf returns the rule number n of one object, on host h.test.
func ruleOf(n int, m Match) RuleSpec {
	return RuleSpec{RouteKey: RouteKey{Namespace: "ns", Name: "object", UID: "u", Rule: n}, Host: "h.test", Match: m}
}

func compileRules(t testing.TB, matches ...Match) *Table {
	t.Helper()
	var specs []RuleSpec
	for i, m := range matches {
		specs = append(specs, ruleOf(i, m))
	}
	table, rejections := CompileRules(Options{}, nil, specs)
	if len(rejections) > 0 {
		t.Fatalf("rejected: %v", rejections)
	}
	return table
}

// request makes a view of "METHOD TARGET" and lines of fields.
func request(text string) *View {
	lines := strings.Split(text, "\n")
	method, target, _ := strings.Cut(lines[0], " ")
	path, query, asked := strings.Cut(target, "?")
	v := &View{Host: []byte("h.test"), Method: []byte(method), Path: []byte(path)}
	if asked {
		v.Query = []byte("?" + query)
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		v.Fields = append(v.Fields, field.Field{Name: []byte(name), Value: []byte(value)})
	}
	return v
}

// taker returns the number of the rule that takes a request, -1 if none does.
func taker(t *Table, v *View) int {
	d := t.Match(v)
	if d.Kind != Serve {
		return -1
	}
	return d.Route.Key().Rule
}

func stored(value string) PathMatch  { return PathMatch{Kind: PathStored, Value: value} }
func begins(value string) PathMatch  { return PathMatch{Kind: PathPrefix, Value: value} }
func exactly(value string) PathMatch { return PathMatch{Kind: PathExact, Value: value} }
func matching(text string) PathMatch { return PathMatch{Kind: PathExpression, Value: text} }

// values returns conditions "name=value", of expressions "name~text".
func valuesOf(texts ...string) (list []ValueMatch) {
	for _, text := range texts {
		if name, value, ok := strings.Cut(text, "~"); ok {
			list = append(list, ValueMatch{Name: name, Value: value, Expression: true})
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		list = append(list, ValueMatch{Name: name, Value: value})
	}
	return list
}

// TestRuleMatches asks a table of one rule.
func TestRuleMatches(t *testing.T) {
	for _, c := range []struct {
		what     string
		match    Match
		yes, not []string
	}{
		{"everything", Match{}, []string{"GET /", "POST /a?b", "OPTIONS *"}, nil},
		{"exact path", Match{Path: exactly("/a/b")}, []string{"GET /a/b", "GET /a/b?x"}, []string{"GET /a/b/", "GET /a/b/c", "GET /a", "GET /A/b", "GET /a/c", "GET /", "OPTIONS *"}},
		{"exact root", Match{Path: exactly("/")}, []string{"GET /"}, []string{"GET /a", "GET //"}},
		{"prefix by segments", Match{Path: begins("/a/b")}, []string{"GET /a/b", "GET /a/b/", "GET /a/b/c"}, []string{"GET /a/bc", "GET /a"}},
		{"slash at the end of a prefix", Match{Path: begins("/a/b/")}, []string{"GET /a/b", "GET /a/b/", "GET /a/b/c"}, []string{"GET /a/bc"}},
		{"prefix of all", Match{Path: begins("/")}, []string{"GET /", "GET /a"}, nil},
		{"stored path with a slash", Match{Path: stored("/a/")}, []string{"GET /a/", "GET /a/b"}, []string{"GET /a", "GET /ab"}},
		{"expression", Match{Path: matching("/v[0-9]+/.*|/x")}, []string{"GET /v1/a", "GET /x", "GET /v22/"}, []string{"GET /v/a", "GET /a/v1/a", "GET /x/y", "GET /xy"}},
		{"method", Match{Method: "PUT"}, []string{"PUT /"}, []string{"GET /", "put /", "PUTS /"}},
		{"header", Match{Headers: valuesOf("X-Version=two")}, []string{"GET /\nx-version: two", "GET /\nx-version: one\nx-version: two"}, []string{"GET /", "GET /\nx-version: Two", "GET /\nx-versions: two"}},
		{"header of any value", Match{Headers: valuesOf("X-Version~.*")}, []string{"GET /\nx-version: ", "GET /\nx-version: a"}, []string{"GET /"}},
		{"header by expression", Match{Headers: valuesOf("x-version~a|bc")}, []string{"GET /\nx-version: bc"}, []string{"GET /\nx-version: ab", "GET /\nx-version: xbc"}},
		{"two headers", Match{Headers: valuesOf("a=1", "b=2")}, []string{"GET /\nb: 2\na: 1"}, []string{"GET /\na: 1", "GET /\nb: 2", "GET /\na: 2\nb: 1"}},
		{"a name twice: the first counts", Match{Headers: valuesOf("a=1", "A=2")}, []string{"GET /\na: 1"}, []string{"GET /\na: 2"}},
		{"empty header", Match{Headers: valuesOf("a=")}, []string{"GET /\na: "}, []string{"GET /", "GET /\na: 1"}},
		{"query", Match{Query: valuesOf("animal=whale")}, []string{"GET /?animal=whale", "GET /?x&animal=whale&y=1", "GET /?animal=w%68ale", "GET /?%61nimal=whale", "GET /?animal=whale&animal=cat"},
			[]string{"GET /", "GET /?", "GET /?animal", "GET /?animal=cat&animal=whale", "GET /?Animal=whale", "GET /?animal=whales", "GET /?xanimal=whale"}},
		{"query with blanks", Match{Query: valuesOf("q=a b")}, []string{"GET /?q=a+b", "GET /?q=a%20b"}, []string{"GET /?q=a%2Bb", "GET /?q=a%2"}},
		{"query by expression", Match{Query: valuesOf("q~a+")}, []string{"GET /?q=aaa", "GET /?q=%61"}, []string{"GET /?q=", "GET /?q=ab"}},
		{"query without a value", Match{Query: valuesOf("q=")}, []string{"GET /?q", "GET /?q=", "GET /?a=1&q&b"}, []string{"GET /?q=1", "GET /?"}},
		{"broken encoding stands for itself", Match{Query: valuesOf("q=%zz%4")}, []string{"GET /?q=%zz%4"}, nil},
		{"long encoded value", Match{Query: valuesOf("q=" + strings.Repeat("a", 300))}, []string{"GET /?q=" + strings.Repeat("%61", 300)}, []string{"GET /?q=" + strings.Repeat("%61", 299)}},
		{"all at once", Match{Path: begins("/p"), Method: "POST", Headers: valuesOf("a=1"), Query: valuesOf("b=2")}, []string{"POST /p/x?b=2\na: 1"},
			[]string{"GET /p?b=2\na: 1", "POST /?b=2\na: 1", "POST /p?b=3\na: 1", "POST /p?b=2\na: 2"}},
		{"all at once with an expression", Match{Path: matching("/p.*"), Method: "POST", Headers: valuesOf("a=1")}, []string{"POST /px\na: 1"}, []string{"GET /px\na: 1", "POST /px", "POST /q\na: 1"}},
	} {
		table := compileRules(t, c.match)
		for _, r := range c.yes {
			if taker(table, request(r)) != 0 {
				t.Errorf("%s: %q is not taken", c.what, r)
			}
		}
		for _, r := range c.not {
			if taker(table, request(r)) != -1 {
				t.Errorf("%s: %q is taken", c.what, r)
			}
		}
	}
}

// precedence is matches that all take the same request, in the order they are tried in.
var precedence = []Match{
	{Path: exactly("/a/b/c"), Method: "GET"},
	{Path: exactly("/a/b/c"), Headers: valuesOf("h1=1", "h2=2")},
	{Path: exactly("/a/b/c"), Query: valuesOf("q1=1", "q2=2")},
	{Path: exactly("/a/b/c")},
	{Path: matching("/a/b/c|/longer"), Query: valuesOf("q1=1")},
	{Path: matching("/a/b/c|/longer")},
	{Path: matching("/a/.*"), Method: "GET"},
	{Path: matching("/a/.*")},
	{Path: begins("/a/b/c"), Method: "GET", Headers: valuesOf("h1=1")},
	{Path: begins("/a/b/c"), Method: "GET", Query: valuesOf("q1=1", "q2=2")},
	{Path: begins("/a/b/c"), Method: "GET"},
	{Path: begins("/a/b/c"), Headers: valuesOf("h1=1", "h2=2")},
	{Path: begins("/a/b/c"), Headers: valuesOf("h1=1"), Query: valuesOf("q1=1", "q2=2")},
	{Path: begins("/a/b/c"), Headers: valuesOf("h2=2"), Query: valuesOf("q2=2")},
	{Path: begins("/a/b/c"), Headers: valuesOf("h2=2")},
	{Path: begins("/a/b/c"), Query: valuesOf("q1=1", "q2=2")},
	{Path: begins("/a/b/c"), Query: valuesOf("q2=2")},
	{Path: begins("/a/b/c"), Query: valuesOf("q1=1")}, // as many as the one before, which is earlier in the spec
	{Path: begins("/a/b/c")},
	{Path: begins("/a/b"), Method: "GET", Headers: valuesOf("h1=1", "h2=2"), Query: valuesOf("q1=1", "q2=2")},
	{Path: begins("/a/b")},
	{Path: stored("/a/")},
	{Path: begins("/a")},
	{Path: begins("/"), Method: "GET"},
	{},
}

// TestPrecedence takes the rules away one by one, each time from the front, in whatever order they were put into the table.
func TestPrecedence(t *testing.T) {
	v := request("GET /a/b/c?q1=1&q2=2\nh1: 1\nh2: 2")
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		var specs []RuleSpec
		for i, m := range precedence {
			specs = append(specs, ruleOf(i, m))
		}
		random.Shuffle(len(specs), func(i, j int) {
			// The order of the spec decides between the two that are alike.
			if a, b := specs[i].Rule, specs[j].Rule; a != 16 && a != 17 && b != 16 && b != 17 {
				specs[i], specs[j] = specs[j], specs[i]
			}
		})
		compiled, _ := CompileRules(Options{}, nil, specs)
		applied, _ := Compile(Options{}, nil, nil)
		for part := range slices.Chunk(specs, 4) {
			applied, _ = applied.ApplyRules(part, nil)
		}
		for i := range precedence {
			if a, b := taker(compiled, v), taker(applied, v); a != i || b != i {
				t.Fatalf("seed %d: rules %d (Compile) and %d (Apply) take the request, not %d", seed, a, b, i)
			}
			gone := []RouteKey{ruleOf(i, Match{}).RouteKey}
			compiled, _ = compiled.Apply(nil, gone)
			applied, _ = applied.Apply(nil, gone)
		}
		if taker(compiled, v) != -1 || compiled.hosts.exact.count != 0 {
			t.Fatal("something is left of a host without rules")
		}
	}
}

// TestConditionsFallThrough: a rule that does not hold leaves the request to the next shorter path, and to the wildcard.
func TestConditionsFallThrough(t *testing.T) {
	table := compileRules(t, Match{Path: begins("/a/b"), Method: "PUT"}, Match{Path: exactly("/a"), Headers: valuesOf("x=1")}, Match{Path: begins("/a"), Query: valuesOf("q=1")})
	wild := ruleOf(9, Match{})
	wild.Host, wild.Wildcard = "x.test", true
	table, _ = table.ApplyRules([]RuleSpec{wild}, nil)
	for text, want := range map[string]int{
		"PUT /a/b/c": 0, "GET /a/b/c?q=1": 2, "GET /a/b/c": 9, "GET /a\nx: 1": 1, "GET /a?q=1": 2, "GET /a": 9, "GET /z": 9,
	} {
		if got := taker(table, request(text)); got != want {
			t.Errorf("%q is taken by rule %d, want %d", text, got, want)
		}
	}
}

// TestRulesBesideRoutes: rules and OpenShift Routes of one host are one table. Redirects are decided by rules too.
func TestRulesBesideRoutes(t *testing.T) {
	table := compile(t, route("r", "h.test", "/p"), route("s", "h.test", "/q", edge, toHTTPS))
	rule := ruleOf(1, Match{Path: begins("/p"), Headers: valuesOf("x=1")})
	to := ruleOf(2, Match{Path: begins("/p"), Method: "PUT"})
	to.Termination, to.Insecure = TermEdge, InsecureRedirect
	table, _ = table.ApplyRules([]RuleSpec{rule, to}, nil)
	for text, want := range map[string]string{"GET /p": "r", "GET /p\nx: 1": "object", "PUT /p": "302 object", "GET /q": "302 s", "GET /": "503"} {
		d, got := table.Match(request(text)), "503"
		switch d.Kind {
		case Serve:
			got = d.Route.Name()
		case Redirect:
			got = "302 " + d.Route.Name()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	v := request("PUT /p")
	v.Secure = true
	if d := table.Match(v); d.Kind != Serve || d.Route.Key() != to.RouteKey {
		t.Error("the rule does not serve over TLS")
	}
	before, _ := table.Apply(nil, []RouteKey{rule.RouteKey, to.RouteKey})
	if g := before.hosts.find([]byte("h.test")); g.more.special {
		t.Error("a host that has only routes again is still asked for more than paths")
	}
}

// TestAgeDecidesBetweenEqualMatches, whatever the order in which the rules came.
func TestAgeDecidesBetweenEqualMatches(t *testing.T) {
	day := time.Unix(1e9, 0)
	named := func(namespace, name string, n int, created time.Time, path PathMatch) RuleSpec {
		s := ruleOf(n, Match{Path: path})
		s.Namespace, s.Name, s.UID, s.Created = namespace, name, namespace+name, created
		return s
	}
	for what, path := range map[string]PathMatch{"prefix": begins("/p"), "all": {}, "exact": exactly("/p"), "expression": matching("/p")} {
		first := []RuleSpec{ // in the order they are tried in
			named("z", "z", 1, time.Time{}, path), named("y", "y", 0, time.Time{}, path), // in the order of the spec
			named("x", "x", 0, day, path), named("a", "a", 2, day.Add(1), path), named("a", "b", 0, day.Add(1), path), named("a", "b", 1, day.Add(1), path),
			named("b", "a", 0, day.Add(1), path), named("a", "a", 0, day.Add(2), path),
		}
		for seed := range uint64(10) {
			specs, random := slices.Clone(first), rand.New(rand.NewPCG(seed, 5))
			random.Shuffle(6, func(i, j int) { specs[i+2], specs[j+2] = specs[j+2], specs[i+2] })
			table, _ := Compile(Options{}, nil, nil)
			for i := range specs {
				table, _ = table.ApplyRules(specs[i:i+1], nil)
			}
			for i := range first {
				if d := table.Match(request("GET /p")); d.Route == nil || d.Route.Key() != first[i].RouteKey {
					t.Fatalf("%s, seed %d: %v comes after %d others", what, seed, d.Route, i)
				}
				table, _ = table.Apply(nil, []RouteKey{first[i].RouteKey})
			}
		}
	}
	old, young := named("a", "a", 0, day, PathMatch{}), named("a", "a", 0, day.Add(1), PathMatch{})
	table, _ := CompileRules(Options{}, nil, []RuleSpec{old})
	if next, _ := table.ApplyRules([]RuleSpec{young}, nil); next.Route(old.RouteKey) == table.Route(old.RouteKey) {
		t.Error("a younger object is the one before")
	}
}

func TestBadExpressionsAreRejected(t *testing.T) {
	good := ruleOf(0, Match{Path: begins("/")})
	for what, m := range map[string]Match{"path": {Path: matching("(")}, "header": {Headers: valuesOf("a~(")}, "query": {Query: valuesOf("a~[")}} {
		table, _ := CompileRules(Options{}, nil, []RuleSpec{good})
		next, rejections := table.ApplyRules([]RuleSpec{ruleOf(0, m), ruleOf(1, Match{})}, nil)
		if len(rejections) != 1 || rejections[0].Reason != ReasonMatch || rejections[0].Key != good.RouteKey || next.Len() != 1 || !strings.Contains(rejections[0].Message, what) {
			t.Errorf("%s: %v, %d rules", what, rejections, next.Len())
		}
	}
}

// TestEachPartOfAMatchIsCompared changes each part of a match; the published table must serve the change.
func TestEachPartOfAMatchIsCompared(t *testing.T) {
	base := Match{Path: begins("/a"), Method: "GET", Headers: valuesOf("h=1"), Query: valuesOf("q=1"), Cookies: valuesOf("c=1")}
	changed := map[string]Match{}
	eachField(reflect.TypeFor[Match](), "", nil, func(name string, index []int) {
		m := base
		switch v := reflect.ValueOf(&m).Elem().FieldByIndex(index); v.Interface().(type) {
		case *expression.Expression: // compared by their text
		case []ValueMatch:
			eachField(reflect.TypeFor[ValueMatch](), name+".", nil, func(part string, index []int) {
				if part == name+".Compiled" {
					return
				}
				list := []ValueMatch{v.Index(0).Interface().(ValueMatch)}
				altered(t, part, reflect.ValueOf(&list[0]).Elem().FieldByIndex(index), nil)
				one := base
				reflect.ValueOf(&one).Elem().FieldByName(name).Set(reflect.ValueOf(list))
				changed[part] = one
			})
			v.SetZero()
			changed[name+" none"] = m
		default:
			altered(t, name, v, nil)
			changed[name] = m
		}
	})
	if len(changed) != 15 {
		t.Errorf("%d parts of a match were changed", len(changed))
	}
	for what, m := range changed {
		first := compileRules(t, base)
		next, _ := first.ApplyRules([]RuleSpec{ruleOf(0, m)}, nil)
		key := ruleOf(0, base).RouteKey
		if next.Route(key) == first.Route(key) {
			t.Errorf("%s: the rule is the one before", what)
		}
		same, _ := next.ApplyRules([]RuleSpec{ruleOf(0, m)}, nil)
		if same.Route(key) != next.Route(key) {
			t.Errorf("%s: an equal rule is another one", what)
		}
	}
}

func TestRulesAllocateNothing(t *testing.T) {
	table := compileRules(t, precedence...)
	v := request("GET /a/b/c?q1=%31&q2=2\nh1: 1\nh2: 2")
	if n := testing.AllocsPerRun(100, func() { taker(table, v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	plain, view := compile(t, route("1", "a.test", ""), route("2", "a.test", "/p")), View{Host: []byte("A.test:80"), Path: []byte("/p/q")}
	if n := testing.AllocsPerRun(100, func() { plain.Match(&view) }); n != 0 {
		t.Errorf("%v allocations without conditions", n)
	}
}

// TestRulesAgainstAList compares with rules that are tried one after the other.
func TestRulesAgainstAList(t *testing.T) {
	paths := []PathMatch{{}, begins("/"), begins("/a"), begins("/a/"), stored("/a/"), begins("/a/b"), exactly("/a"), exactly("/a/b"), exactly("/"), matching("/a.*"), matching("/[ab]")}
	requests := []string{"/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/b", "*"}
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 4))
		var specs []RuleSpec
		for i := range 1 + random.IntN(24) {
			m := Match{Path: paths[random.IntN(len(paths))]}
			if random.IntN(3) == 0 {
				m.Method = []string{"GET", "PUT"}[random.IntN(2)]
			}
			if random.IntN(3) == 0 {
				m.Headers = valuesOf([]string{"a=1", "b=1"}[:1+random.IntN(2)]...)
			}
			if random.IntN(3) == 0 {
				m.Query = valuesOf([]string{"a=1", "b=1"}[:1+random.IntN(2)]...)
			}
			specs = append(specs, ruleOf(i, m))
		}
		table, _ := CompileRules(Options{}, nil, specs)
		alone := make([]*Table, len(specs))
		for i := range specs {
			alone[i], _ = CompileRules(Options{}, nil, specs[i:i+1])
		}
		for range 60 {
			text := []string{"GET ", "PUT "}[random.IntN(2)] + requests[random.IntN(len(requests))] +
				[]string{"", "?a=1", "?a=1&b=1"}[random.IntN(3)] + []string{"", "\na: 1", "\na: 1\nb: 1"}[random.IntN(3)]
			want, best := -1, ""
			for i := range specs {
				if taker(alone[i], request(text)) < 0 {
					continue
				}
				if r := rank(&specs[i].Match); r > best {
					want, best = i, r
				}
			}
			if got := taker(table, request(text)); got != want {
				t.Fatalf("seed %d, %q: rule %d, the list says %d\n%+v", seed, text, got, want, specs)
			}
		}
	}
}

// rank is a text that is greater for the rule that comes first.
func rank(m *Match) string {
	kind := map[PathKind]int{PathExact: 3, PathExpression: 2}[m.Path.Kind]
	path := m.Path.Value
	if m.Path.Kind == PathPrefix || strings.Trim(path, "/") == "" && kind == 0 {
		path = strings.TrimRight(path, "/")
	}
	method := 0
	if m.Method != "" {
		method = 1
	}
	return fmt.Sprintf("%d %03d %d %d %d", kind, len(path), method, len(m.Headers), len(m.Query))
}

// FuzzQuery compares the first parameter of a name with what net/url finds.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"", "a", "a=1&a=2", "b&a=%31", "a=%zz", "%61=x+y", "&&a", "=x", "a==b&", "a;b=1", "b=1&a=" + strings.Repeat("%20", 200)} {
		f.Add("a", query)
		f.Add("", query)
	}
	f.Fuzz(func(t *testing.T, name, query string) {
		parsed, err := url.ParseQuery(query)
		value := ""
		if values, ok := parsed[name]; ok {
			value = values[0]
		}
		_, there := parsed[name]
		c := valueCondition{name: name, value: value}
		v := &View{Query: []byte("?" + query)}
		m := v.begin()
		m.turn("", 0)
		if got := m.inQuery(&c, v.Query) == expression.Yes; err == nil && got != there && !m.spent {
			t.Fatalf("%q in %q: %t, want %t with %q", name, query, got, there, value)
		}
	})
}
