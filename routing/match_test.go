package routing

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func TestHostAndPath(t *testing.T) {
	for _, row := range []struct {
		id, host, path string
		wild           bool
		key            string
		match          bool
	}{
		{"host ex.test matches ex.test", "ex.test", "", false, "ex.test", true},
		{"host ex.test matches ex.test:80", "ex.test", "", false, "ex.test:80", true},
		{"host ex.test matches ex.test.:80", "ex.test", "", false, "ex.test.:80", true},
		{"host ex.test matches ex.test/", "ex.test", "", false, "ex.test/", true},
		{"host ex.test matches ex.test./sub/", "ex.test", "", false, "ex.test./sub/", true},
		{"host ex.test does not match ex.test:", "ex.test", "", false, "ex.test:", false},
		{"host ex.test does not match ex.test:abc", "ex.test", "", false, "ex.test:abc", false},
		{"host ex.test does not match ex.test..", "ex.test", "", false, "ex.test..", false},
		{"host ex.test, path / matches ex.test", "ex.test", "/", false, "ex.test", true},
		{"host ex.test, path // matches ex.test/sub", "ex.test", "//", false, "ex.test/sub", true},
		{"host ex.test, path /sub/ matches ex.test/sub/", "ex.test", "/sub/", false, "ex.test/sub/", true},
		{"host ex.test, path /sub/ matches ex.test/sub/subsub", "ex.test", "/sub/", false, "ex.test/sub/subsub", true},
		{"host ex.test, path /sub/ does not match ex.test/sub", "ex.test", "/sub/", false, "ex.test/sub", false},
		{"host ex.test, path /sub/ does not match ex.test", "ex.test", "/sub/", false, "ex.test", false},
		{"host ex.test, path /sub matches ex.test/sub", "ex.test", "/sub", false, "ex.test/sub", true},
		{"host ex.test, path /sub matches ex.test/sub/", "ex.test", "/sub", false, "ex.test/sub/", true},
		{"host ex.test, path /sub matches ex.test/sub/subsub", "ex.test", "/sub", false, "ex.test/sub/subsub", true},
		{"host ex.test, path /sub does not match ex.test/", "ex.test", "/sub", false, "ex.test/", false},
		{"host ex.test, path /sub matches ex.test:80/sub", "ex.test", "/sub", false, "ex.test:80/sub", true},
		{"host www.ex.test, path / with a wildcard matches www.ex.test", "www.ex.test", "/", true, "www.ex.test", true},
		{"host www.ex.test, path / with a wildcard matches foo.ex.test:80/sub/", "www.ex.test", "/", true, "foo.ex.test:80/sub/", true},
		{"host www.ex.test, path / with a wildcard does not match foo.bar.ex.test", "www.ex.test", "/", true, "foo.bar.ex.test", false},
		{"host www.ex.test, path / with a wildcard does not match ex.test", "www.ex.test", "/", true, "ex.test", false},
		{"host www.ex.test, path / with a wildcard matches .ex.test", "www.ex.test", "/", true, ".ex.test", true},
		{"host www.ex.test, path / does not match foo.ex.test", "www.ex.test", "/", false, "foo.ex.test", false},
		{"host www.ex.test, path /a with a wildcard does not match x.ex.test/ab", "www.ex.test", "/a", true, "x.ex.test/ab", false},
		{"host com with a wildcard matches com", "com", "", true, "com", true},

		{"section 6", "www.ex.test", "", false, "WWW.EX.TEST/x", true},
		{"section 6", "www.ex.test", "", false, "www.ex.test:99999/", true},
		{"section 6", "www.ex.test", "", false, "xwww.ex.test/", false},
		{"section 6", "www.ex.test", "", false, "www.ex.test.evil/", false},
		{"section 6", "w.wild.test", "", true, "A.Wild.Test.:1/", true},
		{"section 6", "ex.test", "/foo", false, "ex.test/foo//", true},
		{"section 6", "ex.test", "/foo", false, "ex.test/foobar", false},
		{"section 6", "ex.test", "/foo", false, "ex.test/FOO", false},
		{"section 6", "ex.test", "/foo", false, "ex.test/%66oo", false},
		{"section 6", "ex.test", "/foo", false, "ex.test//foo", false},
		{"section 6", "ex.test", "/foo", false, "ex.test/./foo", false},
		{"section 6", "ex.test", "/foo", false, "ex.test/a/../foo", false},
		{"section 6", "ex.test", "/foo", false, "ex.test/foo;x", false},
		{"section 6", "ex.test", "/foo.bar", false, "ex.test/fooXbar", false},
		{"section 6", "ex.test", "/a%20b", false, "ex.test/a%20b", true},
		{"section 6", "ex.test", "/a b", false, "ex.test/a%20b", false},

		{"port in a wildcard label", "w.wild.test", "", true, "a:1.wild.test", false},
		{"only a port", "ex.test", "", false, ":80", false},
		{"only a dot", "ex.test", "", false, ".", false},
		{"no name", "ex.test", "", false, "", false},
		{"port and two dots", "ex.test", "", false, "ex.test..:80", false},
		{"two ports", "ex.test", "", false, "ex.test:80:80", false},
		{"host of digits", "10.0.0.1", "", false, "10.0.0.1:8080", true},
		{"host of digits", "10.0.0.1", "", false, "10.0.0.1", true},
		{"one upper-case letter at the end", "aaaaaaaa.test", "", false, "aaaaaaaa.tesT", true},
		{"one upper-case letter in the middle", "aaaaaaaa.test", "", false, "aaaaaaaA.test", true},
		{"a short name", "a.test", "", false, "A.test", true},
		{"the longest name", strings.Repeat("a", 255), "", false, strings.Repeat("A", 255) + ".:80", true},
		{"too long a name", "w.wild.test", "", true, strings.Repeat("a", 255) + ".wild.test", false},
		{"other than letters are not folded", "a`{[@.test", "", false, "A`{[@.TEST", true},
		{"other than letters are not folded", "a@b.test", "", false, "a`b.test", false},
		{"bytes beyond ASCII are not folded", "\xe1aaaaaaaa.test", "", false, "\xc1aaaaaaaa.test", false},
	} {
		table := compile(t, route("r", row.host, row.path, func(s *RouteSpec) { s.Wildcard = row.wild }))
		if got := ask(table, false, row.key) != "503"; got != row.match {
			t.Errorf("%s: host %q path %q key %q: match %t", row.id, row.host, row.path, row.key, got)
		}
	}
}

