package routing

import (
	"crypto/tls"
	"testing"
)

func TestSNIPattern(t *testing.T) {
	for _, row := range []struct {
		id, host string
		wild     bool
		sni      string
		match    bool
	}{
		{"host pt.test matches the server name pt.test", "pt.test", false, "pt.test", true},
		{"host pt.test matches the server name PT.Test", "pt.test", false, "PT.Test", true},
		{"host pt.test does not match the server name pt.test:443", "pt.test", false, "pt.test:443", false},
		{"host x.pt.test with a wildcard matches the server name a.pt.test", "x.pt.test", true, "a.pt.test", true},
		{"host x.pt.test with a wildcard does not match the server name a.b.pt.test", "x.pt.test", true, "a.b.pt.test", false},
		{"host x.pt.test with a wildcard does not match the server name pt.test", "x.pt.test", true, "pt.test", false},
		{"section 9, trailing dot", "pt.test", false, "pt.test.", false},
		{"section 9, no SNI", "pt.test", false, "", false},
	} {
		table := compile(t, route("r", row.host, "", passthrough, func(s *RouteSpec) { s.Wildcard = row.wild }))
		if got := table.SNI(row.sni).Passthrough != nil; got != row.match {
			t.Errorf("%s: %t", row.id, got)
		}
	}
}

// TestSNICapture: what a wildcard passthrough route takes beside other routes. The
// reference lets it take edge and re-encrypt hosts as well, or break them.
func TestSNICapture(t *testing.T) {
	table := compile(t,
		route("w", "x.wild.test", "", passthrough, wildcard),
		route("a", "a.wild.test", "", edge),
		route("ap", "ap.wild.test", "/p", edge),
		route("b", "b.wild.test", "", passthrough),
		route("c", "c.wild.test", "", reencrypt),
		route("h", "h.wild.test", ""),
		route("p", "p.wild.test", "/p", passthrough),
		route("both", "both.wild.test", "", passthrough), route("both-e", "both.wild.test", "/e", edge),
	)
	for sni, want := range map[string]string{
		"q.wild.test": "w", "a.wild.test": "", "ap.wild.test": "", "b.wild.test": "b", "c.wild.test": "", "h.wild.test": "w", "p.wild.test": "w",
		"both.wild.test": "both", "wild.test": "", "q.other.test": "",
	} {
		got := ""
		if p := table.SNI(sni).Passthrough; p != nil {
			got = p.Name()
		}
		if got != want {
			t.Errorf("%s goes to %q, want %q", sni, got, want)
		}
	}
}

func TestCertificateList(t *testing.T) {
	c := newCertificate(t, "own")
	terms := map[string]func(*RouteSpec){"none": func(*RouteSpec) {}, "edge": edge, "reencrypt": reencrypt, "passthrough": passthrough}
	for _, row := range []struct {
		id, term   string
		cert, wild bool
		exact, any bool // which server names get the certificate
	}{
		{"none, no certificate: no entry", "none", false, false, false, false},
		{"none, no certificate with a wildcard: no entry", "none", false, true, false, false},
		{"none, its own certificate: no entry", "none", true, false, false, false},
		{"none, its own certificate with a wildcard: no entry", "none", true, true, false, false},
		{"edge, no certificate with a wildcard: no entry", "edge", false, true, false, false},
		{"edge, its own certificate: entry www.wild.test", "edge", true, false, true, false},
		{"edge, its own certificate with a wildcard: entry *.wild.test", "edge", true, true, true, true},
		{"reencrypt, no certificate: no entry", "reencrypt", false, false, false, false},
		{"reencrypt, its own certificate: entry www.wild.test", "reencrypt", true, false, true, false},
		{"reencrypt, its own certificate with a wildcard: entry *.wild.test", "reencrypt", true, true, true, true},
		{"passthrough, no certificate: no entry", "passthrough", false, false, false, false},
		{"passthrough, no certificate with a wildcard: no entry", "passthrough", false, true, false, false},
		{"passthrough, its own certificate with a wildcard: no entry", "passthrough", true, true, false, false},
	} {
		table := compile(t, route("r", "www.wild.test", "", terms[row.term], func(s *RouteSpec) {
			s.Wildcard = row.wild
			if row.cert {
				s.Certificate = c
			}
		}))
		if got := table.SNI("www.wild.test").Own; got != row.exact {
			t.Errorf("%s: the host of the route has its certificate: %t", row.id, got)
		}
		if got := table.SNI("other.wild.test").Own; got != row.any {
			t.Errorf("%s: another host of the domain has its certificate: %t", row.id, got)
		}
	}
}

