package adversary

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"turnout/internal/testkit/testtime"
	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing"
)

// headBytes is the size of path, query and fields of a request together: the default of --buf-size.
const headBytes = 32 << 10

// candidate is a set of legal rules and a legal request. The search looks for the one that takes
// longest to match.
type candidate struct {
	rules []routing.RuleSpec
	view  routing.View
	table *routing.Table
	took  time.Duration
	work  int
}

// worstSearch makes and changes candidates. Everything but the times follows from the seed.
type worstSearch struct {
	r        *rand.Rand
	matching routing.Matching
}

// pieces are parts of expressions, some of them known to be slow.
var pieces = []string{
	"a?", "(?:a|b)*", ".*", `\pL?`, "(?i)[ab]?", `\b?`, "(?:[^/]?){40}", "(?:a?b?){60}", "(a*)*", "[a-z]+", "/", "a", "é?", "(?:.?){200}", `(?:\w?\W?){30}`, "(?:|a|b|c){50}",
}

func (s *worstSearch) expression() string {
	var text strings.Builder
	for range 1 + s.r.IntN(8) {
		text.WriteString(pieces[s.r.IntN(len(pieces))])
	}
	return text.String() + []string{"", "x", "!", ".*x"}[s.r.IntN(4)]
}

func (s *worstSearch) values() (list []routing.ValueMatch) {
	for range s.r.IntN(17) {
		v := routing.ValueMatch{Name: fmt.Sprintf("n%d", s.r.IntN(20)), Value: strings.Repeat("v", s.r.IntN(3))}
		if s.r.IntN(3) == 0 {
			v.Value, v.Expression = s.expression(), true
		}
		list = append(list, v)
	}
	return list
}

func (s *worstSearch) rule() routing.RuleSpec {
	rule := routing.RuleSpec{Host: []string{"h.test", "*.test"}[s.r.IntN(2)]}
	if rule.Host == "*.test" {
		rule.Wildcard, rule.Labels = true, s.r.IntN(2) == 0
	}
	rule.Namespace, rule.Name, rule.UID = fmt.Sprintf("ns%d", s.r.IntN(1+s.r.IntN(24))), "r", "u"
	m := &rule.Match
	switch s.r.IntN(4) {
	case 0:
		m.Path = routing.PathMatch{Kind: routing.PathExpression, Value: s.expression()}
	case 1:
		m.Path = routing.PathMatch{Kind: routing.PathExact, Value: "/" + strings.Repeat("a", s.r.IntN(1000))}
	default:
		m.Path = routing.PathMatch{Kind: routing.PathPrefix, Value: strings.Repeat("/a", s.r.IntN(500))}
	}
	switch s.r.IntN(4) {
	case 0:
		m.Headers = s.values()
	case 1:
		m.Query = s.values()
	case 2:
		m.Cookies = s.values()
	}
	return rule
}

// bytes returns text for a request: repetitions of a few letters, or pairs.
func (s *worstSearch) bytes(most int, pairs string) []byte {
	if most <= 0 {
		return nil
	}
	unit := []string{"a", "ab", "/a", "é", "a ", "\xff", "%61"}[s.r.IntN(7)]
	if pairs != "" {
		unit = []string{"n%d=v" + pairs, "n1=v" + pairs, "%%6e%d=%%76" + pairs, pairs, "a" + pairs, "n%d=" + strings.Repeat("a", 40) + pairs}[s.r.IntN(6)]
	}
	var b bytes.Buffer
	for n := 0; b.Len() < most; n++ {
		if strings.Contains(unit, "%d") {
			fmt.Fprintf(&b, unit, n%2000)
		} else {
			b.WriteString(unit)
		}
	}
	return b.Bytes()[:most]
}

