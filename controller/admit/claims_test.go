package admit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"turnout/controller/source"
)

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// route reads "NS/NAME HOST [PATH] [W] [edge|passthrough]" with an age in hours.
func route(age int, text string) Claim {
	fields := strings.Fields(text)
	ns, name, _ := strings.Cut(fields[0], "/")
	c := Claim{
		Key: source.Key{Namespace: ns, Name: name}, UID: fields[0], Created: epoch.Add(time.Duration(age) * time.Hour), Host: fields[1],
	}
	for _, f := range fields[2:] {
		switch {
		case f == "W":
			c.Wildcard = true
		case f == "edge":
			c.TLS = true
		case f == "passthrough":
			c.TLS, c.Passthrough = true, true
		case strings.HasPrefix(f, "/"):
			c.Path = f
		case strings.HasPrefix(f, "uid="):
			c.UID = f[4:]
		}
	}
	return c
}

// admitted returns the names of all admitted claims, sorted.
func (s *Claims) admitted() []string {
	var out []string
	for c := range s.claims.All() {
		if c.verdict.Admitted {
			out = append(out, c.Key.String())
		}
	}
	slices.Sort(out)
	return out
}

func (s *Claims) message(t *testing.T, name string) string {
	t.Helper()
	ns, n, _ := strings.Cut(name, "/")
	v, ok := s.Verdict(source.Key{Namespace: ns, Name: n})
	if !ok {
		t.Fatalf("no claim %s", name)
	}
	if !v.Admitted && v.Reason != ReasonClaimed {
		t.Errorf("%s: reason %q", name, v.Reason)
	}
	return v.Message
}

func want(t *testing.T, s *Claims, step string, admitted ...string) {
	t.Helper()
	slices.Sort(admitted)
	if diff := cmp.Diff(admitted, s.admitted()); diff != "" {
		t.Errorf("%s: admitted (-want +got):\n%s", step, diff)
	}
}

