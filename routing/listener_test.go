package routing

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"turnout/tlsmux/clientcert"
)

// heard returns a rule of a listener: "host path", a host that begins with "*." takes any number of labels, with "+." exactly one.
func heard(listener, name, host, path string, change ...func(*RuleSpec)) RuleSpec {
	s := RuleSpec{
		RouteKey: RouteKey{Namespace: "gw", Name: name, UID: "u"}, Listener: listener, Host: strings.Replace(host, "+", "*", 1),
		Wildcard: strings.HasPrefix(host, "*") || strings.HasPrefix(host, "+"), Labels: strings.HasPrefix(host, "*"), Match: Match{Path: begins(path)},
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func overTLS(s *RuleSpec) { s.Termination = TermEdge }

func asking(a *ClientAuthSpec) func(*RuleSpec) {
	return func(s *RuleSpec) { s.ClientAuth = a }
}

// listening compiles rules and their listeners.
func listening(t testing.TB, listeners []ListenerSpec, rules ...RuleSpec) *Table {
	t.Helper()
	table, rejections := CompileRules(Options{}, nil, rules)
	table, more := table.ApplyListeners(listeners, nil)
	if len(rejections)+len(more) > 0 {
		t.Fatalf("rejected: %v %v", rejections, more)
	}
	return table
}

// heardBy asks a table for a request that came in by a port, to which the server name of a ClientHello led, "" = without TLS.
func heardBy(t *Table, port, sni, host, path string) string {
	v := &View{Host: []byte(host), Path: []byte(path), Arrival: &Arrival{Port: port}}
	if sni != "" {
		if v.Secure, v.Arrival = true, t.SNIAt(port, strings.TrimPrefix(sni, "-")).Arrival; v.Arrival == nil {
			return "refused"
		}
	}
	switch d := t.Match(v); d.Kind {
	case Serve:
		return d.Route.Name()
	case Misdirected:
		return "421"
	case Redirect:
		return "302 " + d.Route.Name()
	}
	return "404"
}

// TestMostSpecificListener: of the listeners of a port the one with the most specific host name has a request, whether it has a
// rule for it or not; requests by other ports and OpenShift Routes are nothing to it.
func TestMostSpecificListener(t *testing.T) {
	listeners := []ListenerSpec{
		{Name: "any", Port: "web"}, {Name: "stars", Port: "web", Hostname: "*.example.com"}, {Name: "deep", Port: "web", Hostname: "*.foo.example.com"},
		{Name: "one", Port: "web", Hostname: "abc.foo.example.com"}, {Name: "other", Port: "admin", Hostname: "*.example.com"},
	}
	table := listening(t, listeners,
		heard("any", "to-any", "*", "/any"), heard("stars", "to-stars", "*.example.com", "/stars"), heard("deep", "to-deep", "*.foo.example.com", "/deep"),
		heard("one", "to-one", "abc.foo.example.com", "/one"), heard("other", "to-other", "*.example.com", "/"), heard("nowhere", "to-nowhere", "*", "/"))
	table, rejections := table.Apply([]RouteSpec{route("pair", "abc.foo.example.com", "")}, nil)
	if len(rejections) > 0 {
		t.Fatal(rejections)
	}
	for _, c := range []struct{ port, host, path, want string }{
		{"web", "bar.com", "/any", "to-any"}, {"web", "bar.com", "/stars", "404"}, {"web", "", "/any", "to-any"},
		{"web", "bar.example.com:8080", "/stars", "to-stars"}, {"web", "A.B.Example.COM.", "/stars", "to-stars"}, {"web", "bar.example.com", "/any", "404"},
		{"web", "example.com", "/any", "to-any"}, {"web", "example.com", "/stars", "404"},
		{"web", "bar.foo.example.com", "/deep", "to-deep"}, {"web", "x.y.foo.example.com", "/deep", "to-deep"}, {"web", "bar.foo.example.com", "/stars", "404"}, {"web", "foo.example.com", "/stars", "to-stars"},
		{"web", "abc.foo.example.com", "/one", "to-one"}, {"web", "abc.foo.example.com", "/deep", "404"}, {"web", "abc.foo.example.com", "/any", "404"},
		{"admin", "abc.foo.example.com", "/one", "to-other"}, {"admin", "bar.com", "/", "404"}, {"nothing", "bar.com", "/any", "404"},
		{"web", "bar.com:", "/any", "404"}, {"web", strings.Repeat("a", 256), "/any", "404"}, {"web", strings.Repeat("a.", 127) + "a", "/any", "to-any"},
	} {
		if got := heardBy(table, c.port, "", c.host, c.path); got != c.want {
			t.Errorf("port %s, %s%s: %s, want %s", c.port, c.host, c.path, got, c.want)
		}
	}
	for _, c := range []struct{ host, want string }{{"abc.foo.example.com", "pair"}, {"bar.com", "503"}, {"x.foo.example.com", "503"}, {"", "503"}} {
		if got := answer(table, false, c.host, "/any"); got != c.want {
			t.Errorf("%s on the pair: %s, want %s", c.host, got, c.want)
		}
	}
	less, _ := table.ApplyListeners(nil, []string{"one", "unknown"})
	if got := heardBy(less, "web", "", "abc.foo.example.com", "/deep"); got != "to-deep" {
		t.Errorf("without its listener: %s", got)
	}
	if got := heardBy(table, "web", "", "abc.foo.example.com", "/one"); got != "to-one" {
		t.Errorf("the table before has changed: %s", got)
	}
}

// TestListenersOfTLS: the server name leads to a listener, and its certificate; a request for another listener of the port is
// misdirected, one that no listener is for finds nothing.
func TestListenersOfTLS(t *testing.T) {
	named := func(names ...string) *CertificateSpec { return newCertificateFor(t, names...) }
	a, b, wild, own := named("a.test"), named("b.test"), named("*.wild.test"), named("own.wild.test")
	table := listening(t, []ListenerSpec{
		{Name: "a", Port: "tls", Hostname: "a.test", TLS: true, Certificates: []*CertificateSpec{a}},
		{Name: "wild", Port: "tls", Hostname: "*.wild.test", TLS: true, Certificates: []*CertificateSpec{b, wild}},
		{Name: "any", Port: "any", TLS: true, Certificates: []*CertificateSpec{a, b}},
		{Name: "plain", Port: "plain", Hostname: "a.test"},
	},
		heard("a", "to-a", "a.test", "/", overTLS), heard("wild", "to-wild", "*.wild.test", "/", overTLS), heard("any", "to-any", "*", "/", overTLS),
		heard("wild", "to-own", "own.wild.test", "/", overTLS, func(s *RuleSpec) { s.Certificate = own }),
		heard("wild", "through", "pass.wild.test", "", func(s *RuleSpec) { s.Termination, s.Match = TermPassthrough, Match{} }))
	for _, c := range []struct{ port, sni, host, want string }{
		{"tls", "a.test", "a.test", "to-a"}, {"tls", "a.test", "x.wild.test", "421"}, {"tls", "x.wild.test", "y.z.wild.test", "to-wild"},
		{"tls", "x.wild.test", "a.test", "421"}, {"tls", "x.wild.test", "c.test", "404"}, {"tls", "c.test", "a.test", "refused"}, {"tls", "-", "a.test", "refused"},
		{"any", "-", "c.test", "to-any"}, {"any", "a.test", "b.test", "to-any"}, {"plain", "a.test", "a.test", "refused"}, {"tls", "", "a.test", "404"},
	} {
		if got := heardBy(table, c.port, c.sni, c.host, "/"); got != c.want {
			t.Errorf("port %s, server name %q, host %s: %s, want %s", c.port, c.sni, c.host, got, c.want)
		}
	}
	for _, c := range []struct{ port, sni, want string }{
		{"tls", "a.test", "a.test"}, {"tls", "A.test", "a.test"}, {"tls", "x.wild.test", "*.wild.test"}, {"tls", "x.y.wild.test", "b.test"}, {"tls", "own.wild.test", "own.wild.test"},
		{"any", "b.test", "b.test"}, {"any", "c.test", "a.test"}, {"any", "", "a.test"},
	} {
		if d := table.SNIAt(c.port, c.sni); d.Certificate == nil || !d.Own || d.Certificate.Leaf.DNSNames[0] != c.want {
			t.Errorf("port %s, server name %q: not the certificate of %s", c.port, c.sni, c.want)
		}
	}
	if d := table.SNIAt("tls", "pass.wild.test"); d.Passthrough == nil || d.Passthrough.Name() != "through" {
		t.Errorf("passed through: %+v", d)
	}
	if d := table.SNIAt("tls", "c.test"); d.Certificate != nil || d.Arrival != nil {
		t.Errorf("without a listener: %+v", d)
	}
	if d := table.SNI("a.test"); d.Own || d.Arrival != nil {
		t.Errorf("a listener's certificate on the pair: %+v", d)
	}
}

// TestClientAuthOfAHost: what the record of the server name asks for, and which requests a connection on which that was asked may carry.
func TestClientAuthOfAHost(t *testing.T) {
	ca := newCertificate(t, "authority").Certificate
	strict, lenient := &ClientAuthSpec{Mode: clientcert.Required, CA: ca}, &ClientAuthSpec{Mode: clientcert.Optional, CA: ca, Subjects: "CN=x"}
	specs := []RuleSpec{
		heard("", "strict", "strict.test", "/", overTLS, asking(strict)), heard("", "also", "also.test", "/", overTLS, asking(&ClientAuthSpec{Mode: clientcert.Required, CA: ca})),
		heard("", "open", "open.test", "/", overTLS), heard("", "below", "+.strict.test", "/", overTLS, asking(strict)), heard("", "under", "x.strict.test", "/p", overTLS),
		heard("", "mixed", "strict.test", "/lenient", overTLS, asking(lenient)), heard("", "plain", "strict.test", "/plain"),
	}
	table, rejections := CompileRules(Options{}, nil, specs)
	if len(rejections) > 0 {
		t.Fatal(rejections)
	}
	for _, c := range []struct{ sni, host, path, want string }{
		{"strict.test", "strict.test", "/", "strict"}, {"strict.test", "also.test", "/", "also"}, {"strict.test", "open.test", "/", "421"},
		{"open.test", "open.test", "/", "open"}, {"open.test", "strict.test", "/", "421"}, {"", "strict.test", "/", "421"}, {"", "open.test", "/", "open"},
		{"x.strict.test", "x.strict.test", "/p", "under"}, {"open.test", "x.strict.test", "/p", "421"}, {"open.test", "x.strict.test", "/q", "421"},
		{"x.strict.test", "x.strict.test", "/q", "below"}, {"strict.test", "strict.test", "/lenient", "421"}, {"open.test", "none.test", "/", "404"},
	} {
		v := &View{Secure: true, Host: []byte(c.host), Path: []byte(c.path), Arrival: table.SNI(c.sni).Arrival}
		got := map[DecisionKind]string{NoRoute: "404", Misdirected: "421"}[table.Match(v).Kind]
		if d := table.Match(v); d.Route != nil {
			got = d.Route.Name()
		}
		if got != c.want {
			t.Errorf("server name %s, %s%s: %s, want %s", c.sni, c.host, c.path, got, c.want)
		}
	}
	if got := answer(table, false, "strict.test", "/plain"); got != "plain" {
		t.Errorf("without TLS: %s", got)
	}
	// A connection outlives tables: what it was asked counts by its content.
	before := table.SNI("strict.test").Arrival
	table, _ = CompileRules(Options{}, nil, specs)
	if d := table.Match(&View{Secure: true, Host: []byte("strict.test"), Path: []byte("/"), Arrival: before}); d.Kind != Serve {
		t.Errorf("after another table: %v", d.Kind)
	}
	table, _ = table.ApplyRules([]RuleSpec{heard("", "strict", "strict.test", "/", overTLS, asking(lenient))}, nil)
	if d := table.Match(&View{Secure: true, Host: []byte("strict.test"), Path: []byte("/"), Arrival: before}); d.Kind != Misdirected {
		t.Errorf("after the host asks for something else: %v", d.Kind)
	}
	var all []RouteKey
	for r := range table.Routes {
		all = append(all, r.Key())
	}
	if table, _ = table.Apply(nil, all); table.guarded || table.auths.count != 0 {
		t.Error("a table without rules asks clients for something")
	}
	for what, bad := range map[string]*ClientAuthSpec{"authorities": {Mode: clientcert.Optional, CA: "x"}, "filter": {Subjects: "("}} {
		table, rejections := CompileRules(Options{}, nil, []RuleSpec{heard("", "r", "h.test", "/", overTLS, asking(bad))})
		if len(rejections) != 1 || rejections[0].Reason != ReasonClientAuth || table.Len() != 0 {
			t.Errorf("%s: %v", what, rejections)
		}
	}
}

// TestBadListeners: one that cannot be there leaves the others alone, and takes itself out of the table.
func TestBadListeners(t *testing.T) {
	good := ListenerSpec{Name: "good", Port: "p", Hostname: "a.test"}
	for what, bad := range map[string]ListenerSpec{
		"no name": {Port: "p"}, "no port": {Name: "x"}, "certificate without TLS": {Name: "x", Port: "p", Certificates: []*CertificateSpec{{}}},
		"client certificates without TLS": {Name: "x", Port: "p", ClientAuth: &ClientAuthSpec{}}, "the host name of another": {Name: "x", Port: "p", Hostname: "a.test"},
		"bad certificate": {Name: "x", Port: "p", TLS: true, Certificates: []*CertificateSpec{{Certificate: "x"}}}, "bad authorities": {Name: "x", Port: "p", TLS: true, ClientAuth: &ClientAuthSpec{Mode: clientcert.Required}},
	} {
		table := listening(t, []ListenerSpec{good, {Name: "x", Port: "p", Hostname: "x.test"}}, heard("good", "r", "a.test", "/"), heard("x", "s", "x.test", "/"))
		table, rejections := table.ApplyListeners([]ListenerSpec{bad}, nil)
		if len(rejections) != 1 || rejections[0].Key.Name != bad.Name || rejections[0].Reason != ReasonListener {
			t.Errorf("%s: %v", what, rejections)
		}
		if bad.Name == "x" && heardBy(table, "p", "", "x.test", "/") != "404" || heardBy(table, "p", "", "a.test", "/") != "r" {
			t.Errorf("%s: the listener before is there, or the other is not", what)
		}
	}
}

// TestEachFieldOfAListenerCounts: a listener that is replaced is what its new spec says.
func TestEachFieldOfAListenerCounts(t *testing.T) {
	base := ListenerSpec{Name: "l", Port: "p", Hostname: "a.test", TLS: true, Certificates: []*CertificateSpec{newCertificateFor(t, "a.test")}}
	change := map[string]func(*ListenerSpec){
		"Name": func(s *ListenerSpec) { s.Name = "l2" }, "Port": func(s *ListenerSpec) { s.Port = "q" }, "Hostname": func(s *ListenerSpec) { s.Hostname = "b.test" },
		"TLS": func(s *ListenerSpec) { s.TLS, s.Certificates = false, nil }, "Certificates": func(s *ListenerSpec) { s.Certificates = []*CertificateSpec{newCertificateFor(t, "other.test")} },
		"Stream":     func(s *ListenerSpec) { s.Stream = true },
		"ClientAuth": func(s *ListenerSpec) { s.ClientAuth = &ClientAuthSpec{Mode: clientcert.Unverified} },
	}
	seen := func(table *Table) (s string) {
		for _, port := range []string{"p", "q"} {
			for _, name := range []string{"a.test", "b.test"} {
				d := table.SNIAt(port, name)
				s += fmt.Sprint(port, name, d.Own, heardBy(table, port, "", name, "/"))
				if d.Certificate != nil {
					s += fmt.Sprint(d.Certificate.Leaf.DNSNames, d.Arrival.Listener, d.Arrival.Auth != nil)
				}
			}
		}
		return s
	}
	for i := range reflect.TypeFor[ListenerSpec]().NumField() {
		name := reflect.TypeFor[ListenerSpec]().Field(i).Name
		next := base
		if change[name] == nil {
			t.Fatalf("%s: say how another is made", name)
		}
		change[name](&next)
		table := listening(t, []ListenerSpec{base}, heard("l", "r", "*", "/"))
		was := seen(table)
		after, rejections := table.ApplyListeners([]ListenerSpec{next}, []string{base.Name})
		if len(rejections) > 0 || seen(after) == was {
			t.Errorf("%s: the change is not served: %v", name, rejections)
		}
		if after, _ = after.ApplyListeners(nil, []string{next.Name}); after.certs.count+after.auths.count+len(after.ports) > 0 {
			t.Errorf("%s: something is left of a listener that is gone", name)
		}
	}
}

// listenersModel says who gets a request, by looking at everything.
func listenersModel(listeners []ListenerSpec, rules []RuleSpec, port string, secure bool, host, path string) string {
	covers := func(hostname string, labels bool) int { // how specific a name is for host, 0 = not at all
		suffix, wild := strings.CutPrefix(hostname, "*")
		label, ok := strings.CutSuffix(host, suffix)
		switch {
		case !wild && hostname == host:
			return 1 << 20
		case wild && labels && ok: // a label may be empty
			return 2 + len(suffix)
		case wild && !labels && ok && !strings.Contains(label, "."):
			return 1<<10 + len(suffix)
		}
		return 0
	}
	best, which := 0, ""
	for _, l := range listeners {
		rank := covers(l.Hostname, true)
		if l.Hostname == "" {
			rank = 1
		}
		if l.Port == port && rank > best {
			if best, which = rank, l.Name; l.TLS != secure {
				which = ""
			}
		}
	}
	best, name := 0, "404"
	for _, r := range rules {
		in := r.Termination == TermNone
		if secure {
			in = r.Termination == TermEdge
		}
		prefix := strings.TrimRight(r.Match.Path.Value, "/")
		if rank := covers(r.Host, r.Labels)<<8 + len(prefix) + 1; which != "" && r.Listener == which && in && rank > 1<<8 && rank > best && (path == prefix || strings.HasPrefix(path, prefix+"/")) {
			best, name = rank, r.Name
		}
	}
	return name
}

// randomListeners makes listeners of two ports, and rules for them.
func randomListeners(r *rand.Rand) (listeners []ListenerSpec, rules []RuleSpec) {
	hostnames := []string{"", "*.a.test", "*.b.a.test", "x.a.test", "c.b.a.test", "*.test"}
	hosts := []string{"*", "*.a.test", "+.a.test", "*.b.a.test", "x.a.test", "c.b.a.test", "*.test", "+.test"}
	paths := []string{"/", "/p", "/p/q"}
	for i, hostname := range hostnames {
		for _, port := range []string{"1", "2"} {
			if r.IntN(3) > 0 {
				listeners = append(listeners, ListenerSpec{Name: fmt.Sprintf("l%d-%s", i, port), Port: port, Hostname: hostname, TLS: r.IntN(4) == 0})
			}
		}
	}
	seen := map[string]bool{}
	for range r.IntN(120) {
		name := fmt.Sprintf("l%d-%d", r.IntN(len(hostnames)), 1+r.IntN(2))
		host, path, secure := hosts[r.IntN(len(hosts))], paths[r.IntN(len(paths))], r.IntN(3) == 0
		if key := fmt.Sprint(name, host, path, secure); !seen[key] {
			seen[key] = true
			rules = append(rules, heard(name, fmt.Sprint("r", len(rules)), host, path))
			if secure {
				rules[len(rules)-1].Termination = TermEdge
			}
		}
	}
	return listeners, rules
}

// asked is what a table makes of a request by a connection that is for the listener of its host.
func asked(table *Table, port string, secure bool, host, path string) string {
	v := &View{Secure: secure, Host: []byte(host), Path: []byte(path), Arrival: &Arrival{Port: port}}
	name := []byte(strings.ToLower(host))
	if l := table.listener(port, secure, name); l != nil {
		v.Arrival = l.arrival
	}
	if d := table.Match(v); d.Route != nil {
		return d.Route.Name()
	}
	return "404"
}

// TestListenersAgainstAModel compares listeners × hosts × rules, made at once and step by step, with a model.
func TestListenersAgainstAModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		listeners, rules := randomListeners(r)
		atOnce := listening(t, listeners, rules...)
		step, _ := CompileRules(Options{}, nil, nil)
		for len(rules) > 0 { // in another order, with things that go again
			i := r.IntN(len(rules))
			step, _ = step.ApplyRules(rules[i:i+1], nil)
			if r.IntN(3) > 0 {
				step, _ = step.Apply(nil, []RouteKey{rules[r.IntN(len(rules))].RouteKey})
			}
			if len(listeners) > 0 {
				l := listeners[r.IntN(len(listeners))]
				step, _ = step.ApplyListeners([]ListenerSpec{l}, []string{listeners[r.IntN(len(listeners))].Name})
			}
			if r.IntN(len(rules)) == 0 {
				break
			}
		}
		step, _ = step.ApplyRules(rules, nil)
		step, _ = step.ApplyListeners(listeners, nil)
		for _, port := range []string{"1", "2"} {
			for _, host := range []string{"", "test", "x.test", "a.test", "x.a.test", "y.a.test", "b.a.test", "c.b.a.test", "d.b.a.test", "e.d.b.a.test", "other", "x.other"} {
				for _, path := range []string{"/", "/p", "/p/q/r", "/pq"} {
					for _, secure := range []bool{false, true} {
						want := listenersModel(listeners, rules, port, secure, host, path)
						for how, table := range map[string]*Table{"at once": atOnce, "step by step": step} {
							got := asked(table, port, secure, host, path)
							if got != want {
								t.Fatalf("seed %d, %s: port %s, %s%s, TLS %t: %s, the model says %s\n%+v\n%+v", seed, how, port, host, path, secure, got, want, listeners, rules)
							}
						}
					}
				}
			}
		}
	}
}

