package routing

import (
	"testing"
	"time"
)

// pairRule returns a rule of the pair of ports: "*" is any host, "+.d" all hosts of d with one more label.
func pairRule(name, host string, path PathMatch, change ...func(*RuleSpec)) RuleSpec {
	s := RuleSpec{RouteKey: RouteKey{Namespace: "ns", Name: name, UID: "u"}, Host: host, Match: Match{Path: path}}
	switch host[0] {
	case '*':
		s.Wildcard, s.Labels = true, true
	case '+':
		s.Wildcard = true
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// both has a rule served on both ports.
func both(s *RuleSpec) { s.Termination, s.Insecure = TermEdge, InsecureAllow }

func compiled(t *testing.T, rules ...RuleSpec) *Table {
	t.Helper()
	table, rejections := CompileRules(Options{}, nil, rules)
	if len(rejections) > 0 {
		t.Fatalf("rejected: %v", rejections)
	}
	return table
}

// TestAnyHost: rules for any host serve hosts that no rule names, requests without a host, and addresses; what the rules of a named host, or of a
// wildcard, do not take is theirs all the same.
func TestAnyHost(t *testing.T) {
	table := compiled(t,
		pairRule("any", "*", begins("/"), both), pairRule("any-x", "*", begins("/x"), both),
		pairRule("named", "a.test", begins("/a"), both), pairRule("wild", "+.w.test", begins("/w"), both),
		pairRule("plain", "p.test", begins("/p")))
	for _, c := range []struct{ host, path, plain, secure string }{
		{"b.test", "/", "any", "any"}, {"b.test", "/x/y", "any-x", "any-x"}, {"b.test", "/xy", "any", "any"}, {"deep.er.b.test", "/", "any", "any"},
		{"B.TEST:8080", "/x", "any-x", "any-x"}, {"10.0.0.1", "/", "any", "any"}, {"[::1]:80", "/", "any", "any"}, {"", "/", "any", "any"}, {"", "/x", "any-x", "any-x"},
		{"a.test", "/a", "named", "named"}, {"a.test", "/x", "503", "503"}, {"A.test.", "/", "503", "503"},
		{"q.w.test", "/w", "wild", "wild"}, {"q.w.test", "/x", "503", "503"}, {"w.test", "/w", "any", "any"}, {"r.q.w.test", "/w", "any", "any"},
		{"p.test", "/p", "plain", "503"}, {"p.test", "/x", "503", "503"}, {"b.test:", "/", "503", "503"},
	} {
		if got := answer(table, false, c.host, c.path); got != c.plain {
			t.Errorf("http://%s%s: %s, want %s", c.host, c.path, got, c.plain)
		}
		if got := answer(table, true, c.host, c.path); got != c.secure {
			t.Errorf("https://%s%s: %s, want %s", c.host, c.path, got, c.secure)
		}
	}
}

// TestAnyHostAnswersNobodyElse: explanations say why a rule for any host does not take a request that nobody takes.
func TestAnyHostAnswersNobodyElse(t *testing.T) {
	table := compiled(t, pairRule("any", "*", begins("/")), pairRule("named", "a.test", begins("/a")))
	view := &View{Host: []byte("a.test"), Path: []byte("/")}
	got := map[string]Lost{}
	table.Candidates(view, table.Match(view), func(c Candidate) bool {
		got[c.Route.Name()] = c.Lost
		return true
	})
	if len(got) != 2 || got["any"] != LostHost || got["named"] != LostPath {
		t.Errorf("candidates %v", got)
	}
	view.Host = nil
	clear(got)
	table.Candidates(view, table.Match(view), func(c Candidate) bool {
		got[c.Route.Name()] = c.Lost
		return true
	})
	if len(got) != 1 || got["any"] != Won {
		t.Errorf("without a host: candidates %v", got)
	}
}

// TestCertificateOfAnyHost: the certificate of rules for any host is that of clients that name no server, or one that no rule names.
func TestCertificateOfAnyHost(t *testing.T) {
	all, own := newCertificate(t, "any"), newCertificate(t, "own")
	certified := func(c *CertificateSpec) func(*RuleSpec) {
		return func(s *RuleSpec) { both(s); s.Certificate = c }
	}
	table := compiled(t, pairRule("any", "*", begins("/"), certified(all)), pairRule("own", "o.test", begins("/"), certified(own)), pairRule("none", "n.test", begins("/"), both))
	for name, want := range map[string]string{"": "any", "x.test": "any", "o.test": "own", "n.test": ""} {
		d := table.SNI(name)
		got := ""
		if d.Own {
			got = d.Certificate.Leaf.Subject.CommonName
		}
		if got != want {
			t.Errorf("%q: certificate of %q, want %q", name, got, want)
		}
	}
}

// TestOldestCertificateOfHost: where the ages of two rules of a host are known, the certificate is that of the older one, whatever the names.
func TestOldestCertificateOfHost(t *testing.T) {
	made := func(c *CertificateSpec, at int64) func(*RuleSpec) {
		return func(s *RuleSpec) { both(s); s.Certificate, s.Created = c, time.Unix(at, 0) }
	}
	old, young := newCertificate(t, "old"), newCertificate(t, "young")
	table := compiled(t, pairRule("z", "h.test", begins("/z"), made(young, 20)), pairRule("a", "h.test", begins("/a"), made(old, 10)), pairRule("b", "h.test", begins("/b"), made(young, 30)))
	if got := table.SNI("h.test").Certificate.Leaf.Subject.CommonName; got != "old" {
		t.Errorf("certificate %s", got)
	}
}