// TestAsterisk: OPTIONS * is found by host alone (routing.md section 2).
func TestAsterisk(t *testing.T) {
	table := compile(t, route("root", "a.test", "/"), route("foo", "a.test", "/foo"))
	if got := answer(table, false, "a.test", "*"); got != "root" {
		t.Errorf("* is served by %q", got)
	}
}

func TestPatternText(t *testing.T) {
	keys := []string{"www.ex.test", "www.ex.test.:80", "www.wild.test", "x.wild.test", ".wild.test", "a.b.wild.test", "q.aces.wild.test"}
	paths := []string{"", "/", "/x", "/x/", "/x/y/z", "/x/y/z/", "/x/y/zz", "/p", "/p/", "/pp", "/a\tb", "/a\tb/", "/a b", "/a\rb", "/a\nb/c", "/a\nbc"}
	for _, row := range []struct {
		id, host, path string
		wild           bool
		pattern        string
	}{
		{"HAProxy's pattern of host www.ex.test, path /x/y/z", "www.ex.test", "/x/y/z", false, `^www\.ex\.test\.?(:[0-9]+)?/x/y/z(/.*)?$`},
		{"HAProxy's pattern of host www.ex.test, path /x/", "www.ex.test", "/x/", false, `^www\.ex\.test\.?(:[0-9]+)?/x/(.*)?$`},
		{"HAProxy's pattern of host www.wild.test with a wildcard", "www.wild.test", "", true, `^[^\.]*\.wild\.test\.?(:[0-9]+)?(/.*)?$`},
		{"HAProxy's pattern of host p.aces.wild.test, path /p with a wildcard", "p.aces.wild.test", "/p", true, `^[^\.]*\.aces\.wild\.test\.?(:[0-9]+)?/p(/.*)?$`},
		{"HAProxy's pattern of host www.ex.test, path /a TAB b", "www.ex.test", "/a\tb", false, `^www\.ex\.test\.?(:[0-9]+)?/a\tb(/.*)?$`},
		{"HAProxy's pattern of host www.ex.test, path /a CR b", "www.ex.test", "/a\rb", false, `^www\.ex\.test\.?(:[0-9]+)?/a\rb(/.*)?$`},
		{"HAProxy's pattern of host www.ex.test, path /a LF b", "www.ex.test", "/a\nb", false, `^www\.ex\.test\.?(:[0-9]+)?/a\nb(/.*)?$`},
	} {
		table := compile(t, route("r", row.host, row.path, func(s *RouteSpec) { s.Wildcard = row.wild }))
		pattern, matches := regexp.MustCompile("(?s)"+row.pattern), 0
		for _, host := range keys {
			for _, path := range paths {
				want := pattern.MatchString(host + path)
				if got := answer(table, false, host, path) != "503"; got != want {
					t.Errorf("%s: %q matches: %t, the pattern says %t", row.id, host+path, got, want)
				}
				if want {
					matches++
				}
			}
		}
		if matches == 0 {
			t.Errorf("%s: no key matches", row.id)
		}
	}
}