// TestSameHost is about sequences on one host; the smaller number is the
// older route.
func TestSameHost(t *testing.T) {
	add := func(age int, text string) func(*Claims) { return func(s *Claims) { s.Set(route(age, text)) } }
	del := func(name string) func(*Claims) {
		return func(s *Claims) {
			ns, n, _ := strings.Cut(name, "/")
			s.Remove(source.Key{Namespace: ns, Name: n})
		}
	}
	for _, c := range []struct {
		id    string
		steps []func(*Claims)
		want  []string
	}{
		{"add 000: active 000", []func(*Claims){add(0, "n/000 test.com")}, []string{"n/000"}},
		{"add 000 rv1, add 000 rv2: active 000", []func(*Claims){add(0, "n/000 test.com"), add(0, "n/000 test.com")}, []string{"n/000"}},
		{"add uid 001, same name uid 002: active 002", []func(*Claims){add(1, "n/a test.com uid=001"), add(1, "n/a test.com uid=002")}, []string{"n/a"}},
		{"add uid 002, same name uid 001: active 001", []func(*Claims){add(1, "n/a test.com uid=002"), add(1, "n/a test.com uid=001")}, []string{"n/a"}},
		{"add 001 rv1, add 001 rv1: active 001", []func(*Claims){add(1, "n/001 test.com"), add(1, "n/001 test.com")}, []string{"n/001"}},
		{"add 000, add 001: active 000, inactive 001", []func(*Claims){add(0, "n/000 test.com"), add(1, "n/001 test.com")}, []string{"n/000"}},
		{"add 001, add 000: active 000, inactive 001", []func(*Claims){add(1, "n/001 test.com"), add(0, "n/000 test.com")}, []string{"n/000"}},
		{"add 000 test.com, add 001 test2.com: active both", []func(*Claims){add(0, "n/000 test.com"), add(1, "n/001 test2.com")}, []string{"n/000", "n/001"}},
		{"add 011, add 001, remove 011: active 001", []func(*Claims){add(11, "n/011 test.com"), add(1, "n/001 test.com"), del("n/011")}, []string{"n/001"}},
		{"add 011 test.com, add 001 test2.com, modify 001 to test.com: active 001, inactive 011", []func(*Claims){add(11, "n/011 test.com"), add(1, "n/001 test2.com"), add(1, "n/001 test.com")}, []string{"n/001"}},
		{"remove unknown: active none", []func(*Claims){del("n/none")}, nil},
		{"add 001, add 011, remove 001: active 011", []func(*Claims){add(1, "n/001 test.com"), add(11, "n/011 test.com"), del("n/001")}, []string{"n/011"}},
		{"add 111, 011, 001, remove 001: active 011, inactive 111", []func(*Claims){add(111, "n/111 test.com"), add(11, "n/011 test.com"), add(1, "n/001 test.com"), del("n/001")}, []string{"n/011"}},
		{"add 111, 011, 001, remove 001, remove 011: active 111", []func(*Claims){add(111, "n/111 test.com"), add(11, "n/011 test.com"), add(1, "n/001 test.com"), del("n/001"), del("n/011")}, []string{"n/111"}},
		{"add 001, add 011, remove 011: active 001", []func(*Claims){add(1, "n/001 test.com"), add(11, "n/011 test.com"), del("n/011")}, []string{"n/001"}},
		{"001 /foo -> /bar -> /foo -> /bar -> /foo: active 001", []func(*Claims){add(1, "n/001 t /foo"), add(1, "n/001 t /bar"), add(1, "n/001 t /foo")}, []string{"n/001"}},
		{"001 /foo, remove: active none", []func(*Claims){add(1, "n/001 t /foo"), del("n/001")}, nil},
		{"002 /foo, 001 /foo: active 001, inactive 002", []func(*Claims){add(2, "n/002 t /foo"), add(1, "n/001 t /foo")}, []string{"n/001"}},
		{"001 /x/y/z; 002 /foo -> /bar -> /x/y/z: active 001, inactive 002", []func(*Claims){add(1, "n/001 t /x/y/z"), add(2, "n/002 t /foo"), add(2, "n/002 t /bar"), add(2, "n/002 t /x/y/z")}, []string{"n/001"}},
		{"001 passthrough; 002 http /bar; 003 edge /foo: active 001 002, inactive 003", []func(*Claims){add(1, "n/001 t passthrough"), add(2, "n/002 t /bar"), add(3, "n/003 t /foo edge")}, []string{"n/001", "n/002"}},
		{"001 edge /foo; 002 passthrough: active 001, inactive 002", []func(*Claims){add(1, "n/001 t /foo edge"), add(2, "n/002 t passthrough")}, []string{"n/001"}},
		{"empty and root path", []func(*Claims){add(1, "n/001 t"), add(2, "n/002 t /")}, []string{"n/001", "n/002"}},
	} {
		s := NewClaims(Options{})
		for _, step := range c.steps {
			step(s)
			s.Settle()
		}
		want(t, s, c.id, c.want...)
	}
}

// TestActivation: which of the routes of a host are served when one more is offered.
func TestActivation(t *testing.T) {
	t1, t2, t3a := route(1, "test/1 h uid=1"), route(11, "test/2 h uid=2"), route(12, "test/3 h /a uid=3")
	o1 := route(1, "other/1 h uid=1b")
	for _, c := range []struct {
		id     string
		free   bool
		claims []Claim
		want   []string
	}{
		{"oldest-first, active t1, offered t2: active t1, displaced t2 (never active)", true, []Claim{t1, t2}, []string{"test/1"}},
		{"oldest-first, active t1, offered t3a: active t1 t3a", true, []Claim{t1, t3a}, []string{"test/1", "test/3"}},
		{"oldest-first, active t3a, offered t1: active t1 t3a", true, []Claim{t3a, t1}, []string{"test/1", "test/3"}},
		{"oldest-first, active t2 t3a, offered o1: active o1 t3a, displaced t2", true, []Claim{t2, t3a, o1}, []string{"other/1", "test/3"}},
		{"strict, active none, offered t1: active t1", false, []Claim{t1}, []string{"test/1"}},
		{"strict, active t2, offered t1: active t1, displaced t2", false, []Claim{t2, t1}, []string{"test/1"}},
		{"strict, active t1, offered t3a: active t1 t3a", false, []Claim{t1, t3a}, []string{"test/1", "test/3"}},
		{"strict, active t2 t3a, offered o1: active o1, displaced t2 t3a", false, []Claim{t2, t3a, o1}, []string{"other/1"}},
	} {
		s := NewClaims(Options{DisableOwnership: c.free})
		for _, claim := range c.claims {
			s.Set(claim)
			s.Settle()
		}
		want(t, s, c.id, c.want...)
	}
}

