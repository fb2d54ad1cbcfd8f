package zone

import (
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

func TestWrongZones(t *testing.T) {
	f := func(what, want string, change func(*Spec)) {
		t.Helper()
		spec := shard1()
		change(&spec)
		if _, err := New(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	long := strings.Repeat("a", 64)
	f("no origin", "is no name", func(s *Spec) { s.Origin = "" })
	f("long label", "1 to 63", func(s *Spec) { s.Origin = long + ".com" })
	f("long name", "longer than 255", func(s *Spec) { s.Origin = strings.Repeat("abcdefg.", 32) + "com" })
	f("odd letter", "labels have letters", func(s *Spec) { s.Origin = "a b.com" })
	f("escape", "labels have letters", func(s *Spec) { s.Names[0].Name = `a\.b.shard1.v3.rhcloud.com` })
	f("wildcard as origin", "origin is a wildcard", func(s *Spec) { s.Origin = "*.com" })
	f("wildcard in the middle", "labels have letters", func(s *Spec) { s.Names[0].Name = "a.*.shard1.v3.rhcloud.com" })
	f("no servers", "0 name servers", func(s *Spec) { s.Servers = nil })
	f("many servers", "14 name servers", func(s *Spec) { s.Servers = make([]Server, 14) })
	f("bad server", "name server", func(s *Spec) { s.Servers[0].Name = ".." })
	f("wildcard as server", "is a wildcard", func(s *Spec) { s.Servers[0].Name = "*.com" })
	f("server twice", "there twice", func(s *Spec) { s.Servers[1].Name = s.Servers[0].Name })
	f("server without address", "its addresses must be given", func(s *Spec) { s.Servers[0].Addresses = nil })
	f("bad primary", "primary", func(s *Spec) { s.Primary = "a..b" })
	f("bad mailbox", "mailbox", func(s *Spec) { s.Mailbox = "a@b.com" })
	f("TTL", "TTL", func(s *Spec) { s.TTL = 1 << 31 })
	f("name twice", "there twice", func(s *Spec) { s.Names[1].Name = s.Names[0].Name })
	f("name elsewhere", "not below", func(s *Spec) { s.Names[0].Name = "a.example.com" })
	f("name is the origin", "not below", func(s *Spec) { s.Names[0].Name = s.Origin })
	f("name is the wildcard", "there already", func(s *Spec) { s.Names[0].Name = "*." + s.Origin })
	f("name is a server", "there twice", func(s *Spec) { s.Names[0].Name = "ns1." + s.Origin })
	f("name without anything", "neither", func(s *Spec) { s.Names[0].Addresses = nil })
	f("name with both", "both", func(s *Spec) { s.Names[0].Target = "x.com" })
	f("bad target", "target", func(s *Spec) { s.Names[3].Target = "x..com" })
	f("cut elsewhere", "not below", func(s *Spec) { s.Cuts[0].Name = "example.com" })
	f("bad cut", "is no name", func(s *Spec) { s.Cuts[0].Name = "..." })
	f("wildcard cut", "is a wildcard", func(s *Spec) { s.Cuts[0].Name = "*.x." + s.Origin })
	f("cut without servers", "0 name servers", func(s *Spec) { s.Cuts[0].Servers = nil })
	f("name below a cut", "below the cut", func(s *Spec) { s.Names[0].Name = "x.child." + s.Origin })
	if err := ValidName("a.b"); err != nil {
		t.Error(err)
	}
	if ValidName("a..b") == nil {
		t.Error("a..b is no name")
	}
}

func TestSameAndSerial(t *testing.T) {
	z := mustZone(t, shard1())
	with := z.WithSerial(7)
	if !z.Same(with) || z.Serial() != 0 || with.Serial() != 7 || with.SOA().Serial != 7 || with.Addresses() != 3 || with.Names() != 14 {
		t.Errorf("serials %d and %d, %d addresses, %d names", z.Serial(), with.Serial(), with.Addresses(), with.Names())
	}
	other := shard1()
	other.Addresses = addresses("10.245.2.3 2001:db8::2 10.245.2.2 10.245.2.2")
	other.Origin = "SHARD1.v3.rhcloud.com."
	if !z.Same(mustZone(t, other)) {
		t.Error("order, repetition and case make a difference")
	}
	for what, change := range map[string]func(*Spec){
		"address": func(s *Spec) { s.Addresses = addresses("10.245.2.2 2001:db8::2") }, "TTL": func(s *Spec) { s.TTL++ }, "server": func(s *Spec) { s.Servers[1].Name = "ns3.example.com" },
		"name": func(s *Spec) { s.Names[0].Name = "b.shard1.v3.rhcloud.com" }, "target": func(s *Spec) { s.Names[3].Target = "b.example.com" },
		"moved": func(s *Spec) { s.Names[0].Addresses = addresses("10.245.2.9") }, "cut": func(s *Spec) { s.Cuts[0].Servers[0].Addresses = addresses("192.0.2.55") }, "mailbox": func(s *Spec) { s.Mailbox = "a.example.com" },
		"negative TTL": func(s *Spec) { s.NegativeTTL++ },
	} {
		spec := shard1()
		change(&spec)
		if z.Same(mustZone(t, spec)) {
			t.Errorf("%s makes no difference", what)
		}
	}
}

// TestRecords: a transfer has every record once, and the same zone read by others answers the same (TestModel).
func TestRecords(t *testing.T) {
	z := mustZone(t, shard1()).WithSerial(2009092001)
	var lines []string
	for rr := range z.Records() {
		lines = append(lines, strings.Join(strings.Fields(strings.ReplaceAll(rr.String(), "shard1.v3.rhcloud.com.", "@")), " "))
	}
	want := `@ 300 IN SOA ns1.@ hostmaster.@ 2009092001 604800 86400 1206900 300
@ 3600 IN NS ns1.@
@ 3600 IN NS ns2.example.com.
@ 30 IN A 10.245.2.2
@ 30 IN A 10.245.2.3
@ 30 IN AAAA 2001:db8::2
*.wild.@ 30 IN A 10.245.2.6
*.@ 30 IN A 10.245.2.2
*.@ 30 IN A 10.245.2.3
*.@ 30 IN AAAA 2001:db8::2
ns1.@ 3600 IN A 127.0.0.1
ns1.@ 3600 IN AAAA ::1
one.@ 30 IN CNAME other.@
out.@ 30 IN CNAME x.child.@
deep.under.@ 30 IN A 10.245.2.5
alias.@ 30 IN CNAME elsewhere.example.com.
child.@ 3600 IN NS ns.child.@
child.@ 3600 IN NS ns-child.@
ns.child.@ 3600 IN A 192.0.2.53
inner.@ 30 IN CNAME moved.@
moved.@ 30 IN A 10.245.2.4
other.@ 30 IN CNAME one.@
broken.@ 30 IN CNAME no.under.@
covered.@ 30 IN CNAME anything.@
ns-child.@ 3600 IN A 192.0.2.54`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	count := 0
	for range z.Records() {
		if count++; count == 3 {
			break
		}
	}
	if soa := z.SOA(); soa.Hdr.Rrtype != dns.TypeSOA || soa.Hdr.Ttl != 300 {
		t.Error(soa)
	}
}

func TestSerials(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for _, c := range []struct {
		last uint32
		now  int64
		want uint32
	}{
		{100, 200, 200}, {200, 200, 201}, {300, 200, 301}, {1<<32 - 1, 200, 200}, {1<<32 - 1, 1<<32 - 5, 0}, {1<<31 + 100, 50, 50}, {50, 1<<31 + 100, 51}, {1 << 31, 1<<32 + 7, 1<<31 + 1},
		{1<<31 + 8, 1<<32 + 7, 7},
	} {
		got := NextSerial(c.last, at(c.now))
		if got != c.want || !After(got, c.last) {
			t.Errorf("after %d at %d: %d, want %d", c.last, c.now, got, c.want)
		}
	}
	if FirstSerial(at(1<<32+5)) != 5 || After(5, 5) || After(0, 1<<31) || After(1<<31, 0) || !After(1, 1<<32-1) {
		t.Error("arithmetic")
	}
}