func TestDomain(t *testing.T) {
	for _, row := range [][3]string{
		{"domain of www.host.test is host.test", "www.host.test", "host.test"}, {"domain of one.test is test", "one.test", "test"}, {"domain of www.mail.edge.acme.test is mail.edge.acme.test", "www.mail.edge.acme.test", "mail.edge.acme.test"},
		{"domain of test is \"\"", "test", ""}, {"domain of w1.d2.g3.d4.c5.ak.test is d2.g3.d4.c5.ak.test", "w1.d2.g3.d4.c5.ak.test", "d2.g3.d4.c5.ak.test"},
	} {
		if got, _ := domain(row[1]); got != row[2] {
			t.Errorf("%s: %q", row[0], got)
		}
	}
}

func TestWords(t *testing.T) {
	for _, row := range []struct {
		id            string
		term          Termination
		name, backend string
	}{
		{"backend prefix of termination none is be_http", TermNone, "http", "be_http"}, {"backend prefix of termination edge is be_edge_http", TermEdge, "edge", "be_edge_http"}, {"backend prefix of termination passthrough is be_tcp", TermPassthrough, "passthrough", "be_tcp"},
		{"backend prefix of termination foo (unknown) is be_http", 99, "unknown", "be_http"}, {"section 3", TermReencrypt, "reencrypt", "be_secure"},
	} {
		if row.term.String() != row.name || row.term.Backend() != row.backend {
			t.Errorf("%s: %q, %q", row.id, row.term, row.term.Backend())
		}
	}
	if s := fmt.Sprint(InsecureNone, InsecureAllow, InsecureRedirect, InsecurePolicy(9)); s != "None Allow Redirect unknown" {
		t.Error(s)
	}
	if s := fmt.Sprint(ForwardedAppend, ForwardedReplace, ForwardedIfNone, ForwardedNever, ForwardedPolicy(9)); s != "append replace if-none never unknown" {
		t.Error(s)
	}
}