func TestAge(t *testing.T) {
	early, late := route(0, "n/a h uid=x"), route(1, "n/b h uid=a")
	alpha, beta := route(0, "n/c h uid=alpha"), route(0, "n/d h uid=beta")
	first, second := route(0, "n/e h uid=z"), route(0, "n/f h uid=a")
	first.Order, second.Order = "1", "2"
	for _, c := range []struct {
		id   string
		a, b Claim
		want bool
	}{
		{"earlier time is older than later time", early, late, true}, {"later time is not older than earlier time", late, early, false},
		{"same time uid alpha is older than uid beta", alpha, beta, true}, {"same time uid beta is not older than uid alpha", beta, alpha, false},
		{"order before UID", first, second, true},
	} {
		if got := c.a.older(&c.b); got != c.want {
			t.Errorf("%s: older = %v", c.id, got)
		}
	}
}

// TestMessages: what the status of two routes of one host says, step by step.
func TestMessages(t *testing.T) {
	s := NewClaims(Options{})
	check := func(id, name, message string) {
		t.Helper()
		s.Settle()
		if got := s.message(t, name); got != message {
			t.Errorf("%s: %s has the message %q, want %q", id, name, got, message)
		}
	}
	s.Set(route(10, "foo/test www.ex.test"))
	check("add test: admitted, served", "foo/test", "")
	s.Set(route(11, "foo/dupe www.ex.test"))
	check("add dupe: rejected, HostAlreadyClaimed route test already exposes www.ex.test and is older; not forwarded", "foo/dupe", "route test already exposes www.ex.test and is older")
	s.Remove(source.Key{Namespace: "foo", Name: "dupe"})
	check("delete dupe: nothing recorded, test still served", "foo/test", "")
	s.Set(route(9, "foo/dupe www.ex.test uid=new"))
	check("add dupe with new UID and T-1h: dupe served; test rejected, HostAlreadyClaimed replaced by older route dupe", "foo/test", "replaced by older route dupe")
	check("add dupe with new UID and T-1h: dupe served; test rejected, HostAlreadyClaimed replaced by older route dupe", "foo/dupe", "")
	s.Set(route(30, "foo/other www.ex.test /p"))
	check("what was said stays", "foo/test", "replaced by older route dupe")
	s.Remove(source.Key{Namespace: "foo", Name: "other"})
	s.Set(route(10, "foo/test www.ex2.test"))
	check("modify test host to www.ex2.test: served; two hosts tracked", "foo/test", "")
	if _, hosts := s.Len(); hosts != 2 {
		t.Errorf("modify test host to www.ex2.test: served; two hosts tracked: %d hosts", hosts)
	}
	s.Set(route(12, "bar/name www.ex.test"))
	check("route in namespace bar, newer, host of foo: rejected, a route in another namespace holds www.ex.test and is older than NAME", "bar/name", "a route in another namespace holds www.ex.test and is older than name")
	s.Set(route(13, "foo/late www.ex.test /x"))
	check("path of its own", "foo/late", "")
	s.Remove(source.Key{Namespace: "foo", Name: "dupe"}) // one host is tracked, but that others wait for it
	check("owner gone", "bar/name", "")
	check("owner gone", "foo/late", "namespace bar owns hostname www.ex.test")
	s.Remove(source.Key{Namespace: "bar", Name: "name"})
	check("promoted", "foo/late", "")
	s.Remove(source.Key{Namespace: "foo", Name: "late"})
	s.Remove(source.Key{Namespace: "foo", Name: "test"})
	s.Settle()
	if claims, hosts := s.Len(); claims != 0 || hosts != 0 {
		t.Errorf("delete test: zero hosts tracked: %d claims, %d hosts are left", claims, hosts)
	}
}