func TestCertificateName(t *testing.T) {
	c := newCertificate(t, "own")
	for _, row := range []struct {
		id, host string
		wild     bool
		yes, no  string
	}{
		{"certificate name of host www.ex.test is www.ex.test", "www.ex.test", false, "www.ex.test", "ww.ex.test"},
		{"certificate name of host ex.test is ex.test", "ex.test", false, "ex.test", "a.test"},
		{"certificate name of host ex.test with a wildcard is *.test", "ex.test", true, "a.test", "test"},
		{"certificate name of host com is com", "com", false, "com", "a.com"},
		{"certificate name of host com with a wildcard is com", "com", true, "com", "a.com"},
		{"certificate name of host www.sub.org.loc.test with a wildcard is *.sub.org.loc.test", "www.sub.org.loc.test", true, "q.sub.org.loc.test", "sub.org.loc.test"},
	} {
		table := compile(t, route("r", row.host, "", edge, with(c), func(s *RouteSpec) { s.Wildcard = row.wild }))
		if !table.SNI(row.yes).Own || table.SNI(row.no).Own {
			t.Errorf("%s: not exactly %s has the certificate", row.id, row.yes)
		}
	}
}

func TestCertificateChoice(t *testing.T) {
	a, b, w := newCertificate(t, "a"), newCertificate(t, "b"), newCertificate(t, "w")
	fallback := &tls.Certificate{}
	in := func(namespace string) func(*RouteSpec) {
		return func(s *RouteSpec) { s.Namespace = namespace }
	}
	table, _ := Compile(Options{DefaultCertificate: fallback}, nil, []RouteSpec{
		route("one", "two.test", "/1", edge, with(a), in("ns2")),
		route("zzz", "two.test", "/2", edge, with(b), in("ns1")),
		route("r1", "one.test", "", edge, with(a)), route("r2", "one.test", "/2", edge, with(b)), route("r3", "one.test", "/3", edge),
		route("bare", "bare.wild.test", "", edge), route("own", "own.wild.test", "", reencrypt, with(a)), route("w", "x.wild.test", "", edge, wildcard, with(w)),
		route("plain", "plain.test", ""),
		// "ns-a:" sorts before "ns:", though "ns-a" sorts after "ns".
		route("x", "dash.test", "/1", edge, with(a), in("ns")), route("x", "dash.test", "/2", edge, with(b), in("ns-a")),
	})
	name := func(d SNIDecision) string {
		switch {
		case d.Passthrough != nil:
			return "passthrough"
		case d.Certificate == fallback && !d.Own:
			return "default"
		case d.Own:
			return d.Certificate.Leaf.Subject.CommonName
		}
		return "none"
	}
	for sni, want := range map[string]string{
		"two.test": "a", "one.test": "b", "bare.wild.test": "w", "own.wild.test": "a", "OWN.wild.test": "a", "q.wild.test": "w",
		"plain.test": "default", "unknown.test": "default", "": "default", "two.test.": "default", "dash.test": "a",
	} {
		if got := name(table.SNI(sni)); got != want {
			t.Errorf("%q gets certificate %s, want %s", sni, got, want)
		}
	}
}

