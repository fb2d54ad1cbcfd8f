package routing

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"unsafe"
)

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, s := range texts {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

func TestAllowList(t *testing.T) {
	f := func(in, out []string, list ...string) {
		t.Helper()
		l := NewAllowList(prefixes(list...))
		for _, a := range in {
			if !l.Contains(netip.MustParseAddr(a)) || !within(spans(prefixes(list...)), netip.MustParseAddr(a).As16()) {
				t.Errorf("%v does not contain %s", list, a)
			}
		}
		for _, a := range out {
			if l.Contains(netip.MustParseAddr(a)) || within(spans(prefixes(list...)), netip.MustParseAddr(a).As16()) {
				t.Errorf("%v contains %s", list, a)
			}
		}
	}
	f(nil, []string{"0.0.0.0", "::", "::1", "127.0.0.1"})
	f([]string{"10.0.0.1", "::ffff:10.0.0.1"}, []string{"10.0.0.0", "10.0.0.2", "::10.0.0.1", "::"}, "10.0.0.1/32")
	f([]string{"172.16.14.0", "172.16.14.255"}, []string{"172.16.13.255", "172.16.15.0"}, "172.16.14.10/24")
	f([]string{"0.0.0.0", "255.255.255.255"}, []string{"::", "::1", "2001:db8::1"}, "0.0.0.0/0")
	f([]string{"0.0.0.0", "255.255.255.255", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, nil, "::/0")
	f([]string{"1.2.3.4", "::ffff:1.2.3.4"}, []string{"1.2.3.5"}, "::ffff:1.2.3.4/128")
	f([]string{"2600:14a0::", "2600:14a0:ff:ffff::1"}, []string{"2600:14a0:100::", "2600:149f::"}, "2600:14a0::/40")
	f([]string{"10.0.0.0", "10.0.1.255", "10.0.3.1", "11.0.0.0"}, []string{"10.0.2.0", "9.255.255.255", "10.0.3.0"},
		"10.0.1.0/24", "10.0.0.0/24", "10.0.0.128/25", "10.0.3.1/32", "10.0.0.0/25", "11.0.0.0/8")
	f([]string{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, []string{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"},
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")
	if NewAllowList(prefixes("::/0")).Contains(netip.Addr{}) {
		t.Error("no address is contained")
	}
}

// randomPrefixes is n prefixes of both families that often touch and overlap.
func randomPrefixes(rng *rand.Rand, n int) []netip.Prefix {
	list := make([]netip.Prefix, n)
	for i := range list {
		if rng.IntN(2) == 0 {
			list[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), byte(rng.Uint32()), byte(rng.Uint32())}), 14+rng.IntN(19))
			continue
		}
		list[i] = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 7: byte(rng.IntN(4)), 8: byte(rng.Uint32()), 15: byte(rng.Uint32())}), 60+rng.IntN(69))
	}
	return list
}

func TestAllowListAgainstASearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		list := randomPrefixes(rng, rng.IntN(40))
		l := NewAllowList(list)
		for range 200 {
			a := randomPrefixes(rng, 1)[0].Addr()
			want := false
			for _, p := range list {
				want = want || p.Masked().Contains(a)
			}
			if l.Contains(a) != want {
				t.Fatalf("%v contains %s: %v, want %v", list, a, !want, want)
			}
			if sorted := (&AllowList{spans: spans(list)}); len(sorted.spans) > 0 && sorted.Contains(a) != want {
				t.Fatalf("%v, sorted, contains %s: %v, want %v", list, a, !want, want)
			}
		}
	}
}

func TestAllowListAllocatesNothing(t *testing.T) {
	l := NewAllowList(randomPrefixes(rand.New(rand.NewPCG(1, 2)), 1000))
	a := netip.MustParseAddr("10.1.2.3")
	if n := testing.AllocsPerRun(1000, func() { l.Contains(a) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAllowListSize: whatever an annotation of 256 KiB lists, it makes a few times as much memory, and lookups find the same.
func TestAllowListSize(t *testing.T) {
	for name, address := range map[string]func(i int) string{
		"far apart":            func(i int) string { return fmt.Sprintf("%x::/128", 0x1000+i) },
		"pairs":                func(i int) string { return fmt.Sprintf("%x::%x/128", 0x1000+i/2, 1+i%2) },
		"IPv4, far apart":      func(i int) string { return fmt.Sprintf("%d.%d.%d.1/32", 1+i%223, i/223%256, i%251) },
		"IPv4, adjacent":       func(i int) string { return fmt.Sprintf("10.0.%d.%d/32", i/128%256, 2*i%256) },
		"networks of all IPv6": func(i int) string { return fmt.Sprintf("%x:%x:%x::/48", 0x2001+i%7, i, i*31%0xffff) },
	} {
		var list []netip.Prefix
		for n := 0; n < 256<<10 && len(list) < 0xefff; {
			text := address(len(list))
			n += len(text) - len("/128") + 1
			list = append(list, netip.MustParsePrefix(text))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := NewAllowList(list)
		runtime.ReadMemStats(&after)
		size := len(l.nodes)*nodeSize + len(l.ends)*int(unsafe.Sizeof(byteSet{})) + len(l.spans)*int(unsafe.Sizeof(span{}))
		made := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d prefixes are %d KiB, sorted %v, and took %d KiB", name, len(list), size>>10, l.spans != nil, made>>10)
		if size > 2<<20 || made > 32<<20 {
			t.Errorf("%s: %d bytes, and %d to make them", name, size, made)
		}
		for _, p := range list[:1000] {
			if !l.Contains(p.Addr()) || l.Contains(p.Addr().Next().Next().Next()) && p.IsSingleIP() && name != "IPv4, adjacent" {
				t.Fatalf("%s: %v", name, p)
			}
		}
	}
}

// BenchmarkAllowList is one lookup in a list of n CIDRs of one family, of addresses most of which go deep into it.
func BenchmarkAllowList(b *testing.B) {
	for _, family := range []string{"IPv4", "IPv6"} {
		for _, n := range []int{1, 10, 100, 1000, 10_000} {
			b.Run(fmt.Sprint(family, "/", n), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				prefix := func() netip.Prefix {
					x := rng.Uint32()
					if family == "IPv4" {
						return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(x >> 16), byte(x >> 8), byte(x)}), 28+int(x>>24)%5)
					}
					return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(x >> 16), byte(x >> 8), byte(x), 15: 1}), 56+int(x>>24)%9)
				}
				list := make([]netip.Prefix, n)
				for i := range list {
					list[i] = prefix()
				}
				l := NewAllowList(list)
				var addrs [256]netip.Addr
				for i := range addrs {
					addrs[i] = prefix().Addr()
					if i%2 == 0 {
						addrs[i] = list[i%n].Addr()
					}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					l.Contains(addrs[i&255])
				}
				b.ReportMetric(float64(len(l.nodes)*int(unsafe.Sizeof(trieNode{}))+len(l.ends)*int(unsafe.Sizeof(byteSet{})))/float64(n), "B/CIDR")
			})
		}
	}
}