// TestPromotion: who is served when those before it go.
func TestPromotion(t *testing.T) {
	s := NewClaims(Options{})
	for _, c := range []Claim{route(0, "n/a h"), route(1, "n/b h /foo"), route(2, "n/c h /foo"), route(3, "n/d h /foo"), route(4, "n/e h /bar")} {
		s.Set(c)
	}
	s.Settle()
	want(t, s, "all created: admitted a b e, rejected c d", "n/a", "n/b", "n/e")
	s.Remove(source.Key{Namespace: "n", Name: "b"})
	if keys := s.Settle(); len(keys) != 2 { // c holds the path now, d has a message that says so
		t.Errorf("delete b: admitted a c e, rejected d: changed %v, want c and d", keys)
	}
	want(t, s, "delete b: admitted a c e, rejected d", "n/a", "n/c", "n/e")
	s.Remove(source.Key{Namespace: "n", Name: "c"})
	s.Settle()
	want(t, s, "delete c: admitted a d e", "n/a", "n/d", "n/e")
	s.Remove(source.Key{Namespace: "n", Name: "e"})
	s.Settle()
	want(t, s, "delete e: admitted a d", "n/a", "n/d")
}

// TestWildcardClaims: each route against each of those it conflicts with,
// and against all others of the list at once.
func TestWildcardClaims(t *testing.T) {
	d1 := []string{"ns1/r1", "ns1/r2", "ns2/r1", "ns2/r2"}
	for _, c := range []struct {
		id        string
		claim     Claim
		older     []Claim
		conflicts []string
	}{
		{"route ns1/r5 foo.same.net [W], T 4: conflicts with ns1/r4", route(4, "ns1/r5 foo.same.net W"), []Claim{route(3, "ns1/r4 www.same.net W"), route(1, "ns1/r2 www.other.net W")}, []string{"ns1/r4"}},
		{"route ns2/r5 www.same.com /abc [W]: no conflicts", route(13, "ns2/r5 www.same.com /abc W"), []Claim{route(12, "ns2/r4 www.same.com W")}, nil},
		{"route ns2/r7 foo.same.com /abc [W], T 14: conflicts with ns2/r5", route(14, "ns2/r7 foo.same.com /abc W"), []Claim{route(12, "ns2/r4 www.same.com W"), route(13, "ns2/r5 www.same.com /abc W")}, []string{"ns2/r5"}},
		{"route ns3/r3 net /p1 [W], T 22: conflicts with ns1/r1 ns1/r2 ns2/r1 ns2/r2", route(22, "ns3/r3 www.net.test /p1 W"), []Claim{
			route(0, "ns1/r1 a.net.test"), route(1, "ns1/r2 b.net.test W"), route(10, "ns2/r1 c.net.test"), route(11, "ns2/r2 d.net.test W"),
		}, d1},
		{"route ns4/r1 d1.com: no conflicts", route(30, "ns4/r1 d1.com"), nil, nil},
		{"route ns5/r1 d1.com, T 31: conflicts with ns4/r1", route(31, "ns5/r1 d1.com"), []Claim{route(30, "ns4/r1 d1.com")}, []string{"ns4/r1"}},
		{"route ns4/r2 d1.com, T 32: conflicts with ns4/r1 ns5/r1", route(32, "ns4/r2 d1.com"), []Claim{route(30, "ns4/r1 d1.com"), route(31, "ns5/r1 d1.com")}, []string{"ns4/r1", "ns5/r1"}},
		{"route ns7/r3 bar.d1.com /foo, T 51: conflicts with ns6/r1", route(51, "ns7/r3 bar.d1.com /foo"), []Claim{route(40, "ns6/r1 foo.d1.com W"), route(50, "ns7/r1 other.d9.com W")}, []string{"ns6/r1"}},
		{"route ns10/r1 bar.d2.com [W], T 50: conflicts with ns9/r1", route(50, "ns10/r1 bar.d2.com W"), []Claim{route(40, "ns9/r1 foo.d2.com")}, []string{"ns9/r1"}},
		{"route ns10/r2 bar.d2.com: no conflicts", route(51, "ns10/r2 bar.d2.com"), []Claim{route(40, "ns9/r1 foo.d2.com")}, nil},
		{"route ns10/r3 foo.d2.com, T 52: conflicts with ns9/r1", route(52, "ns10/r3 foo.d2.com"), []Claim{route(40, "ns9/r1 foo.d2.com")}, []string{"ns9/r1"}},
		{"route ns10/r6 foo.d2.com /p1/p2/other, T 55: conflicts with ns9/r1", route(55, "ns10/r6 foo.d2.com /p1/p2/other"), []Claim{route(40, "ns9/r1 foo.d2.com")}, []string{"ns9/r1"}},
		{"route ns13/r1 foo.d3.com [W], T 80: conflicts with ns12/r1 ns12/r2", route(80, "ns13/r1 foo.d3.com W"), []Claim{route(70, "ns12/r1 foo.d3.com"), route(71, "ns12/r2 bar.d3.com")}, []string{"ns12/r1", "ns12/r2"}},
		{"route ns13/r2 bar.d3.com, T 81: conflicts with ns12/r2", route(81, "ns13/r2 bar.d3.com"), []Claim{route(70, "ns12/r1 foo.d3.com"), route(71, "ns12/r2 bar.d3.com")}, []string{"ns12/r2"}},
		{"route ns15/r2 foo.d4.com /abc: no conflicts", route(101, "ns15/r2 foo.d4.com /abc"), []Claim{route(100, "ns15/r1 foo.d4.com")}, nil},
		{"route ns15/r3 foo.d4.com, T 102: conflicts with ns15/r1", route(102, "ns15/r3 foo.d4.com"), []Claim{route(100, "ns15/r1 foo.d4.com"), route(101, "ns15/r2 foo.d4.com /abc")}, []string{"ns15/r1"}},
		{"route ns15/r7 www.d4.com [W], T 106: conflicts with ns15/r5", route(106, "ns15/r7 www.d4.com W"), []Claim{route(104, "ns15/r5 www.d4.com W"), route(105, "ns15/r6 www.d4.com /abc W")}, []string{"ns15/r5"}},
		{"route ns15/r8 www.d4.com /abc [W], T 107: conflicts with ns15/r6", route(107, "ns15/r8 www.d4.com /abc W"), []Claim{route(104, "ns15/r5 www.d4.com W"), route(105, "ns15/r6 www.d4.com /abc W")}, []string{"ns15/r6"}},
		{"fortytwo api.namespace.test, T+3h: rejected, HostAlreadyClaimed", route(3, "fortytwo/r api.namespace.test"), []Claim{route(0, "owner/w w.namespace.test W")}, []string{"owner/w"}},
		{"owner api.namespace.test, T+4h: ok", route(4, "owner/r api.namespace.test"), []Claim{route(0, "owner/w w.namespace.test W")}, nil},
		{"owner wild.namespace.test [W], T+4h: rejected, HostAlreadyClaimed", route(4, "owner/r wild.namespace.test W"), []Claim{route(0, "owner/w w.namespace.test W")}, []string{"owner/w"}},
		{"notowner www.namespace.test, T+2h: rejected, HostAlreadyClaimed", route(2, "notowner/r www.namespace.test"), []Claim{route(0, "owner/w w.namespace.test W")}, []string{"owner/w"}},
	} {
		var free []Claim
		for _, older := range c.older {
			conflict := slices.Contains(c.conflicts, older.Key.String())
			if !conflict {
				free = append(free, older)
				continue
			}
			if got := admittedWith(Options{AllowWildcard: true}, c.claim, older); got {
				t.Errorf("%s: admitted next to %s", c.id, older.Key)
			}
		}
		if !admittedWith(Options{AllowWildcard: true}, c.claim, free...) {
			t.Errorf("%s: not admitted next to routes it does not conflict with", c.id)
		}
	}
}