func TestCertificateChainAndKey(t *testing.T) {
	c, ca := newCertificate(t, "leaf"), newCertificate(t, "ca")
	joined := &CertificateSpec{Certificate: c.Key + c.Certificate, CA: ca.Certificate}
	table := compile(t, route("r", "a.test", "", edge, with(joined)))
	got := table.SNI("a.test").Certificate
	if len(got.Certificate) != 2 || got.Leaf.Subject.CommonName != "leaf" || got.PrivateKey == nil {
		t.Errorf("chain of %d, leaf %v", len(got.Certificate), got.Leaf.Subject)
	}
}

func TestBadCertificateRejectsItsRouteOnly(t *testing.T) {
	a, b := newCertificate(t, "a"), newCertificate(t, "b")
	for name, bad := range map[string]*CertificateSpec{
		"no PEM":    {Certificate: "x", Key: a.Key},
		"no key":    {Certificate: a.Certificate},
		"other key": {Certificate: a.Certificate, Key: b.Key},
		"nothing":   {},
		"bad chain": {Certificate: a.Certificate, Key: a.Key, CA: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
	} {
		good := compile(t, route("r", "a.test", "", edge, with(a)), route("other", "b.test", "", edge))
		next, rejections := good.Apply([]RouteSpec{route("r", "a.test", "", edge, with(bad))}, nil)
		if name == "bad chain" {
			// The chain is sent as it is; clients judge it.
			if len(rejections) != 0 {
				t.Errorf("%s: rejected: %v", name, rejections)
			}
			continue
		}
		if len(rejections) != 1 || rejections[0].Reason != "ExtendedValidationFailed" || rejections[0].Message == "" || rejections[0].Key.Name != "r" {
			t.Errorf("%s: rejections %v", name, rejections)
		}
		if answer(next, true, "a.test", "/") != "503" || answer(next, true, "b.test", "/") != "other" || next.Len() != 1 {
			t.Errorf("%s: not exactly the route with the bad certificate is gone", name)
		}
		if answer(good, true, "a.test", "/") != "r" {
			t.Errorf("%s: the table before has changed", name)
		}
	}
}

func TestCertificatesAreParsedOnce(t *testing.T) {
	c, other := newCertificate(t, "c"), newCertificate(t, "other")
	copied := *c
	table := compile(t, route("1", "a.test", "", edge, with(c)), route("2", "b.test", "", edge, with(&copied)))
	first := table.SNI("a.test").Certificate
	if table.SNI("b.test").Certificate != first || table.certs.count != 1 {
		t.Error("two routes with one certificate have two")
	}
	again, _ := Compile(Options{}, table, []RouteSpec{route("3", "c.test", "", edge, with(c))})
	if again.SNI("c.test").Certificate != first {
		t.Error("Compile parsed a certificate of the table before again")
	}
	next, _ := table.Apply([]RouteSpec{route("3", "c.test", "", edge, with(c)), route("1", "a.test", "", edge, with(other))}, nil)
	if next.SNI("c.test").Certificate != first || next.certs.count != 2 {
		t.Error("Apply parsed a certificate of the table before again")
	}
	next, _ = next.Apply(nil, []RouteKey{route("3", "", "").RouteKey, route("2", "", "").RouteKey})
	if next.certs.count != 1 {
		t.Errorf("%d certificates for one route", next.certs.count)
	}
	next, _ = next.Apply([]RouteSpec{route("1", "a.test", "", edge)}, nil)
	if next.certs.count != 0 {
		t.Errorf("%d certificates for none", next.certs.count)
	}
}

func TestDefaultCertificateIsReplaced(t *testing.T) {
	first, second := new(tls.Certificate), new(tls.Certificate)
	table, _ := Compile(Options{DefaultCertificate: first}, nil, nil)
	next := table.WithDefaultCertificate(second)
	after, _ := next.Apply(nil, nil)
	for _, c := range []struct {
		name  string
		table *Table
		want  *tls.Certificate
	}{{"before", table, first}, {"replaced", next, second}, {"the next table", after, second}} {
		if got := c.table.SNI("nobody.test").Certificate; got != c.want {
			t.Errorf("%s: certificate %p, want %p", c.name, got, c.want)
		}
	}
}
