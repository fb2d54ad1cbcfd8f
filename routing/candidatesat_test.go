package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCandidatesOfListeners: each rule that covers the host says why it does not get a request of a port with listeners, those of less
// specific listeners too.
func TestCandidatesOfListeners(t *testing.T) {
	match := func(m Match) func(*RuleSpec) {
		return func(s *RuleSpec) {
			m.Path = s.Match.Path
			s.Match = m
		}
	}
	made := func(year int) func(*RuleSpec) {
		return func(s *RuleSpec) { s.Created = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
	}
	table := listening(t, []ListenerSpec{
		{Name: "any", Port: "web"}, {Name: "stars", Port: "web", Hostname: "*.a.test"}, {Name: "exact", Port: "web", Hostname: "x.a.test"},
		{Name: "other", Port: "tls", TLS: true}, {Name: "a", Port: "tls", Hostname: "a.test", TLS: true}, {Name: "tcp", Port: "tcp", Stream: true},
	},
		heard("any", "anyone", "*", ""), heard("stars", "starred", "*.a.test", "/"),
		heard("exact", "young", "x.a.test", "/p", made(2025)), heard("exact", "old", "x.a.test", "/p", made(2020)), heard("exact", "short", "x.a.test", "/"),
		heard("exact", "posts", "x.a.test", "/p", match(Match{Method: "POST"})),
		heard("exact", "two", "x.a.test", "/p", match(Match{Headers: []ValueMatch{{Name: "X-Version", Value: "2"}}})),
		heard("exact", "asked", "x.a.test", "/p", match(Match{Query: []ValueMatch{{Name: "q", Value: "[0-9]+", Expression: true}}})),
		heard("other", "all", "*", "", overTLS), heard("a", "one", "a.test", "", overTLS), heard("tcp", "bytes", "*", "", func(s *RuleSpec) { s.Termination = TermStream }))
	for _, c := range []struct{ port, sni, host, path, want string }{
		{"web", "", "x.a.test", "/p/q", "old won; anyone listener; starred listener; young order (it is older); short order (its path is longer); posts method POST; two header x-version with the value \"2\"; asked query q matching [0-9]+"},
		{"web", "", "Y.b.a.test:80", "/", "starred won; anyone listener"},
		{"web", "", "c.test", "/", "anyone won"},
		{"tls", "a.test", "a.test", "/", "one won; all listener"},
		{"tls", "c.test", "a.test", "/", "one connection; all listener"},
	} {
		v := &View{Host: []byte(c.host), Path: []byte(c.path), Arrival: &Arrival{Port: c.port}}
		if c.sni != "" {
			v.Secure, v.Arrival = true, table.SNIAt(c.port, c.sni).Arrival
		}
		d := table.Match(v)
		var won string
		var got []string
		table.Candidates(v, d, func(one Candidate) bool {
			text := strings.TrimSpace(fmt.Sprint(one.Route.Name(), " ", one.Lost, " ", one.Asks))
			if one.Lost == LostOrder {
				text += " (" + d.Route.Before(one.Route) + ")"
			}
			if one.Lost == Won {
				won = text + "; "
				return true
			}
			got = append(got, text)
			return true
		})
		want := strings.Split(c.want, "; ")
		slices.Sort(got)
		slices.Sort(want)
		all := append(got, strings.TrimSuffix(won, "; "))
		if all = slices.DeleteFunc(all, func(s string) bool { return s == "" }); true {
			slices.Sort(all)
		}
		if !slices.Equal(all, want) {
			t.Errorf("%s %s%s:\n%s, want\n%s", c.port, c.host, c.path, strings.Join(all, "; "), strings.Join(want, "; "))
		}
	}
	var names []string
	table.Candidates(&View{Arrival: &Arrival{Port: "tcp"}}, Decision{Route: table.Stream("tcp")}, func(one Candidate) bool {
		names = append(names, fmt.Sprint(one.Route.Name(), " ", one.Lost))
		return true
	})
	if !slices.Equal(names, []string{"bytes won"}) {
		t.Errorf("of a port of TCP: %v", names)
	}
}

// TestListenerStates: listeners are found by their names, and by the hosts that are theirs.
func TestListenerStates(t *testing.T) {
	table := listening(t, []ListenerSpec{{Name: "any", Port: "web"}, {Name: "a", Port: "web", Hostname: "*.a.test"}})
	for host, want := range map[string]string{"x.a.test": "a", "a.test": "any", "": "any"} {
		if l, ok := table.ListenerFor("web", false, host); !ok || l.Name != want || l.Port != "web" {
			t.Errorf("%q: %+v, want %s", host, l, want)
		}
	}
	if _, ok := table.ListenerFor("web", true, "a.test"); ok {
		t.Error("a plain listener has a connection with TLS")
	}
	if l, ok := table.ListenerNamed("a"); !ok || l.Hostname != "*.a.test" {
		t.Errorf("%+v", l)
	}
	if _, ok := table.ListenerNamed("gone"); ok {
		t.Error("a listener that there is not")
	}
	if _, ok := compile(t).ListenerNamed("a"); ok {
		t.Error("a listener of an empty table")
	}
}

// TestAsks: what rules ask for is said in words.
func TestAsks(t *testing.T) {
	table := listening(t, []ListenerSpec{{Name: "l", Port: "p"}}, heard("l", "r", "*", "/a", func(s *RuleSpec) {
		s.Match.Method, s.Match.Headers, s.Match.Query = "GET", []ValueMatch{{Name: "A", Value: "b"}}, []ValueMatch{{Name: "q", Value: "1"}}
	}), heard("l", "e", "*", "", func(s *RuleSpec) { s.Match.Path = PathMatch{Kind: PathExact, Value: "/e"} }),
		heard("l", "x", "*", "", func(s *RuleSpec) { s.Match.Path = PathMatch{Kind: PathExpression, Value: "/x+"} }))
	want := map[string]string{"r": `path below /a, method GET, header a with the value "b", query parameter q with the value "1"`, "e": "path /e", "x": "path matching /x+"}
	for r := range table.Routes {
		if got := strings.Join(r.Asks(), ", "); got != want[r.Name()] {
			t.Errorf("%s: %s", r.Name(), got)
		}
	}
}
