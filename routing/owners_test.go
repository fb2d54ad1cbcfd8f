package routing

import (
	"testing"

	"turnout/tlsmux/clientcert"
)

// TestHostsOfOtherNamespaces checks that a wildcard route does not change the TLS of a more
// specific host of another namespace: neither client certificates nor certificate nor passthrough.
// It supplies missing settings to hosts of its own namespace.
func TestHostsOfOtherNamespaces(t *testing.T) {
	ca := newCertificate(t, "authority").Certificate
	auth := &ClientAuthSpec{Mode: clientcert.Required, CA: ca}
	own := newCertificate(t, "own")
	in := func(namespace, name, host, path string, change ...func(*RuleSpec)) RuleSpec {
		s := RuleSpec{RouteKey: RouteKey{Namespace: namespace, Name: name, UID: "u-" + name}, Host: host, Match: Match{Path: PathMatch{Value: path}}}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	ends := func(s *RuleSpec) { s.Termination = TermEdge }
	binds := func(s *RuleSpec) { s.Termination, s.ClientAuth, s.Certificate = TermEdge, auth, own }
	takes := func(s *RuleSpec) { s.Termination = TermPassthrough }
	wild := func(s *RuleSpec) { s.Wildcard = true }
	deep := func(s *RuleSpec) { s.Wildcard, s.Labels = true, true }
	for _, kind := range []struct {
		what string
		wild func(*RuleSpec)
	}{{"one label", wild}, {"several labels", deep}} {
		table, rejections := CompileRules(Options{}, nil, []RuleSpec{
			in("a", "binds", "*.bound.test", "", binds, kind.wild), in("a", "takes", "*.taken.test", "", takes, kind.wild),
			in("b", "other", "b.bound.test", "", ends), in("b", "path", "p.bound.test", "/p", ends), in("b", "plain", "b.taken.test", ""),
			in("a", "same", "a.bound.test", "", ends), in("a", "also", "a.taken.test", ""),
			in("b", "both-b", "both.bound.test", "/b", ends), in("a", "both-a", "both.bound.test", "/a", ends),
		})
		if len(rejections) > 0 {
			t.Fatal(rejections)
		}
		inherits := kind.what == "one label" // no host that has rules inherits from several labels
		for _, c := range []struct {
			name                  string
			asks, certified, pass bool
		}{
			{"x.bound.test", true, true, false}, {"x.taken.test", false, false, true},
			{"b.bound.test", false, false, false}, {"p.bound.test", false, false, false}, {"b.taken.test", false, false, false},
			{"a.bound.test", inherits, inherits, false}, {"a.taken.test", false, false, inherits},
			{"both.bound.test", inherits, inherits, false},
		} {
			d := table.SNI(c.name)
			asks := d.Arrival != nil && d.Arrival.Auth != nil
			if asks != c.asks || d.Own != c.certified || (d.Passthrough != nil) != c.pass || asks != (d.AuthNamespace == "a") {
				t.Errorf("%s, %s: asks %t (for %q), certificate %t, passthrough %t", kind.what, c.name, asks, d.AuthNamespace, d.Own, d.Passthrough != nil)
			}
		}
		// A client that is not asked for a certificate must not reach the routes that require one.
		for path, want := range map[string]DecisionKind{"/p": Serve, "/other": Misdirected} {
			v := &View{Secure: true, Host: []byte("p.bound.test"), Path: []byte(path), Arrival: table.SNI("p.bound.test").Arrival}
			if got := table.Match(v).Kind; got != want && (inherits || path == "/p") {
				t.Errorf("%s, %s: %v, want %v", kind.what, path, got, want)
			}
		}
	}
}
