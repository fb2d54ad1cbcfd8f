package routing

import (
	"fmt"
	"strings"
	"testing"
)

// TestCandidates: each route for the host says what became of it, and the one that Match found won.
func TestCandidates(t *testing.T) {
	route := func(name, host, path string, change func(*RouteSpec)) RouteSpec {
		s := RouteSpec{RouteKey: RouteKey{Namespace: "ns", Name: name, UID: name}, Host: host, Path: path}
		if change != nil {
			change(&s)
		}
		return s
	}
	table, rejected := Compile(Options{}, nil, []RouteSpec{
		route("all", "a.test", "", nil), route("second", "a.test", "/", nil), route("p", "a.test", "/p", nil), route("pq", "a.test", "/p/q", nil),
		route("secure", "a.test", "/s", func(s *RouteSpec) { s.Termination = TermEdge }),
		route("moves", "a.test", "/m", func(s *RouteSpec) { s.Termination, s.Insecure = TermEdge, InsecureRedirect }),
		route("wild", "x.test", "", func(s *RouteSpec) { s.Wildcard = true }),
		route("sole", "b.test", "", nil),
	})
	if len(rejected) > 0 {
		t.Fatal(rejected)
	}
	for _, c := range []struct {
		host, path string
		secure     bool
		want       string
	}{
		{"A.test:80", "/p/x", false, "secure path, pq path, p won, moves path, all order, second order, wild wildcard"},
		{"a.test", "/s", false, "secure port, pq path, p path, moves path, all won, second order, wild wildcard"},
		{"a.test", "/s", true, "secure won, pq path, p path, moves path, all port, second port, wild port"},
		{"a.test", "/m", false, "secure path, pq path, p path, moves won, all order, second order, wild wildcard"},
		{"c.test", "/", false, "wild won"},
		{"b.test", "/", false, "sole won, wild wildcard"},
		{"b.test", "/", true, "sole port, wild port"},
		{"nobody.example", "/", false, ""},
		{"bad:x", "/", false, ""},
	} {
		v := &View{Host: []byte(c.host), Path: []byte(c.path), Secure: c.secure}
		var got []string
		table.Candidates(v, table.Match(v), func(one Candidate) bool {
			got = append(got, fmt.Sprint(one.Route.Name(), " ", one.Lost))
			return true
		})
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s%s, secure %t:\n%s, want\n%s", c.host, c.path, c.secure, text, c.want)
		}
	}
}

// TestShowing: a store that shows a table does not execute its plan.
func TestShowing(t *testing.T) {
	table, _ := Compile(Options{}, nil, []RouteSpec{{RouteKey: RouteKey{Namespace: "ns", Name: "a"}, Host: "a.test"}})
	if got := Showing(table).Load(); got != table || got.Generation() != 0 || table.plan.done {
		t.Errorf("generation %d, executed %t", got.Generation(), table.plan.done)
	}
}
