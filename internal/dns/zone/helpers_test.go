package zone

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func addresses(list string) []netip.Addr {
	var all []netip.Addr
	for _, a := range strings.Fields(list) {
		all = append(all, netip.MustParseAddr(a))
	}
	return all
}

// shard1 is the zone of the proposal, with names of its own and a cut.
func shard1() Spec {
	return Spec{
		Origin: "shard1.v3.rhcloud.com", Refresh: 604800, Retry: 86400, Expire: 1206900, TTL: 30, ServerTTL: 3600, NegativeTTL: 300,
		Servers:   []Server{{Name: "ns1.shard1.v3.rhcloud.com", Addresses: addresses("127.0.0.1 ::1")}, {Name: "ns2.example.com"}},
		Addresses: addresses("10.245.2.2 10.245.2.3 2001:db8::2"),
		Names: []Name{
			{Name: "moved.shard1.v3.rhcloud.com", Addresses: addresses("10.245.2.4")},
			{Name: "deep.under.shard1.v3.rhcloud.com", Addresses: addresses("10.245.2.5")},
			{Name: "*.wild.shard1.v3.rhcloud.com", Addresses: addresses("10.245.2.6")},
			{Name: "alias.shard1.v3.rhcloud.com", Target: "elsewhere.example.com"},
			{Name: "inner.shard1.v3.rhcloud.com", Target: "moved.shard1.v3.rhcloud.com"},
			{Name: "covered.shard1.v3.rhcloud.com", Target: "anything.shard1.v3.rhcloud.com"},
			{Name: "broken.shard1.v3.rhcloud.com", Target: "no.under.shard1.v3.rhcloud.com"},
			{Name: "one.shard1.v3.rhcloud.com", Target: "other.shard1.v3.rhcloud.com"},
			{Name: "other.shard1.v3.rhcloud.com", Target: "one.shard1.v3.rhcloud.com"},
			{Name: "out.shard1.v3.rhcloud.com", Target: "x.child.shard1.v3.rhcloud.com"},
		},
		Cuts: []Cut{{Name: "child.shard1.v3.rhcloud.com", Servers: []Server{
			{Name: "ns.child.shard1.v3.rhcloud.com", Addresses: addresses("192.0.2.53")}, {Name: "ns-child.shard1.v3.rhcloud.com", Addresses: addresses("192.0.2.54")},
		}}},
	}
}

func mustZone(t testing.TB, spec Spec) *Zone {
	t.Helper()
	z, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func mustSet(t testing.TB, specs ...Spec) *Set {
	t.Helper()
	var zones []*Zone
	for _, spec := range specs {
		zones = append(zones, mustZone(t, spec).WithSerial(2009092001))
	}
	s, err := NewSet(zones...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// question is a query as a resolver sends it.
func question(name string, kind uint16) *dns.Msg {
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(name), kind)
	q.Id = 4711
	return q
}

func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask has a set answer a query, as over UDP.
func ask(t testing.TB, s *Set, q *dns.Msg, turn uint32) *dns.Msg {
	t.Helper()
	var parsed Query
	if !parsed.Parse(packed(t, q)) {
		t.Fatalf("not to be answered: %v", q)
	}
	return unpacked(t, s.Answer([]byte("before"), &parsed, parsed.Limit(Payload), turn)[len("before"):])
}

func unpacked(t testing.TB, b []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		t.Fatalf("cannot read the answer %x: %v", b, err)
	}
	return m
}

// summary is what an answer says: its rcode and flags, and the data of each section, sorted.
func summary(m *dns.Msg) string {
	parts := []string{dns.RcodeToString[m.Rcode]}
	if m.Authoritative {
		parts = append(parts, "aa")
	}
	if m.Truncated {
		parts = append(parts, "tc")
	}
	for i, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		var lines []string
		for _, rr := range section {
			if rr.Header().Rrtype != dns.TypeOPT {
				lines = append(lines, brief(rr))
			}
		}
		if slices.Sort(lines); len(lines) > 0 {
			parts = append(parts, [...]string{"", "authority: ", "additional: "}[i]+strings.Join(lines, ", "))
		}
	}
	return strings.Join(parts, " ")
}

// brief is a record without class and what is the same in all of them.
func brief(rr dns.RR) string {
	name := strings.TrimSuffix(strings.TrimSuffix(rr.Header().Name, "shard1.v3.rhcloud.com."), ".")
	if name == "" {
		name = "@"
	}
	data := strings.TrimSpace(strings.TrimPrefix(rr.String(), rr.Header().String()))
	if soa, ok := rr.(*dns.SOA); ok {
		data = "for " + soa.Mbox
	}
	return name + " " + dns.TypeToString[rr.Header().Rrtype] + " " + strings.ReplaceAll(data, "shard1.v3.rhcloud.com.", "@")
}