func TestMembership(t *testing.T) {
	terms := map[string]Termination{"none": TermNone, "edge": TermEdge, "reencrypt": TermReencrypt, "passthrough": TermPassthrough}
	// An unknown policy is translated as None before it comes here.
	policies := map[string]InsecurePolicy{"": InsecureNone, "None": InsecureNone, "hsts": InsecureNone, "Allow": InsecureAllow, "Redirect": InsecureRedirect}
	for _, row := range []struct {
		id, term, policy, path             string
		plain, secure, redirects, bySwitch bool
	}{
		{"none, policy empty, no path: HTTP yes, edge or re-encrypt no, redirect 0, server names no, TCP no", "none", "", "", true, false, false, false},
		{"none, policy empty, a path: HTTP yes, edge or re-encrypt no, redirect 0, server names no, TCP no", "none", "", "/p", true, false, false, false},
		{"edge, policy empty, no path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "edge", "", "", false, true, false, false},
		{"edge, policy empty, a path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "edge", "", "/p", false, true, false, false},
		{"edge, policy None, no path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "edge", "None", "", false, true, false, false},
		{"edge, policy None, a path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "edge", "None", "/p", false, true, false, false},
		{"edge, policy Allow, a path: HTTP yes, edge or re-encrypt yes, redirect 0, server names no, TCP no", "edge", "Allow", "/p", true, true, false, false},
		{"edge, policy Redirect, no path: HTTP no, edge or re-encrypt yes, redirect 1, server names no, TCP no", "edge", "Redirect", "", false, true, true, false},
		{"edge, policy Redirect, a path: HTTP no, edge or re-encrypt yes, redirect 1, server names no, TCP no", "edge", "Redirect", "/p", false, true, true, false},
		{"edge, policy hsts (unknown), no path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "edge", "hsts", "", false, true, false, false},
		{"reencrypt, policy empty, no path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP yes", "reencrypt", "", "", false, true, false, false},
		{"reencrypt, policy empty, a path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "reencrypt", "", "/p", false, true, false, false},
		{"reencrypt, policy None, no path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP yes", "reencrypt", "None", "", false, true, false, false},
		{"reencrypt, policy None, a path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP no", "reencrypt", "None", "/p", false, true, false, false},
		{"reencrypt, policy Allow, a path: HTTP yes, edge or re-encrypt yes, redirect 0, server names no, TCP no", "reencrypt", "Allow", "/p", true, true, false, false},
		{"reencrypt, policy Redirect, no path: HTTP no, edge or re-encrypt yes, redirect 1, server names no, TCP yes", "reencrypt", "Redirect", "", false, true, true, false},
		{"reencrypt, policy Redirect, a path: HTTP no, edge or re-encrypt yes, redirect 1, server names no, TCP no", "reencrypt", "Redirect", "/p", false, true, true, false},
		{"reencrypt, policy hsts (unknown), no path: HTTP no, edge or re-encrypt yes, redirect 0, server names no, TCP yes", "reencrypt", "hsts", "", false, true, false, false},
		{"passthrough, policy empty, no path: HTTP no, edge or re-encrypt no, redirect 0, server names yes, TCP yes", "passthrough", "", "", false, false, false, true},
		{"passthrough, policy empty, a path: HTTP no, edge or re-encrypt no, redirect 0, server names no, TCP no", "passthrough", "", "/p", false, false, false, false},
		{"passthrough, policy None, no path: HTTP no, edge or re-encrypt no, redirect 0, server names yes, TCP yes", "passthrough", "None", "", false, false, false, true},
		{"passthrough, policy None, a path: HTTP no, edge or re-encrypt no, redirect 0, server names no, TCP no", "passthrough", "None", "/p", false, false, false, false},
		{"passthrough, policy Allow, a path: HTTP no, edge or re-encrypt no, redirect 0, server names no, TCP no", "passthrough", "Allow", "/p", false, false, false, false},
		{"passthrough, policy Redirect, no path: HTTP no, edge or re-encrypt no, redirect 1, server names yes, TCP yes", "passthrough", "Redirect", "", false, false, true, true},
		{"passthrough, policy Redirect, a path: HTTP no, edge or re-encrypt no, redirect 1, server names no, TCP no", "passthrough", "Redirect", "/p", false, false, true, false},
		{"passthrough, policy hsts (unknown), no path: HTTP no, edge or re-encrypt no, redirect 0, server names yes, TCP yes", "passthrough", "hsts", "", false, false, false, true},
		{"a policy without a termination", "none", "Redirect", "", true, false, true, false},
		{"a policy without a termination, and a path", "none", "Redirect", "/p", true, false, true, false},
		{"nothing to allow", "none", "Allow", "", true, false, false, false},
	} {
		table := compile(t, route("r", "h.test", row.path, func(s *RouteSpec) {
			s.Termination, s.Insecure = terms[row.term], policies[row.policy]
		}))
		plain := "503"
		switch {
		case row.redirects:
			plain = "302 r"
		case row.plain:
			plain = "r"
		}
		secure := "503"
		if row.secure {
			secure = "r"
		}
		if got := answer(table, false, "h.test", "/p/x"); got != plain {
			t.Errorf("%s: plain request: %q, want %q", row.id, got, plain)
		}
		if got := answer(table, true, "h.test", "/p/x"); got != secure {
			t.Errorf("%s: secure request: %q, want %q", row.id, got, secure)
		}
		if got := table.SNI("h.test").Passthrough != nil; got != row.bySwitch {
			t.Errorf("%s: passthrough %t", row.id, got)
		}
	}
}

func TestRouteWithoutHostServesNothing(t *testing.T) {
	table := compile(t, route("r", "", ""))
	if table.Len() != 1 || answer(table, false, "", "/") != "503" {
		t.Error("a route without host is served, or unknown")
	}
}

// TestOrder: the HAProxy router writes lines in an order, and here there are none; what the order
// is for is asked instead.
func TestOrder(t *testing.T) {
	wc := []RouteSpec{route("w", "x.wc", "/", wildcard), route("wfoo", "x.wc", "/foo", wildcard), route("sp", "sp.wc", "/")}
	for _, row := range []struct {
		id     string
		routes []RouteSpec
		key    string
		want   string
	}{
		{"keys a..f plus wildcard of test.org, wildcard prefix rule wildcard last: order f e d c b a *.test.org", []RouteSpec{route("a", "a.test.org", ""), route("w", "x.test.org", "", wildcard)}, "a.test.org/", "a"},
		{"keys a..f plus wildcard of test.org, wildcard prefix rule wildcard last: order f e d c b a *.test.org", []RouteSpec{route("a", "a.test.org", ""), route("w", "x.test.org", "", wildcard)}, "g.test.org/", "w"},
		{"keys host api-prod with path /x/y/z and without: order path line first", []RouteSpec{route("root", "api-prod.test", ""), route("xyz", "api-prod.test", "/x/y/z")}, "api-prod.test/x/y/z", "xyz"},
		{"routes / and /foo and /foo/bar: /foo/bar/x is served by /foo/bar", []RouteSpec{route("/", "a.test", "/"), route("/foo", "a.test", "/foo"), route("/foo/bar", "a.test", "/foo/bar")}, "a.test/foo/bar/x", "/foo/bar"},
		{"routes / and /foo: /foobar is served by /", []RouteSpec{route("/", "a.test", "/"), route("/foo", "a.test", "/foo")}, "a.test/foobar", "/"},
		{"routes /foo and /foo/: /foo/x is served by /foo/ route", []RouteSpec{route("/foo", "a.test", "/foo"), route("/foo/", "a.test", "/foo/")}, "a.test/foo/x", "/foo/"},
		{"routes /foo and /foo/: /foo is served by /foo route", []RouteSpec{route("/foo", "a.test", "/foo"), route("/foo/", "a.test", "/foo/")}, "a.test/foo", "/foo"},
		{"routes /foo/ and /foo/!x: /foo/!x is served by /foo/ (quirk), longest instead", []RouteSpec{route("/foo/", "a.test", "/foo/"), route("/foo/!x", "a.test", "/foo/!x")}, "a.test/foo/!x", "/foo/!x"},
		{"routes /foo/ and /foo/$x: /foo/$x is served by /foo/$x", []RouteSpec{route("/foo/", "a.test", "/foo/"), route("/foo/$x", "a.test", "/foo/$x")}, "a.test/foo/$x", "/foo/$x"},
		{"routes /foo/ and /foo/x: /foo/x is served by /foo/x", []RouteSpec{route("/foo/", "a.test", "/foo/"), route("/foo/x", "a.test", "/foo/x")}, "a.test/foo/x", "/foo/x"},
		{"routes wildcard *.wc /, wildcard *.wc /foo, exact sp.wc /: y.wc/foo is served by wildcard /foo", wc, "y.wc/foo", "wfoo"},
		{"routes wildcard *.wc /, wildcard *.wc /foo, exact sp.wc /: y.wc/ is served by wildcard /", wc, "y.wc/", "w"},
		{"routes wildcard *.wc /, wildcard *.wc /foo, exact sp.wc /: x.wc:99/foo/z is served by wildcard /foo", wc, "x.wc:99/foo/z", "wfoo"},
		{"routes wildcard *.wc /, wildcard *.wc /foo, exact sp.wc /: wc/ is served by 503", wc, "wc/", "503"},
		{"routes wildcard *.wc /, wildcard *.wc /foo, exact sp.wc /: a.b.wc/ is served by 503", wc, "a.b.wc/", "503"},
		{"routes wildcard *.wc /, wildcard *.wc /foo, exact sp.wc /: -.wc/ is served by wildcard /", wc, "-.wc/", "w"},
		{"exact before a longer wildcard path", wc, "sp.wc/foo", "sp"},
		{"wildcard when no exact path matches", []RouteSpec{route("w", "x.wc", "/foo", wildcard), route("sp", "sp.wc", "/bar")}, "sp.wc/foo", "w"},
		{"equal paths in the order of the spec", []RouteSpec{route("1", "a.test", ""), route("2", "a.test", "/"), route("3", "a.test", "//")}, "a.test/x", "1"},
		{"equal paths in the order of the spec", []RouteSpec{route("2", "a.test", "/"), route("1", "a.test", "")}, "a.test/x", "2"},
		{"equal paths in different tables", []RouteSpec{route("1", "a.test", "", edge), route("2", "a.test", "/")}, "a.test/x", "2"},
	} {
		if got := ask(compile(t, row.routes...), false, row.key); got != row.want {
			t.Errorf("%s: %s is served by %q, want %q", row.id, row.key, got, row.want)
		}
	}
}

func TestRedirect(t *testing.T) {
	for _, row := range []struct {
		name   string
		routes []RouteSpec
		secure bool
		key    string
		want   string
	}{
		{"http beside redirect", []RouteSpec{route("e", "a.test", "/", edge, toHTTPS), route("h", "a.test", "/foo")}, false, "a.test/foo", "h"},
		{"redirect beside http", []RouteSpec{route("e", "a.test", "/", edge, toHTTPS), route("h", "a.test", "/foo")}, false, "a.test/bar", "302 e"},
		{"None below http", []RouteSpec{route("h", "a.test", "/"), route("e", "a.test", "/foo", edge)}, false, "a.test/foo", "h"},
		{"redirect below http", []RouteSpec{route("h", "a.test", "/"), route("e", "a.test", "/foo", edge, toHTTPS)}, false, "a.test/foo", "302 e"},
		{"redirect below Allow", []RouteSpec{route("h", "a.test", "/", edge, allow), route("e", "a.test", "/foo", edge, toHTTPS)}, false, "a.test/foo", "302 e"},
		{"TLS outside the only TLS path", []RouteSpec{route("h", "a.test", "/"), route("e", "a.test", "/foo", edge)}, true, "a.test/bar", "503"},
		{"http is not reached over TLS", []RouteSpec{route("h", "a.test", "/")}, true, "a.test/", "503"},
		{"no redirect outside the path", []RouteSpec{route("e", "a.test", "/secure", edge, toHTTPS)}, false, "a.test/other", "503"},
		{"None shields from a shorter redirect", []RouteSpec{route("e", "a.test", "/", edge, toHTTPS), route("n", "a.test", "/foo", edge)}, false, "a.test/foo", "503"},
		{"passthrough None", []RouteSpec{route("p", "a.test", "", passthrough)}, false, "a.test/", "503"},
		{"passthrough None, wildcard http", []RouteSpec{route("p", "a.test", "", passthrough), route("h", "x.test", "/", wildcard)}, false, "a.test/", "h"},
		{"exact None shields from a wildcard redirect", []RouteSpec{route("n", "a.test", "", edge), route("w", "x.test", "", wildcard, edge, toHTTPS)}, false, "a.test/", "503"},
		{"exact None with a path shields its path", []RouteSpec{route("n", "a.test", "/p", edge), route("w", "x.test", "", wildcard, edge, toHTTPS)}, false, "a.test/p", "503"},
		{"exact None with a path shields no other", []RouteSpec{route("n", "a.test", "/p", edge), route("w", "x.test", "", wildcard, edge, toHTTPS)}, false, "a.test/q", "302 w"},
		{"exact None, wildcard with paths", []RouteSpec{route("n", "a.test", "/p", edge), route("w", "x.test", "/p", wildcard), route("w2", "x.test", "/p/q", wildcard, edge, toHTTPS)}, false, "a.test/p/q", "w"},
		{"TLS falls to the wildcard", []RouteSpec{route("h", "a.test", ""), route("w", "x.test", "", wildcard, edge)}, true, "a.test/", "w"},
	} {
		if got := ask(compile(t, row.routes...), row.secure, row.key); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// TestManyPaths has a chain of nested paths and many siblings on one host.
func TestManyPaths(t *testing.T) {
	const siblings, depth = 3000, 200
	var specs []RouteSpec
	for i := range siblings {
		path := fmt.Sprintf("/s/%d", i*7919%siblings)
		specs = append(specs, route(path, "a.test", path))
	}
	for i := range depth {
		path := strings.Repeat("/d", i+1)
		specs = append(specs, route(path, "a.test", path, func(s *RouteSpec) {
			if i%2 == 1 {
				s.Termination = TermEdge
			}
		}))
	}
	table := compile(t, specs...)
	for i := range siblings {
		path := fmt.Sprintf("/s/%d", i)
		if got := answer(table, false, "a.test", path+"/x"); got != path {
			t.Fatalf("%s is served by %q", path, got)
		}
		if got := answer(table, false, "a.test", path+"x"); got != "503" {
			t.Fatalf("%sx is served by %q", path, got)
		}
	}
	for i := range depth {
		path := strings.Repeat("/d", i+1)
		if got, want := answer(table, false, "a.test", path+"/x"), strings.Repeat("/d", i/2*2+1); got != want {
			t.Fatalf("%s: %q, want %q", path, got, want)
		}
		if got, want := answer(table, true, "a.test", path+"dd"), strings.Repeat("/d", i/2*2); got != want && !(want == "" && got == "503") {
			t.Fatalf("%sdd over TLS: %q, want %q", path, got, want)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	table := compile(t, route("a", "a.long-name.apps.example.test", "/", edge, toHTTPS), route("w", "x.wild.test", "/p", wildcard))
	path := []byte("/p/x")
	for _, host := range []string{"a.long-name.apps.example.test", "A.LONG-NAME.apps.example.test.:8080", "q.wild.test", "Q.Wild.Test:1", "unknown.test", "bad:"} {
		raw := []byte(host)
		if n := testing.AllocsPerRun(100, func() {
			table.Match(&View{Host: raw, Path: path})
			table.Match(&View{Secure: true, Host: raw, Path: path})
			table.SNI(host)
		}); n != 0 {
			t.Errorf("%s: %v allocations", host, n)
		}
	}
}