// FuzzListeners compares hosts and paths that nobody thought of with the model.
func FuzzListeners(f *testing.F) {
	for seed, host := range []string{"", "x.a.test", "A.Test", "..a.test", ".test", "c.b.a.test", "\x80.a.test", "[::1]", "1.2.3.4"} {
		f.Add(uint64(seed), host, "/p/q", seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, host, path string, secure bool) {
		name, ok := bare([]byte(host))
		if host != "" && (!ok || string(name) != host) || strings.ContainsAny(host, ":*+") || !strings.HasPrefix(path, "/") {
			return // what is taken off a host, and colons in its first label, are tested elsewhere
		}
		folded := []byte(host)
		lower(folded, folded)
		host = string(folded)
		listeners, rules := randomListeners(rand.New(rand.NewPCG(seed, 7)))
		table := listening(t, listeners, rules...)
		for _, port := range []string{"1", "2"} {
			if got, want := asked(table, port, secure, host, path), listenersModel(listeners, rules, port, secure, host, path); got != want {
				t.Errorf("port %s, %q%q, TLS %t: %s, the model says %s\n%+v\n%+v", port, host, path, secure, got, want, listeners, rules)
			}
		}
	})
}

// TestListenersAllocateNothing: not even for a name of as many labels as there can be.
func TestListenersAllocateNothing(t *testing.T) {
	table := listening(t, []ListenerSpec{{Name: "l", Port: "p", Hostname: "*.test"}}, heard("l", "r", "*.test", "/"), heard("l", "s", "*.b.test", "/p"))
	v := &View{Host: []byte(strings.Repeat("A.", 100) + "b.test:80"), Path: []byte("/"), Arrival: &Arrival{Port: "p"}}
	if n := testing.AllocsPerRun(100, func() {
		if table.Match(v).Kind != Serve {
			t.Error("not served")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestListenersTradePlaces: whatever the order of the specs, one may have the host name that another had.
func TestListenersTradePlaces(t *testing.T) {
	a, b := ListenerSpec{Name: "a", Port: "p", Hostname: "a.test"}, ListenerSpec{Name: "b", Port: "p", Hostname: "b.test"}
	for range 2 {
		table := listening(t, []ListenerSpec{a, b}, heard("a", "to-a", "*", "/"), heard("b", "to-b", "*", "/"))
		a.Hostname, b.Hostname = b.Hostname, a.Hostname
		table, rejections := table.ApplyListeners([]ListenerSpec{a, b}, nil)
		if len(rejections) > 0 || heardBy(table, "p", "", a.Hostname, "/") != "to-"+a.Name || heardBy(table, "p", "", b.Hostname, "/") != "to-"+b.Name {
			t.Errorf("%v; %s: %s, %s: %s", rejections, a.Hostname, heardBy(table, "p", "", a.Hostname, "/"), b.Hostname, heardBy(table, "p", "", b.Hostname, "/"))
		}
		a, b = b, a
	}
}
