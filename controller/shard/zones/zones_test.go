package zones

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/shard/api"
	"turnout/internal/dns/zone"
)

// router is a Router with a domain and ready replicas at addresses.
func router(name, domain, addresses string) *api.Router {
	r := &api.Router{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(1000, 0)}}
	if domain != "" {
		r.Spec.DNS = &api.RouterDNS{Domain: domain, TTLSeconds: 20}
	}
	for i, a := range strings.Fields(addresses) {
		r.Status.Replicas = append(r.Status.Replicas, api.ReplicaStatus{Name: fmt.Sprint(name, "-", i), Ready: true, Addresses: []string{a}})
	}
	return r
}

// of are what is to be known of Routers.
func of(routers ...*api.Router) []Router {
	var all []Router
	for _, o := range routers {
		all = append(all, RouterOf(o, nil))
	}
	return all
}

// on is a binding that serves.
func on(router, dns string, target ...string) Binding {
	return Binding{DNS: dns, Target: strings.Join(target, ""), Router: router, Serving: true}
}

var config = Config{Servers: []zone.Server{{Name: "ns1.example.com"}}, NegativeTTL: 5, ServerTTL: 3600, Refresh: 300, Retry: 60, Expire: 86400}

// text is shards for people: a line for each zone, and one for each of its names and cuts.
func text(shards []Shard) string {
	var b strings.Builder
	join := func(addresses []netip.Addr) string {
		var all []string
		for _, a := range addresses {
			all = append(all, a.String())
		}
		return strings.Join(all, " ")
	}
	for _, s := range shards {
		fmt.Fprintf(&b, "%s: %s %d: %s\n", s.Router, s.Spec.Origin, s.Spec.TTL, join(s.Spec.Addresses))
		for _, n := range s.Spec.Names {
			fmt.Fprintf(&b, "  %s: %s\n", strings.TrimSuffix(n.Name, "."+s.Spec.Origin), join(n.Addresses))
		}
		for _, c := range s.Spec.Cuts {
			fmt.Fprintf(&b, "  cut %s\n", c.Name)
		}
	}
	return b.String()
}