func admittedWith(o Options, c Claim, others ...Claim) bool {
	s := NewClaims(o)
	for _, other := range others {
		s.Set(other)
	}
	s.Set(c)
	s.Settle()
	v, _ := s.Verdict(c.Key)
	return v.Admitted
}

func TestWildcardMessages(t *testing.T) {
	s := NewClaims(Options{AllowWildcard: true})
	s.Set(route(0, "owner/w w.namespace.test W"))
	s.Set(route(2, "owner/x x.namespace.test W"))
	s.Set(route(3, "other/r www.namespace.test"))
	s.Set(route(4, "owner/a a.namespace.test"))
	s.Set(route(5, "owner/b a.namespace.test"))
	s.Settle()
	for name, message := range map[string]string{
		"owner/w": "",
		"owner/x": "wildcard route owner/w has host *.namespace.test, blocking x.namespace.test",
		"other/r": "a route in another namespace holds host www.namespace.test",
		"owner/a": "",
		"owner/b": "route owner/a has host a.namespace.test",
	} {
		if got := s.message(t, name); got != message {
			t.Errorf("%s has the message %q, want %q", name, got, message)
		}
	}
	// An older route of another namespace takes the domain from the wildcard.
	s.Set(route(-1, "bouncer/r api.namespace.test"))
	s.Settle()
	want(t, s, "bouncer api.namespace.test created T-1h: ok; owner's wildcard route becomes rejected, HostAlreadyClaimed", "bouncer/r", "other/r", "owner/a")
	if got := s.message(t, "owner/w"); got != "a route in another namespace holds host w.namespace.test" {
		t.Errorf("bouncer api.namespace.test created T-1h: ok; owner's wildcard route becomes rejected, HostAlreadyClaimed: owner/w has the message %q", got)
	}
	s.Remove(source.Key{Namespace: "bouncer", Name: "r"})
	s.Settle()
	want(t, s, "after bouncer api.namespace.test created T-1h: ok; owner's wildcard route becomes rejected, HostAlreadyClaimed", "owner/w", "owner/a")
	s.Set(route(-1, "owner/z z.namespace.test W"))
	s.Settle()
	if got := s.message(t, "owner/w"); got != "wildcard route owner/z has host *.namespace.test blocking w.namespace.test" {
		t.Errorf("displaced wildcard has the message %q", got)
	}
}

