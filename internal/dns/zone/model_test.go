package zone

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestModel: zones made by chance answer every name that is near theirs as the RFCs have it, when only their records are known. The model is slow and
// has no shortcuts.
func TestModel(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		spec := anySpec(r)
		z, err := New(spec)
		if err != nil {
			continue // names made by chance may collide
		}
		s, err := NewSet(z)
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(z)
		for range 200 {
			name, kind := anyName(r, 5), kinds[r.IntN(len(kinds))]
			got, want := summary(ask(t, s, question(name, kind), 0)), m.answer(name+".", kind)
			if got != want {
				t.Fatalf("seed %d: %s %s:\n got %s\nwant %s\n%s", seed, name, dns.TypeToString[kind], got, want, m)
			}
		}
	}
}

var kinds = []uint16{dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeCNAME, dns.TypeNS, dns.TypeSOA, dns.TypeMX}

const modelOrigin = "o.test"

// anyName is a name of few letters in the zone, or seldom not.
func anyName(r *rand.Rand, most int) string {
	var labels []string
	for range r.IntN(most) {
		labels = append(labels, []string{"a", "b", "c", "*"}[r.IntN(4)])
	}
	for i := 1; i < len(labels); i++ {
		if labels[i] == "*" {
			labels[i] = "a"
		}
	}
	return strings.Join(append(labels, modelOrigin), ".")
}

func anySpec(r *rand.Rand) Spec {
	spec := Spec{Origin: modelOrigin, TTL: 5, NegativeTTL: 5, Servers: []Server{{Name: "ns.o.test", Addresses: addresses("192.0.2.1")}}}
	if r.IntN(4) > 0 {
		spec.Addresses = addresses("10.0.0.1 2001:db8::1")
	}
	for i := range r.IntN(6) {
		n := Name{Name: anyName(r, 4), Addresses: addresses(fmt.Sprintf("10.0.1.%d", i))}
		switch r.IntN(4) {
		case 0:
			n.Target, n.Addresses = anyName(r, 4), nil
		case 1:
			n.Target, n.Addresses = "far.example", nil
		}
		spec.Names = append(spec.Names, n)
	}
	if r.IntN(3) == 0 {
		name := anyName(r, 3)
		spec.Cuts = []Cut{{Name: name, Servers: []Server{{Name: "ns." + name, Addresses: addresses("192.0.2.2")}}}}
	}
	return spec
}

// model is a zone as a list of records.
type model struct {
	records []dns.RR
	exists  map[string]bool
}

func newModel(z *Zone) *model {
	m := &model{exists: map[string]bool{}}
	for rr := range z.Records() {
		m.records = append(m.records, rr)
		if name := rr.Header().Name; !m.below(name) {
			for ; name != "test."; name = above(name) {
				m.exists[name] = true
			}
		}
	}
	return m
}

func above(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

func (m *model) String() string {
	var b strings.Builder
	for _, rr := range m.records {
		fmt.Fprintln(&b, brief(rr))
	}
	return b.String()
}

func (m *model) of(name string, kind uint16) []dns.RR {
	var all []dns.RR
	for _, rr := range m.records {
		if rr.Header().Name == name && rr.Header().Rrtype == kind {
			all = append(all, rr)
		}
	}
	return all
}

// below reports whether a name stands below a cut.
func (m *model) below(name string) bool {
	for name != "o.test." && dns.CountLabel(name) > 2 {
		if name = above(name); name != "o.test." && len(m.of(name, dns.TypeNS)) > 0 {
			return true
		}
	}
	return false
}

// cut returns the cut at or above a name.
func (m *model) cut(name string) string {
	found := ""
	for ; name != "o.test."; name = above(name) {
		if len(m.of(name, dns.TypeNS)) > 0 {
			found = name
		}
	}
	return found
}

func (m *model) answer(name string, kind uint16) string {
	out := &dns.Msg{MsgHdr: dns.MsgHdr{Authoritative: true}}
	negative := func(rcode int) string {
		out.Rcode, out.Ns = rcode, m.of("o.test.", dns.TypeSOA)
		return summary(out)
	}
	for hop := 0; ; hop++ {
		if cut := m.cut(name); cut != "" {
			if hop > 0 {
				return summary(out)
			}
			out.Authoritative, out.Ns = false, m.of(cut, dns.TypeNS)
			for _, ns := range out.Ns {
				out.Extra = append(out.Extra, m.of(ns.(*dns.NS).Ns, dns.TypeA)...)
			}
			return summary(out)
		}
		source := name
		if !m.exists[name] { // RFC 4592 section 3.3.1
			encloser := above(name)
			for !m.exists[encloser] {
				encloser = above(encloser)
			}
			if source = "*." + encloser; !m.exists[source] {
				return negative(dns.RcodeNameError)
			}
		}
		if alias := m.of(source, dns.TypeCNAME); len(alias) > 0 && kind != dns.TypeCNAME {
			if hop == mostAliases {
				return summary(out)
			}
			out.Answer = append(out.Answer, renamed(alias[0], name))
			if name = alias[0].(*dns.CNAME).Target; !strings.HasSuffix(name, ".o.test.") && name != "o.test." {
				return summary(out)
			}
			continue
		}
		found := m.of(source, kind)
		if len(found) == 0 {
			return negative(dns.RcodeSuccess)
		}
		for _, rr := range found {
			out.Answer = append(out.Answer, renamed(rr, name))
			if ns, ok := rr.(*dns.NS); ok {
				out.Extra = append(out.Extra, m.of(ns.Ns, dns.TypeA)...)
			}
		}
		return summary(out)
	}
}

func renamed(rr dns.RR, name string) dns.RR {
	rr = dns.Copy(rr)
	rr.Header().Name = name
	return rr
}
