package routing

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// model is the router described by the patterns of the reference: one regular
// expression for each route and a list that is searched from the front. It differs
// where the reference is not kept: host and path are matched apart, a wildcard label
// has no colon, and of two paths the longer one is searched first.
type model struct {
	host, path *regexp.Regexp
	spec       RouteSpec
	wild       bool
	length     int
}

func models(specs []RouteSpec) []model {
	var list []model
	for _, s := range specs {
		m := model{spec: s, length: len(s.Path)}
		host := regexp.QuoteMeta(s.Host)
		if d, ok := domain(s.Host); s.Wildcard && ok {
			m.wild = true
			host = `[^.:]*` + regexp.QuoteMeta("."+d)
		}
		var path string
		switch {
		case strings.Trim(s.Path, "/") == "":
			path, m.length = `(/.*|\*)?`, 0
		case strings.HasSuffix(s.Path, "/"):
			path = regexp.QuoteMeta(s.Path) + `(.*)?`
		default:
			path = regexp.QuoteMeta(s.Path) + `(/.*)?`
		}
		m.host = regexp.MustCompile(`(?s)^` + host + `\.?(:[0-9]+)?$`)
		m.path = regexp.MustCompile(`(?s)^` + path + `$`)
		list = append(list, m)
	}
	sort.SliceStable(list, func(i, j int) bool {
		if list[i].wild != list[j].wild {
			return list[j].wild
		}
		return list[i].length > list[j].length
	})
	return list
}

// first returns the first route of the list that matches and is in a table.
func first(list []model, host, path string, in func(*RouteSpec) bool) *RouteSpec {
	for i := range list {
		m := &list[i]
		if in(&m.spec) && m.host.MatchString(host) && m.path.MatchString(path) {
			return &m.spec
		}
	}
	return nil
}

func modelAnswer(list []model, secure bool, host, path string) string {
	folded := []byte(host)
	lower(folded, folded)
	host = string(folded)
	every := func(*RouteSpec) bool { return true }
	tls := func(s *RouteSpec) bool { return s.Termination == TermEdge || s.Termination == TermReencrypt }
	plain := func(s *RouteSpec) bool { return s.Termination == TermNone || tls(s) && s.Insecure == InsecureAllow }
	table := tls
	if !secure {
		if s := first(list, host, path, every); s != nil && s.Insecure == InsecureRedirect {
			return "302 " + s.Name
		}
		table = plain
	}
	if s := first(list, host, path, table); s != nil {
		return s.Name
	}
	return "503"
}

// specsOf makes routes of fuzzed text: one line each, "host path flags".
func specsOf(text string) []RouteSpec {
	var specs []RouteSpec
	for i, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 || len(specs) == 24 || len(line) > 200 || strings.HasPrefix(f[0], ".") || strings.HasSuffix(f[0], ".") ||
			strings.ContainsAny(f[0], ":/") || !strings.HasPrefix(f[1], "/") && f[1] != "-" {
			continue
		}
		path := strings.TrimPrefix(f[1], "-")
		specs = append(specs, route(fmt.Sprint(i), f[0], path, func(s *RouteSpec) {
			if len(f) > 2 {
				s.Wildcard = strings.Contains(f[2], "w")
				s.Termination = Termination(strings.Count(f[2], "t") % 4)
				s.Insecure = InsecurePolicy(strings.Count(f[2], "i") % 3)
			}
		}))
	}
	return specs
}

func FuzzMatch(f *testing.F) {
	routes := "a.test /\na.test /foo tii\na.test /foo/ i\nx.test - w\nx.test /foo wtti\na.test /foo/!x\ncom - w\na.b.test /p ttt\n" +
		"a.test /foo/bar t\na.test /foo/bar/ ti\na.test /f\na.test /fo\na.test /foo/b\nA.test /\na.test - t"
	for _, host := range []string{"a.test", "A.TEST.:80", "q.test", ".test", "a.test:", "a.test..", "a.b.test", "com", "x:1.test", ""} {
		for _, path := range []string{"", "/", "/foo", "/foo/", "/foo/bar/x", "/foo/!x", "*", "//"} {
			f.Add(routes, host, path, len(path)%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, text, host, path string, secure bool) {
		// Regular expressions are about runes: routes are compared in ASCII only.
		if strings.ContainsFunc(text, func(c rune) bool { return c > 0x7f }) || len(host) > maxHost || strings.Contains(host, "/") || !strings.HasPrefix(path, "/") && path != "" && path != "*" {
			return
		}
		specs := specsOf(text)
		table, _ := Compile(Options{}, nil, specs)
		want := modelAnswer(models(specs), secure, host, path)
		if got := answer(table, secure, host, path); got != want {
			t.Fatalf("host %q path %q secure %t: %q, the model says %q", host, path, secure, got, want)
		}
		// The same routes one by one.
		step, _ := Compile(Options{}, nil, nil)
		for i := range specs {
			step, _ = step.Apply(specs[i:i+1], nil)
		}
		if got := answer(step, secure, host, path); got != want {
			t.Fatalf("host %q path %q secure %t: %q after Apply, the model says %q", host, path, secure, got, want)
		}
	})
}

// TestModel compares with the model over many routes that meet.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		specs := make(map[string]RouteSpec)
		var list []RouteSpec
		for range 1 + r.IntN(60) {
			s := randomSpec(r)
			if _, twice := specs[s.Name]; !twice && s.Host != "" {
				specs[s.Name] = s
				list = append(list, s)
			}
		}
		table, patterns := compile(t, list...), models(list)
		for _, host := range []string{"a.test", "Q.test.:80", ".test", "a.b.test", "q.b.test", "com", "test", "b.test:"} {
			for _, path := range []string{"", "/", "/p", "/p/", "/p/x", "/p/q", "/p/q/r", "/pq/", "/p/!x/y", "/z", "/z/x", "*"} {
				for _, secure := range []bool{false, true} {
					if got, want := answer(table, secure, host, path), modelAnswer(patterns, secure, host, path); got != want {
						t.Fatalf("seed %d: host %q path %q secure %t: %q, the model says %q\n%+v", seed, host, path, secure, got, want, list)
					}
				}
			}
		}
	}
}