func TestMake(t *testing.T) {
	const one, two = "shard1.test", "shard2.test"
	both := []*api.Router{router("two", two, "10.0.2.1"), router("one", one, "10.0.1.2 10.0.1.1 2001:db8::1 not-one")}
	const plain = "one: shard1.test 20: 10.0.1.1 10.0.1.2 2001:db8::1\n"
	const other = "two: shard2.test 20: 10.0.2.1\n"
	for _, c := range []struct {
		what     string
		routers  []*api.Router
		bindings []Binding
		want     string
		left     string // of the first that is left out
	}{
		{"no bindings", both, nil, plain + other, ""},
		{"at home", both, []Binding{on("one", "ns-app.shard1.test", "ns-app.shard1.test"), on("two", "www.example.com", "ns-www.shard2.test")}, plain + other, ""},
		{"moved", both, []Binding{on("two", "ns-app.shard1.test", "ns-app.shard1.test")}, plain + "  ns-app: 10.0.2.1\n" + other, ""},
		{"its own domain points to a name that has moved", both, []Binding{on("two", "www.example.com", "ns-www.shard1.test")}, plain + "  ns-www: 10.0.2.1\n" + other, ""},
		{"on both", both, []Binding{on("one", "ns-app.shard1.test"), on("two", "ns-app.shard1.test")}, plain + "  ns-app: 10.0.1.1 10.0.1.2 10.0.2.1 2001:db8::1\n" + other, ""},
		{"on both, the other order", both, []Binding{on("two", "ns-app.shard1.test"), on("one", "ns-app.shard1.test")}, plain + "  ns-app: 10.0.1.1 10.0.1.2 10.0.2.1 2001:db8::1\n" + other, ""},
		{"on the way", both, []Binding{on("one", "ns-app.shard1.test"), {DNS: "ns-app.shard1.test", Router: "two"}}, plain + other, ""},
		{"two routes of one host", both, []Binding{on("two", "ns-app.shard1.test"), on("two", "ns-app.shard1.test")}, plain + "  ns-app: 10.0.2.1\n" + other, ""},
		{"requested in the domain of another", both, []Binding{on("two", "www.shard1.test", "ns-www.shard2.test")}, plain + "  www: 10.0.2.1\n" + other, ""},
		{"in no domain", both, []Binding{on("two", "test"), on("two", "www.example.com"), on("one", "xshard1.test"), on("one", "")}, plain + other, ""},
		{"deep, at home", both, []Binding{on("one", "a.b.c.shard1.test")}, plain +
			"  *.b.c: 10.0.1.1 10.0.1.2 2001:db8::1\n  *.c: 10.0.1.1 10.0.1.2 2001:db8::1\n  a.b.c: 10.0.1.1 10.0.1.2 2001:db8::1\n  b.c: 10.0.1.1 10.0.1.2 2001:db8::1\n  c: 10.0.1.1 10.0.1.2 2001:db8::1\n" + other, ""},
		{"deep below one that has moved", both, []Binding{on("two", "a.shard1.test"), on("one", "x.a.shard1.test")}, plain +
			"  *.a: 10.0.1.1 10.0.1.2 2001:db8::1\n  a: 10.0.2.1\n  x.a: 10.0.1.1 10.0.1.2 2001:db8::1\n" + other, ""},
		{"a router that is not there", both, []Binding{on("gone", "ns-app.shard1.test")}, plain + other, ""},
		{"the name of the zone", both, []Binding{on("one", "shard1.test")}, plain + other, ""},
		{"the name of the zone of another", both, []Binding{on("two", "shard1.test")}, plain + other, "router two serves shard1.test, which leads elsewhere: it is a name of the zone itself"},
		{"no host name", both, []Binding{on("two", "*.shard1.test")}, plain + other, "router two serves *.shard1.test, which leads elsewhere: it is no host name"},
		{"odd letters", both, []Binding{on("two", "a b.shard1.test")}, plain + other, "router two serves a b.shard1.test, which leads elsewhere: it is no host name"},
		{"no domain", []*api.Router{router("one", "", "10.0.1.1"), both[0]}, []Binding{on("one", "ns-app.shard2.test")}, other + "  ns-app: 10.0.1.1\n", ""},
		{"no addresses", []*api.Router{router("one", one, ""), both[0]}, []Binding{on("one", "a.b.shard1.test"), on("one", "ns-app.shard2.test")}, "one: shard1.test 20: \n" + other, ""},
		{"domain that is none", []*api.Router{router("one", "a..b", "10.0.1.1")}, nil, "", `router one has no zone: spec.dns.domain: "a..b" is no name: a label has 1 to 63 letters`},
		{"two of one domain", []*api.Router{router("b", one, "10.0.1.2"), router("a", one, "10.0.1.1"), older1("c", one, "10.0.1.3")}, []Binding{on("a", "x.shard1.test")}, "c: shard1.test 20: 10.0.1.3\n  x: 10.0.1.1\n",
			"router a has no zone: router c is older and has the domain shard1.test too"},
		{"within another", []*api.Router{router("one", one, "10.0.1.1"), router("in", "in.shard1.test", "10.0.3.1"), router("deep", "x.y.in.shard1.test", "10.0.4.1")},
			[]Binding{on("one", "a.in.shard1.test"), on("in", "b.in.shard1.test"), on("in", "in.shard1.test")},
			"deep: x.y.in.shard1.test 20: 10.0.4.1\nin: in.shard1.test 20: 10.0.3.1\n  *.y: 10.0.3.1\n  a: 10.0.1.1\n  y: 10.0.3.1\n  cut x.y.in.shard1.test\none: shard1.test 20: 10.0.1.1\n  cut in.shard1.test\n", ""},
	} {
		names := Make(config, of(c.routers...), slices.Values(c.bindings))
		got, left := names.Shards, names.LeftOut
		if text(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.what, text(got), c.want)
		}
		if (len(left) > 0) != (c.left != "") || len(left) > 0 && left[0].String() != c.left {
			t.Errorf("%s: left out: %v", c.what, left)
		}
		set, unusable, err := Set(got, nil, nil, time.Unix(5000, 0))
		if err != nil || len(unusable) > 0 || len(set.All()) != len(got) {
			t.Errorf("%s: %v, %v", c.what, unusable, err)
		}
	}
}