// TestWildcardsWithoutOwnership: wildcards and paths of one domain without the ownership check.
func TestWildcardsWithoutOwnership(t *testing.T) {
	rows := []struct {
		id, route string
		admitted  bool
	}{
		{"wildness star /wildflowers [W]: ok", "wildness/a star.wildcard.test /wildflowers W", true},
		{"wildness star [W]: ok", "wildness/b star.wildcard.test W", true},
		{"wildness star /mobile [W]: ok", "wildness/c star.wildcard.test /mobile W", true},
		{"wildness star [W] again (newer): rejected", "wildness/d star.wildcard.test W", false},
		{"wildness plain.wildcard.test: ok", "wildness/e plain.wildcard.test", true},
		{"wildness star /plain/rain: ok", "wildness/f star.wildcard.test /plain/rain", true},
		{"wildness plain again: rejected", "wildness/g plain.wildcard.test", false},
		{"bewilder star /status [W]: ok", "bewilder/a star.wildcard.test /status W", true},
		{"bewilder plain: rejected", "bewilder/b plain.wildcard.test", false},
		{"wildness star.wildcard.test /auth [W]: ok", "wildness/h star.wildcard.test /auth W", true},
		{"wildcat star [W]: rejected", "wildcat/a star.wildcard.test W", false},
		{"wildcat star /auth [W] (exists in wildness): rejected", "wildcat/b star.wildcard.test /auth W", false},
		{"wildcat plain /re/explain/ed: ok", "wildcat/c plain.wildcard.test /re/explain/ed", true},
		{"wildcat star /plain/rain: rejected", "wildcat/d star.wildcard.test /plain/rain", false},
	}
	s := NewClaims(Options{AllowWildcard: true, DisableOwnership: true})
	for round := range 3 {
		for i, row := range rows {
			s.Set(route(i, row.route))
			s.Settle()
			c := route(i, row.route)
			if v, _ := s.Verdict(c.Key); v.Admitted != row.admitted {
				t.Errorf("%s, round %d: %+v, want admitted %v", row.id, round, v, row.admitted)
			}
		}
	}
}

