package zone

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestAnswers(t *testing.T) {
	s := mustSet(t, shard1())
	const soa = "authority: @ SOA for hostmaster.@"
	f := func(what, name string, kind uint16, want string) {
		t.Helper()
		name = strings.ReplaceAll(name, "@", "shard1.v3.rhcloud.com.")
		if got := strings.ReplaceAll(summary(ask(t, s, question(name, kind), 0)), "hostmaster.shard1.v3.rhcloud.com.", "hostmaster.@"); got != want {
			t.Errorf("%s: %s %s:\n got %s\nwant %s", what, name, dns.TypeToString[kind], got, want)
		}
	}
	f("apex", "@", dns.TypeA, "NOERROR aa @ A 10.245.2.2, @ A 10.245.2.3")
	f("apex over IPv6", "@", dns.TypeAAAA, "NOERROR aa @ AAAA 2001:db8::2")
	f("start of authority", "@", dns.TypeSOA, "NOERROR aa @ SOA for hostmaster.@")
	f("servers", "@", dns.TypeNS, "NOERROR aa @ NS ns1.@, @ NS ns2.example.com. additional: ns1 A 127.0.0.1, ns1 AAAA ::1")
	f("a server", "ns1.@", dns.TypeA, "NOERROR aa ns1 A 127.0.0.1")
	f("no such type at the apex", "@", dns.TypeMX, "NOERROR aa "+soa)
	f("wildcard", "myapp-test.@", dns.TypeA, "NOERROR aa myapp-test A 10.245.2.2, myapp-test A 10.245.2.3")
	f("wildcard over IPv6", "myapp-test.@", dns.TypeAAAA, "NOERROR aa myapp-test AAAA 2001:db8::2")
	f("wildcard of several labels", "a.b.c.@", dns.TypeAAAA, "NOERROR aa a.b.c AAAA 2001:db8::2")
	f("wildcard, no such type", "myapp-test.@", dns.TypeTXT, "NOERROR aa "+soa)
	f("the wildcard itself", "*.@", dns.TypeAAAA, "NOERROR aa * AAAA 2001:db8::2")
	f("below the wildcard itself", "x.*.@", dns.TypeA, "NXDOMAIN aa "+soa)
	f("name of its own", "moved.@", dns.TypeA, "NOERROR aa moved A 10.245.2.4")
	f("name of its own, other family", "moved.@", dns.TypeAAAA, "NOERROR aa "+soa)
	f("below a name of its own", "x.moved.@", dns.TypeA, "NXDOMAIN aa "+soa)
	f("deep name", "deep.under.@", dns.TypeA, "NOERROR aa deep.under A 10.245.2.5")
	f("name without records", "under.@", dns.TypeA, "NOERROR aa "+soa)
	f("beside the deep name", "x.under.@", dns.TypeA, "NXDOMAIN aa "+soa)
	f("other wildcard", "x.wild.@", dns.TypeA, "NOERROR aa x.wild A 10.245.2.6")
	f("above the other wildcard", "wild.@", dns.TypeA, "NOERROR aa "+soa)
	f("alias", "alias.@", dns.TypeA, "NOERROR aa alias CNAME elsewhere.example.com.")
	f("alias asked for", "alias.@", dns.TypeCNAME, "NOERROR aa alias CNAME elsewhere.example.com.")
	f("alias, any type", "alias.@", dns.TypeANY, "NOERROR aa alias CNAME elsewhere.example.com.")
	f("alias within", "inner.@", dns.TypeA, "NOERROR aa inner CNAME moved.@, moved A 10.245.2.4")
	f("alias within, no such type", "inner.@", dns.TypeAAAA, "NOERROR aa inner CNAME moved.@ "+soa)
	f("alias within that the wildcard covers", "covered.@", dns.TypeAAAA, "NOERROR aa anything AAAA 2001:db8::2, covered CNAME anything.@")
	f("alias that leads nowhere", "broken.@", dns.TypeA, "NXDOMAIN aa broken CNAME no.under.@ "+soa)
	f("alias that leads out", "out.@", dns.TypeA, "NOERROR aa out CNAME x.child.@")
	f("any type", "@", dns.TypeANY, `NOERROR aa @ HINFO "RFC8482" ""`)
	f("any type of a wildcard", "x.@", dns.TypeANY, `NOERROR aa x HINFO "RFC8482" ""`)
	f("any type where there is nothing", "under.@", dns.TypeANY, "NOERROR aa "+soa)
	f("any type where there is no name", "x.under.@", dns.TypeANY, "NXDOMAIN aa "+soa)
	const leads = "NOERROR authority: child NS ns-child.@, child NS ns.child.@ additional: ns-child A 192.0.2.54, ns.child A 192.0.2.53"
	f("cut", "child.@", dns.TypeA, leads)
	f("below a cut", "x.y.child.@", dns.TypeAAAA, leads)
	f("server below a cut", "ns.child.@", dns.TypeA, leads)
	f("signature of a cut", "child.@", dns.TypeDS, "NOERROR aa "+soa)
	f("server of a cut", "ns-child.@", dns.TypeA, "NOERROR aa ns-child A 192.0.2.54")
	f("capitals", "MyApp.SHARD1.v3.RHcloud.COM.", dns.TypeAAAA, "NOERROR aa MyApp.SHARD1.v3.RHcloud.COM AAAA 2001:db8::2")
	f("parent", "v3.rhcloud.com.", dns.TypeA, "REFUSED")
	f("end of another name", "xshard1.v3.rhcloud.com.", dns.TypeA, "REFUSED")
	f("root", ".", dns.TypeNS, "REFUSED")
	f("transfer, which is not for here", "@", dns.TypeAXFR, "REFUSED")
	f("mailboxes", "@", dns.TypeMAILB, "NOTIMP")
	loop := ask(t, s, question("one.shard1.v3.rhcloud.com", dns.TypeA), 0)
	if len(loop.Answer) != mostAliases || loop.Rcode != dns.RcodeSuccess {
		t.Errorf("aliases in a circle: %v", loop)
	}
}