// older1 is router, made before the others.
func older1(name, domain, addresses string) *api.Router {
	r := router(name, domain, addresses)
	r.CreationTimestamp = metav1.Unix(999, 0)
	return r
}

// TestAddresses: which replicas have an address in DNS.
func TestAddresses(t *testing.T) {
	r := router("one", "shard1.test", "10.0.0.1 10.0.0.2 10.0.0.3")
	r.Status.Replicas[1].Ready = false
	r.Status.Addresses = []string{"192.0.2.1"} // what others say of it does not count
	silent := map[string]bool{}
	f := func(what, want string) {
		t.Helper()
		var all []string
		for _, a := range RouterOf(r, func(replica string) bool { return silent[replica] }).Addresses {
			all = append(all, a.String())
		}
		if got := strings.Join(all, " "); got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
	f("ready", "10.0.0.1 10.0.0.3")
	silent["one-0"] = true
	f("one is silent", "10.0.0.3")
	silent["one-2"] = true
	f("all that are ready are silent", "")
	silent["one-1"] = true
	f("all are silent", "10.0.0.1 10.0.0.3")
	r.Spec.Addresses = []string{"192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7", "fe80::1%eth0"}
	f("fixed", "192.0.2.7 2001:db8::7 fe80::1")
	r.Spec.Addresses, r.Status.Replicas = nil, nil
	f("no replicas", "")
}

func TestServers(t *testing.T) {
	one, two := router("one", "shard1.test", "10.0.1.1"), router("two", "shard2.test", "10.0.2.1")
	one.Spec.DNS.NameServers = []api.NameServer{{Name: "ns1.shard1.test", Addresses: []string{"192.0.2.53"}}, {Name: "ns.deep.shard1.test", Addresses: []string{"192.0.2.54"}}}
	one.Spec.DNS.TTLSeconds = 0
	got := Make(config, of(one, two), slices.Values([]Binding{on("two", "ns1.shard1.test")})).Shards
	s := got[0].Spec
	if len(s.Servers) != 2 || s.Servers[0].Name != "ns1.shard1.test" || s.Servers[0].Addresses[0] != netip.MustParseAddr("192.0.2.53") || s.TTL != DefaultTTL || s.ServerTTL != 3600 || s.NegativeTTL != 5 || s.Refresh != 300 {
		t.Errorf("%+v", s)
	}
	if want := "one: shard1.test 30: 10.0.1.1\n  *.deep: 10.0.1.1\n  deep: 10.0.1.1\ntwo: shard2.test 20: 10.0.2.1\n"; text(got) != want || got[1].Spec.Servers[0].Name != "ns1.example.com" {
		t.Errorf("%s", text(got))
	}
	set, left, err := Set(got, nil, nil, time.Unix(5000, 0))
	if err != nil || len(left) > 0 || len(set.All()) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	without := config
	without.Servers = nil
	got = Make(without, of(one, two), slices.Values[[]Binding](nil)).Shards
	set, left, err = Set(got, set, nil, time.Unix(5001, 0))
	if err != nil || len(left) != 1 || !strings.Contains(left[0].String(), "router two has no zone: cannot make zone shard2.test: 0 name servers") || len(set.All()) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestManyLeftOut(t *testing.T) {
	var bindings []Binding
	for i := range 2 * MaxLeftOut {
		bindings = append(bindings, on("two", fmt.Sprintf("a b%d.shard1.test", i)))
	}
	left := Make(config, of(router("one", "shard1.test", "10.0.1.1")), slices.Values(bindings)).LeftOut
	if len(left) != MaxLeftOut {
		t.Errorf("%d are left out", len(left))
	}
}

func TestBindingOf(t *testing.T) {
	o := &api.RouteBinding{Spec: api.RouteBindingSpec{DNS: "a", Target: "b", Router: "r"}, Status: api.RouteBindingStatus{Phase: api.BindingServing}}
	if got := BindingOf(o); got != (Binding{"a", "b", "r", true}) {
		t.Error(got)
	}
	o.Spec.Target = "a"
	if got := BindingOf(o); got != (Binding{"a", "", "r", true}) {
		t.Error(got)
	}
	for _, change := range []func(){func() { o.Spec.Leaving = true }, func() { o.Spec.Leaving, o.Status.Phase = false, api.BindingPending }, func() { o.Status.Phase = "" }} {
		if change(); BindingOf(o).Serving {
			t.Errorf("%+v serves", o)
		}
	}
}

// TestSerials: a zone that has not changed stays as it is; one that has gets a later serial, whatever is known of it.
func TestSerials(t *testing.T) {
	make1 := func(addresses string, before *zone.Set, last Last, now int64) *zone.Set {
		t.Helper()
		shards := Make(config, of(router("one", "shard1.test", addresses)), slices.Values[[]Binding](nil)).Shards
		set, _, err := Set(shards, before, last, time.Unix(now, 0))
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	serial := func(s *zone.Set) uint32 { return s.All()[0].Serial() }
	first := make1("10.0.0.1", nil, nil, 1000)
	same := make1("10.0.0.1", first, nil, 2000)
	next := make1("10.0.0.2", same, nil, 3000)
	again := make1("10.0.0.3", next, nil, 3000)
	if serial(first) != 1000 || same.All()[0] != first.All()[0] || serial(next) != 3000 || serial(again) != 3001 {
		t.Errorf("%d %d %d %d", serial(first), serial(same), serial(next), serial(again))
	}
	known := func(number uint32, same bool) Last {
		return func(z *zone.Zone) (uint32, bool, bool) { return number, true, same }
	}
	unknown := func(*zone.Zone) (uint32, bool, bool) { return 0, false, false }
	if a, b, c := serial(make1("10.0.0.1", nil, known(7000, true), 5000)), serial(make1("10.0.0.1", nil, known(7000, false), 5000)), serial(make1("10.0.0.1", nil, unknown, 5000)); a != 7000 || b != 7001 || c != 5000 {
		t.Errorf("%d %d %d", a, b, c)
	}
}

func TestEndpoints(t *testing.T) {
	shards := Make(config, of(router("one", "shard1.test", "10.0.1.1 2001:db8::1"), router("two", "shard2.test", "10.0.2.1")), slices.Values([]Binding{on("two", "app.shard1.test")})).Shards
	objects := Endpoints(&shards[0], "dns")
	if len(objects) != 1 || objects[0].Name != "one--0" || objects[0].Namespace != "dns" || objects[0].Labels[EndpointLabel] != "one" || objects[0].Kind != "DNSEndpoint" || objects[0].APIVersion != "externaldns.k8s.io/v1alpha1" {
		t.Fatalf("%+v", objects)
	}
	want := "[{shard1.test [10.0.1.1] A 20} {shard1.test [2001:db8::1] AAAA 20} {*.shard1.test [10.0.1.1] A 20} {*.shard1.test [2001:db8::1] AAAA 20} {app.shard1.test [10.0.2.1] A 20}]"
	if got := fmt.Sprint(objects[0].Spec.Endpoints); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	s := &Shard{Router: "one", Spec: zone.Spec{Origin: "shard1.test"}}
	if objects := Endpoints(s, "dns"); objects != nil {
		t.Errorf("without addresses: %+v", objects)
	}
	for i := range 2500 {
		s.Spec.Names = append(s.Spec.Names, zone.Name{Name: fmt.Sprintf("a%d.shard1.test", i), Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}})
	}
	objects = Endpoints(s, "dns")
	if len(objects) != 3 || len(objects[0].Spec.Endpoints) != EndpointsPerObject || len(objects[2].Spec.Endpoints) != 500 || objects[2].Name != "one--2" {
		t.Errorf("%d objects", len(objects))
	}
}

// BenchmarkMake: a million routes on a hundred Routers, of which one in a hundred is not where its name leads.
func BenchmarkMake(b *testing.B) {
	var routers []*api.Router
	for i := range 100 {
		routers = append(routers, router(fmt.Sprint("router", i), fmt.Sprintf("shard%d.apps.example.com", i), fmt.Sprintf("10.0.%d.1 10.0.%d.2", i, i)))
	}
	var bindings []Binding
	for i := range 1_000_000 {
		at := i % 100
		if i%100 == 7 {
			at = (i / 100) % 100
		}
		name := fmt.Sprintf("namespace%d-app.shard%d.apps.example.com", i, i%100)
		bindings = append(bindings, on(fmt.Sprint("router", at), name, name))
	}
	b.ReportAllocs()
	for b.Loop() {
		shards := Make(config, of(routers...), slices.Values(bindings)).Shards
		if _, _, err := Set(shards, nil, nil, time.Unix(1, 0)); err != nil || len(shards) != 100 {
			b.Fatal(err)
		}
	}
}

// TestAffects: names are made again when they would be others, and only then.
func TestAffects(t *testing.T) {
	one, two := router("one", "shard1.test", "10.0.1.1"), router("two", "shard2.test", "10.0.2.1")
	bindings := []Binding{on("two", "moved.shard1.test"), on("one", "moved.shard1.test"), on("one", "home.shard1.test"), on("one", "www.example.com", "ns-www.shard1.test")}
	names := Make(config, of(one, two), slices.Values(bindings))
	for i, want := range []bool{true, true, false, false} {
		if names.Affects(bindings[i]) != want {
			t.Errorf("%v affects: %v", bindings[i], !want)
		}
		rest := slices.Delete(slices.Clone(bindings), i, i+1)
		if changes := text(Make(config, of(one, two), slices.Values(rest)).Shards) != text(names.Shards); changes != want {
			t.Errorf("without %v there are other names: %v", bindings[i], changes)
		}
	}
	for b, want := range map[Binding]bool{
		on("two", "new.shard1.test"): true, on("one", "deep.new.shard1.test"): true, on("one", "new.shard1.test"): false, {DNS: "new.shard1.test", Router: "two"}: false,
		on("one", "www.example.com", "moved.shard1.test"): true, on("two", "shard1.test"): true, on("two", "example.com"): false,
	} {
		if names.Affects(b) != want {
			t.Errorf("%v affects: %v", b, !want)
		}
	}
}

func TestEqual(t *testing.T) {
	make1 := func(change func(o *api.Router)) Router {
		o := router("one", "shard1.test", "10.0.1.1 10.0.1.2")
		o.Spec.DNS.NameServers = []api.NameServer{{Name: "ns1.shard1.test", Addresses: []string{"192.0.2.53"}}}
		change(o)
		return RouterOf(o, nil)
	}
	plain := make1(func(*api.Router) {})
	for what, change := range map[string]func(o *api.Router){
		"name": func(o *api.Router) { o.Name = "two" }, "age": older2, "domain": func(o *api.Router) { o.Spec.DNS.Domain = "shard2.test" }, "no domain": func(o *api.Router) { o.Spec.DNS = nil },
		"TTL": func(o *api.Router) { o.Spec.DNS.TTLSeconds++ }, "server": func(o *api.Router) { o.Spec.DNS.NameServers[0].Name = "ns2.shard1.test" },
		"address of a server": func(o *api.Router) { o.Spec.DNS.NameServers[0].Addresses[0] = "192.0.2.54" }, "ready": func(o *api.Router) { o.Status.Replicas[0].Ready = false },
	} {
		if other := make1(change); plain.Equal(&other) {
			t.Errorf("%s makes no difference", what)
		}
	}
	same := make1(func(o *api.Router) {
		o.Status.Replicas[0].Renewed, o.Status.Replicas[1].Routes, o.ResourceVersion = metav1.NewMicroTime(time.Unix(1, 0)), 7, "8"
		slices.Reverse(o.Status.Replicas)
	})
	if !plain.Equal(&same) {
		t.Error("what replicas say besides makes a difference")
	}
}

func older2(o *api.Router) { o.CreationTimestamp = metav1.Unix(1, 0) }