// TestHostChanges: two routes change their hosts, one after the other.
func TestHostChanges(t *testing.T) {
	for _, c := range []struct {
		id, policy       string
		r1, r2, r1b, r2b string
		message          string
	}{
		{"policy None, r1 h1.local, r2 h2.local, r1 new h3.local, r2 new h1.local: no error on r2", "", "h1.local", "h2.local", "h3.local", "h1.local", ""},
		{"policy Subdomain, r1 h1.l1, r2 h2.l2, r1 new h3.l3, r2 new h1.l1: no error on r2", "W", "h1.l1", "h2.l2", "h3.l3", "h1.l1", ""},
		{"policy None, r1 h1.local, r2 h2.local, r1 new h1.local, r2 new h1.local: error on r2: route NS/R1 has host h1.local", "", "h1.local", "h2.local", "h1.local", "h1.local", "route n/r1 has host h1.local"},
		{"policy Subdomain, r1 h1.l1, r2 h2.l2, r1 new h1.l1, r2 new h1.l1: error on r2: wildcard route NS/R1 has host *.l1, blocking h1.l1", "W", "h1.l1", "h2.l2", "h1.l1", "h1.l1", "wildcard route n/r1 has host *.l1, blocking h1.l1"},
	} {
		s := NewClaims(Options{AllowWildcard: true})
		for _, step := range []Claim{
			route(1, "n/r1 "+c.r1+" "+c.policy), route(2, "n/r2 "+c.r2+" "+c.policy),
			route(1, "n/r1 "+c.r1b+" "+c.policy), route(2, "n/r2 "+c.r2b+" "+c.policy),
		} {
			s.Set(step)
			s.Settle()
		}
		if got := s.message(t, "n/r2"); got != c.message {
			t.Errorf("%s: r2 has the message %q, want %q", c.id, got, c.message)
		}
		s.Remove(source.Key{Namespace: "n", Name: "r1"})
		s.Remove(source.Key{Namespace: "n", Name: "r2"})
		s.Settle()
		if s.claims.Len()+s.hosts.Len()+len(s.domains) != 0 {
			t.Errorf("%s: something is left after the last claim", c.id)
		}
		s.Set(route(1, "n/r1 "+c.r1+" "+c.policy))
		s.Settle()
		want(t, s, c.id, "n/r1")
	}
}

// TestOrderDoesNotMatter compares claims settled step by step, with detours, to the same
// claims settled at once.
func TestOrderDoesNotMatter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func(name int) Claim {
		text := fmt.Sprintf("ns%d/r%d h%d.d%d.test", rnd.IntN(3), name, rnd.IntN(3), rnd.IntN(2))
		if rnd.IntN(3) == 0 {
			text += " /p"
		}
		if rnd.IntN(4) == 0 {
			text += " W"
		}
		text += [...]string{"", " edge", " passthrough"}[rnd.IntN(3)]
		return route(rnd.IntN(8), text)
	}
	for _, o := range []Options{{}, {AllowWildcard: true}, {DisableOwnership: true}, {AllowWildcard: true, DisableOwnership: true}} {
		for range 300 {
			step := NewClaims(o)
			final := make(map[source.Key]Claim)
			for range 25 {
				c := random(rnd.IntN(8))
				if rnd.IntN(4) == 0 {
					step.Remove(c.Key)
					delete(final, c.Key)
				} else {
					step.Set(c)
					final[c.Key] = c
				}
				if rnd.IntN(2) == 0 {
					step.Settle()
				}
			}
			step.Settle()
			once := NewClaims(o)
			for _, c := range final {
				once.Set(c)
			}
			once.Settle()
			if diff := cmp.Diff(once.admitted(), step.admitted()); diff != "" {
				t.Fatalf("options %+v: admitted at once and step by step differ:\n%s", o, diff)
			}
			if diff := cmp.Diff(naive(o, final), once.admitted()); diff != "" {
				t.Fatalf("options %+v: admitted by the plain rules and by Claims differ:\n%s", o, diff)
			}
		}
	}
}