// TestZoneWithoutAddresses: names are not there, as they would not be in a transfer.
func TestZoneWithoutAddresses(t *testing.T) {
	spec := shard1()
	spec.Addresses = nil
	s := mustSet(t, spec)
	for name, want := range map[string]string{"x.": "NXDOMAIN", "": "NOERROR", "moved.": "NOERROR"} {
		m := ask(t, s, question(name+spec.Origin, dns.TypeA), 0)
		if got := dns.RcodeToString[m.Rcode]; got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

// TestNegativeTTL: that of the SOA record, in both of its places (RFC 2308 section 3).
func TestNegativeTTL(t *testing.T) {
	m := ask(t, mustSet(t, shard1()), question("x.under.shard1.v3.rhcloud.com", dns.TypeA), 0)
	soa, ok := m.Ns[0].(*dns.SOA)
	if !ok || soa.Hdr.Ttl != 300 || soa.Minttl != 300 || soa.Serial != 2009092001 || soa.Hdr.Name != "shard1.v3.rhcloud.com." || soa.Refresh != 604800 || soa.Retry != 86400 || soa.Expire != 1206900 {
		t.Errorf("%v", m.Ns)
	}
}

// TestZonesWithinZones: the innermost has a name, but for DS at its apex.
func TestZonesWithinZones(t *testing.T) {
	inner := Spec{Origin: "child.shard1.v3.rhcloud.com", TTL: 5, Servers: []Server{{Name: "ns2.example.com"}}, Addresses: addresses("192.0.2.1")}
	s := mustSet(t, shard1(), inner)
	if got := summary(ask(t, s, question("a.child.shard1.v3.rhcloud.com", dns.TypeA), 0)); got != "NOERROR aa a.child A 192.0.2.1" {
		t.Error(got)
	}
	if got := summary(ask(t, s, question("child.shard1.v3.rhcloud.com", dns.TypeDS), 0)); !strings.Contains(got, "authority: @ SOA") {
		t.Error(got)
	}
	var q Query
	q.Parse(packed(t, question("a.child.shard1.v3.rhcloud.com", dns.TypeAXFR)))
	if z := s.Find(&q, false); z == nil || z.Origin() != "child.shard1.v3.rhcloud.com." || s.Find(&q, true) != nil || !q.Transfer() {
		t.Errorf("found %v", z)
	}
	if s.Zone("Shard1.v3.rhcloud.com") == nil || s.Zone("x.shard1.v3.rhcloud.com") != nil || len(s.All()) != 2 {
		t.Error("zones by their origins")
	}
	if _, err := NewSet(s.All()[0], s.All()[0]); err == nil {
		t.Error("two zones of one origin")
	}
}

func TestRotation(t *testing.T) {
	spec := shard1()
	spec.Addresses = addresses("10.0.0.1 10.0.0.2 10.0.0.3")
	s, first := mustSet(t, spec), map[string]int{}
	for turn := range uint32(9) {
		m := ask(t, s, question("x.shard1.v3.rhcloud.com", dns.TypeA), turn+1<<31)
		if len(m.Answer) != 3 {
			t.Fatalf("turn %d: %v", turn, m.Answer)
		}
		first[m.Answer[0].(*dns.A).A.String()]++
	}
	if fmt.Sprint(first) != "map[10.0.0.1:3 10.0.0.2:3 10.0.0.3:3]" {
		t.Errorf("first were %v", first)
	}
}

func TestHeaderAndEDNS(t *testing.T) {
	s := mustSet(t, shard1())
	q := question("x.shard1.v3.rhcloud.com", dns.TypeA)
	q.CheckingDisabled, q.AuthenticatedData = true, true
	m := ask(t, s, q, 0)
	if m.Id != q.Id || !m.Response || !m.RecursionDesired || m.RecursionAvailable || m.AuthenticatedData || m.CheckingDisabled || m.IsEdns0() != nil || len(m.Question) != 1 || m.Question[0] != q.Question[0] {
		t.Errorf("plain: %v", m)
	}
	q.RecursionDesired = false
	q.SetEdns0(4096, true)
	m = ask(t, s, q, 0)
	opt := m.IsEdns0()
	if m.RecursionDesired || opt == nil || opt.UDPSize() != Payload || !opt.Do() || opt.Version() != 0 || opt.Hdr.Name != "." || len(opt.Option) != 0 {
		t.Errorf("EDNS: %v", m)
	}
	q.IsEdns0().SetVersion(1)
	if m = ask(t, s, q, 0); m.Rcode != dns.RcodeBadVers || len(m.Answer) != 0 || m.IsEdns0() == nil || m.IsEdns0().Version() != 0 {
		t.Errorf("EDNS of another version: %v", m)
	}
	chaos := question("version.bind", dns.TypeTXT)
	chaos.Question[0].Qclass = dns.ClassCHAOS
	if m = ask(t, s, chaos, 0); m.Rcode != dns.RcodeRefused {
		t.Errorf("other class: %v", m)
	}
}

// TestTruncation: an answer that is too long for what the client takes is empty, and says so.
func TestTruncation(t *testing.T) {
	spec := shard1()
	spec.Addresses = nil
	for i := range 70 {
		spec.Addresses = append(spec.Addresses, addresses(fmt.Sprintf("10.0.0.%d", i))...)
	}
	s := mustSet(t, spec)
	for _, c := range []struct {
		size      uint16 // 0: no EDNS
		limit     int
		truncated bool
	}{{0, Payload, true}, {100, Payload, true}, {512, Payload, true}, {1200, Payload, false}, {4096, Payload, false}, {4096, 512, true}, {4096, 1000, true}} {
		q := question("x.shard1.v3.rhcloud.com", dns.TypeA)
		if c.size > 0 {
			q.SetEdns0(c.size, false)
		}
		var parsed Query
		parsed.Parse(packed(t, q))
		limit := parsed.Limit(c.limit)
		b := s.Answer(nil, &parsed, limit, 3)
		m := unpacked(t, b)
		if len(b) > limit || m.Truncated != c.truncated || (len(m.Answer) == 0) != c.truncated || (m.IsEdns0() == nil) != (c.size == 0) {
			t.Errorf("size %d, limit %d: %d bytes, truncated %v, %d records", c.size, c.limit, len(b), m.Truncated, len(m.Answer))
		}
	}
	var parsed Query
	parsed.Parse(packed(t, question("x.shard1.v3.rhcloud.com", dns.TypeA)))
	if m := unpacked(t, s.Answer(nil, &parsed, 65535, 0)); len(m.Answer) != 70 || m.Truncated {
		t.Errorf("over TCP: %d records", len(m.Answer))
	}
	if m := unpacked(t, Truncated(nil, &parsed)); !m.Truncated || m.Rcode != 0 || len(m.Question) != 1 {
		t.Errorf("truncated: %v", m)
	}
	if m := unpacked(t, Refused(nil, &parsed)); m.Truncated || m.Rcode != dns.RcodeRefused {
		t.Errorf("refused: %v", m)
	}
}

// TestMostAddresses: a message over TCP has room for as many as a zone keeps, of both families.
func TestMostAddresses(t *testing.T) {
	spec := shard1()
	spec.Addresses = nil
	for i := range 2 * MaxAddresses {
		spec.Addresses = append(spec.Addresses, addresses(fmt.Sprintf("10.0.%d.%d 2001:db8::%x", i>>8, i&255, i))...)
	}
	s := mustSet(t, spec)
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		var parsed Query
		parsed.Parse(packed(t, question("x.shard1.v3.rhcloud.com", kind)))
		if m := unpacked(t, s.Answer(nil, &parsed, 65535, 0)); len(m.Answer) != MaxAddresses {
			t.Errorf("%d records", len(m.Answer))
		}
	}
}

// TestReferralNeedsAddresses: without those of servers below the cut nobody could ask them (RFC 9471).
func TestReferralNeedsAddresses(t *testing.T) {
	spec := shard1()
	spec.Cuts[0].Servers = nil
	for i := range MaxServers {
		spec.Cuts[0].Servers = append(spec.Cuts[0].Servers, Server{Name: fmt.Sprintf("ns%d.child.shard1.v3.rhcloud.com", i), Addresses: addresses("192.0.2.1 2001:db8::1")})
	}
	q := question("x.child.shard1.v3.rhcloud.com", dns.TypeA)
	if m := ask(t, mustSet(t, spec), q, 0); !m.Truncated || len(m.Ns)+len(m.Extra) != 0 || m.Authoritative {
		t.Errorf("%v", m)
	}
	spec.Servers, spec.Cuts = spec.Cuts[0].Servers, nil
	for i := range spec.Servers {
		spec.Servers[i].Name = fmt.Sprintf("a-name-that-is-quite-long-%d.shard1.v3.rhcloud.com", i)
	}
	q = question("shard1.v3.rhcloud.com", dns.TypeNS)
	q.SetEdns0(1232, false)
	if m := ask(t, mustSet(t, spec), q, 0); m.Truncated || len(m.Answer) != MaxServers || len(m.Extra) != 1 {
		t.Errorf("at the apex they may be left out: %v", m)
	}
}