// request fills the parts of a request, within headBytes.
func (s *worstSearch) request() routing.View {
	v := routing.View{Host: []byte("h.test"), Method: []byte("GET"), Secure: s.r.IntN(2) == 0}
	left := headBytes
	take := func() int {
		n := s.r.IntN(left + 1)
		left -= n
		return n
	}
	parts := s.r.Perm(4)
	for _, part := range parts {
		switch part {
		case 0:
			v.Path = append([]byte("/"), s.bytes(take(), "")...)
		case 1:
			v.Query = append([]byte("?"), s.bytes(take(), "&")...)
		case 2:
			v.Fields = append(v.Fields, field.Field{Name: []byte("cookie"), Value: s.bytes(take(), ";")})
		case 3:
			each := 1 + s.r.IntN(100)
			size := take() / each
			for n := range each {
				v.Fields = append(v.Fields, field.Field{Name: fmt.Appendf(nil, "n%d", n%20), Value: s.bytes(size, "")})
			}
		}
	}
	return v
}

// measure compiles the rules without those that are refused, and matches the request.
func (s *worstSearch) measure(t *testing.T, c *candidate, times int) {
	t.Helper()
	for i := range c.rules {
		c.rules[i].RouteKey.Rule = i
		c.rules[i].Termination, c.rules[i].Insecure = routing.TermEdge, routing.InsecureAllow
	}
	c.table, _ = routing.CompileRules(routing.Options{}, nil, c.rules)
	c.view.Matching = &s.matching
	if c.took == 0 {
		c.took = time.Hour
	}
	for range times {
		v := c.view
		began := time.Now()
		d := c.table.Match(&v)
		c.took, c.work = min(c.took, time.Since(began)), v.Work()
		if c.work > routing.MatchWork {
			t.Fatalf("%d units of work, at most %d", c.work, routing.MatchWork)
		}
		if d.Kind == routing.Exhausted && v.Undecided() == nil || d.Route != nil && slices.Contains(v.Undecided(), d.Route.Namespace()) {
			t.Fatalf("decision %d, route %v, undecided %q", d.Kind, d.Route, v.Undecided())
		}
	}
}

// changed returns a candidate that differs a little.
func (s *worstSearch) changed(c *candidate) *candidate {
	next := &candidate{rules: slices.Clone(c.rules), view: c.view}
	switch s.r.IntN(5) {
	case 0:
		next.view = s.request()
	case 1:
		for range 1 + s.r.IntN(100) {
			next.rules = append(next.rules, s.rule())
		}
	case 2:
		one := next.rules[s.r.IntN(len(next.rules))]
		for range s.r.IntN(200) {
			next.rules = append(next.rules, one)
		}
	case 3:
		next.rules = slices.Delete(next.rules, 0, s.r.IntN(len(next.rules)))
	case 4:
		for range 1 + s.r.IntN(10) {
			next.rules[s.r.IntN(len(next.rules))] = s.rule()
		}
	}
	if len(next.rules) > 1024 {
		next.rules = next.rules[:1024]
	}
	return next
}

// matchTime is the longest time of matching one request: work.Request units take 1 ms at most.
const matchTime = time.Millisecond * routing.MatchWork / work.Request

// TestWorstLegalRules climbs from a random set of legal rules and a legal request to those that
// take longest to match. The work stays within the budget. The time stays within matchTime, or its
// equivalent on a slower machine, except under the race detector.
func TestWorstLegalRules(t *testing.T) {
	rounds := 150
	if *runs > 0 {
		rounds = 10 * *runs
	}
	s := &worstSearch{r: rand.New(rand.NewPCG(*firstSeed, 33))}
	worst := &candidate{rules: []routing.RuleSpec{s.rule()}, view: s.request()}
	s.measure(t, worst, 20)
	began := time.Now()
	for range rounds {
		if *within > 0 && time.Since(began) > *within {
			break
		}
		next := s.changed(worst)
		if s.measure(t, next, 3); next.took > worst.took {
			// The disturbance of the first measurement is over.
			if s.measure(t, next, 20); next.took > worst.took {
				worst = next
			}
		}
	}
	t.Logf("seed %d: %d rules, %d units of work, %v", *firstSeed, len(worst.rules), worst.work, worst.took)
	if raced {
		return
	}
	took, most := testtime.Fastest(matchTime, func() time.Duration {
		s.measure(t, worst, 3)
		return worst.took
	})
	if took > most {
		t.Errorf("the worst request takes %v for %d units of work, more than %v", took, worst.work, most)
	}
}