// naive decides claims one by one, oldest first, as the rules are written.
func naive(o Options, claims map[source.Key]Claim) []string {
	var list []Claim
	for _, c := range claims {
		c.Wildcard = c.Wildcard && o.AllowWildcard
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Claim) int { return a.compare(&b) })
	var passed, active []Claim
	var out []string
	domainOf := func(c Claim) string { d, _ := parentOf(c.Host); return d }
	for _, n := range list {
		ok := true
		for _, e := range passed {
			same := o.DisableOwnership || e.Key.Namespace == n.Key.Namespace
			if !e.Wildcard && e.Host == n.Host && !(same && (n.Wildcard || e.Path != n.Path)) ||
				e.Wildcard && domainOf(e) == domainOf(n) && !(same && (!n.Wildcard || e.Path != n.Path)) ||
				!e.Wildcard && n.Wildcard && domainOf(e) == domainOf(n) && !same {
				ok = false
			}
		}
		if !ok && o.AllowWildcard {
			continue
		}
		passed = append(passed, n)
		ok = true
		owner := ""
		for _, e := range active {
			if e.Host != n.Host {
				continue
			}
			if owner == "" {
				owner = e.Key.Namespace
			}
			ok = ok && !e.collides(&n)
		}
		if !o.DisableOwnership && owner != "" && owner != n.Key.Namespace {
			ok = false
		}
		if ok {
			active = append(active, n)
			out = append(out, n.Key.String())
		}
	}
	slices.Sort(out)
	return out
}

// collides reports whether two routes of one host cannot be distinguished: equal paths,
// or one takes all of TLS.
func (c *Claim) collides(d *Claim) bool {
	return c.Path == d.Path || c.TLS && d.TLS && (c.Passthrough || d.Passthrough)
}

func BenchmarkOneChange(b *testing.B) {
	for _, wildcards := range []bool{false, true} {
		b.Run(fmt.Sprintf("wildcards=%v", wildcards), func(b *testing.B) {
			s := NewClaims(Options{AllowWildcard: wildcards})
			for i := range 10_000 {
				s.Set(route(i, fmt.Sprintf("n/r%d h%d.apps.example.test", i, i)))
			}
			s.Set(route(20_000, "n/w w.apps.example.test W"))
			s.Settle()
			paths := [2]Claim{route(5000, "n/r5000 h5000.apps.example.test /a"), route(5000, "n/r5000 h5000.apps.example.test /b")}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Set(paths[i&1])
				if len(s.Settle()) != 1 {
					b.Fatal("not one change")
				}
			}
		})
	}
}

// TestRecall: a process that starts puts a rejection in the words that stand in the status, as long as its reason does.
func TestRecall(t *testing.T) {
	for said, want := range map[string]string{
		"replaced by older route dupe":  "replaced by older route dupe",
		"replaced by older route other": "route dupe already exposes www.ex.test and is older",
		"":                              "route dupe already exposes www.ex.test and is older",
	} {
		s := NewClaims(Options{})
		s.Set(route(10, "foo/test www.ex.test"))
		key := source.Key{Namespace: "foo", Name: "test"}
		s.Recall(key, rejected(ReasonClaimed, said))
		s.Set(route(9, "foo/dupe www.ex.test"))
		s.Settle()
		if got := s.message(t, "foo/test"); got != want {
			t.Errorf("after %q: %q, want %q", said, got, want)
		}
		s.Recall(key, rejected(ReasonClaimed, "something else"))
		if got := s.message(t, "foo/test"); got != want {
			t.Errorf("what was decided here was taken back: %q", got)
		}
		s.Remove(source.Key{Namespace: "foo", Name: "dupe"})
		s.Settle()
		if v, _ := s.Verdict(key); !v.Admitted {
			t.Errorf("after %q: rejected for ever: %+v", said, v)
		}
	}
}
