package server

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

func TestAnswersOverBoth(t *testing.T) {
	r := start(t, Config{})
	for _, network := range []string{"udp", "tcp"} {
		seen := map[string]bool{}
		for range 20 {
			m := r.ask(network, question("a."+origin, dns.TypeA))
			if !m.Authoritative || m.RecursionAvailable || len(m.Answer) != 2 {
				t.Fatalf("%s: %v", network, m)
			}
			seen[m.Answer[0].(*dns.A).A.String()] = true
		}
		if len(seen) != 2 {
			t.Errorf("%s: first were %v", network, seen)
		}
		if m := r.ask(network, question("example.com", dns.TypeA)); m.Rcode != dns.RcodeRefused {
			t.Errorf("%s: a name of others: %v", network, m)
		}
		if m := r.ask(network, question("x.moved."+origin, dns.TypeA)); m.Rcode != dns.RcodeNameError || len(m.Ns) != 1 {
			t.Errorf("%s: no name: %v", network, m)
		}
	}
	got := r.Stats()
	if got.UDP != 22 || got.TCP != 22 || got.Answers[dns.RcodeSuccess] != 40 || got.Answers[dns.RcodeRefused] != 2 || got.Answers[dns.RcodeNameError] != 2 || got.Malformed+got.Truncated+got.Dropped+got.Panics != 0 {
		t.Errorf("%+v", got)
	}
}

// TestTruncated: what does not fit over UDP is had over TCP.
func TestTruncated(t *testing.T) {
	r := start(t, Config{})
	spec := shard1()
	for i := range 200 {
		spec.Addresses = append(spec.Addresses, addresses(fmt.Sprintf("10.1.0.%d", i))...)
	}
	r.Publish(setOf(t, 2, spec))
	q := question("a."+origin, dns.TypeA)
	q.SetEdns0(4096, false)
	if m := r.ask("udp", q); !m.Truncated || len(m.Answer) != 0 || m.IsEdns0().UDPSize() != zone.Payload {
		t.Errorf("%v", m)
	}
	if m := r.ask("tcp", q); m.Truncated || len(m.Answer) != 202 {
		t.Errorf("%v", m)
	}
	if got := r.Stats(); got.Truncated != 1 {
		t.Errorf("%+v", got)
	}
}

// TestAnswersFromTheAddressAsked: a client drops what comes from another one.
func TestAnswersFromTheAddressAsked(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "::", ""} {
		r := start(t, Config{Addr: net.JoinHostPort(host, "0")})
		port := netip.MustParseAddrPort(r.Addr()).Port()
		for _, to := range []string{"127.0.0.1", "127.0.0.2", "127.1.2.3", "::1"} {
			client := &dns.Client{}
			m, _, err := client.Exchange(question("a."+origin, dns.TypeA), net.JoinHostPort(to, fmt.Sprint(port)))
			if err != nil || len(m.Answer) != 2 {
				t.Errorf("listening at %q, asked at %s: %v %v", host, to, m, err)
			}
		}
	}
}

// TestNotAnswered: what is no query is counted, and the next query answered.
func TestNotAnswered(t *testing.T) {
	r := start(t, Config{Workers: 1})
	conn, err := net.Dial("udp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer := question("a."+origin, dns.TypeA)
	answer.Response = true
	packed, _ := answer.Pack()
	for _, message := range [][]byte{{1}, {}, packed} {
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	if m := r.ask("udp", question("a."+origin, dns.TypeA)); len(m.Answer) != 2 {
		t.Error(m)
	}
	long := append(make([]byte, 2), make([]byte, 5000)...)
	if _, err := conn.Write(long); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 512)
	n, err := conn.Read(b)
	if m := new(dns.Msg); err != nil || m.Unpack(b[:n]) != nil || m.Rcode != dns.RcodeFormatError {
		t.Errorf("a long message: %v", err)
	}
	if got := r.Stats(); got.Malformed != 3 || got.UDP != 2 {
		t.Errorf("%+v", got)
	}
}

// TestPublishWhileAsked: each answer is of one set, and none is missing.
func TestPublishWhileAsked(t *testing.T) {
	r := start(t, Config{Workers: 4})
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 200 {
				m, err := r.try("udp", question("a."+origin, dns.TypeA))
				if err != nil {
					t.Error(err)
					return
				}
				first := m.Answer[0].(*dns.A).A.String()
				if want := len(m.Answer); want != 2 && want != 3 || want == 3 != strings.HasPrefix(first, "192.") {
					t.Errorf("%v", m.Answer)
				}
			}
		})
	}
	other := shard1()
	other.Addresses = addresses("192.0.2.1 192.0.2.2 192.0.2.3")
	for i := range uint32(100) {
		r.Publish(setOf(t, 2+2*i, other))
		r.Publish(setOf(t, 3+2*i, shard1()))
	}
	running.Wait()
}

// TestAllocNothing: a query over UDP costs no allocation, with a bound on the rate too.
func TestAllocNothing(t *testing.T) {
	r := start(t, Config{Workers: 1, Rate: 1e6, Slip: 2})
	w := newWorker(r.Server, nil, false)
	message, err := question("myapp-test."+origin, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	client := netip.MustParseAddrPort("192.0.2.1:53")
	if n := testing.AllocsPerRun(1000, func() {
		if len(w.answer(message, client)) < 60 {
			t.Fatal("no answer")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBugsEndOneQuery: a panic gives up the query that it came over.
func TestBugsEndOneQuery(t *testing.T) {
	r := start(t, Config{Workers: 1})
	set := r.set.Load()
	r.set.Store(nil) // a bug
	conn, err := net.Dial("udp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	message, _ := question("a."+origin, dns.TypeA).Pack()
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
	if e := r.wait(Panicked); !strings.Contains(e.Err.Error(), "nil pointer") {
		t.Error(e.Err)
	}
	r.set.Store(set)
	if m := r.ask("udp", question("a."+origin, dns.TypeA)); len(m.Answer) != 2 || r.Stats().Panics != 1 {
		t.Errorf("%v, %+v", m, r.Stats())
	}
}

func TestWrongConfig(t *testing.T) {
	for what, cfg := range map[string]Config{
		"no address": {}, "rate": {Addr: ":0", Rate: -1}, "slip": {Addr: ":0", Slip: -1}, "no such address": {Addr: "192.0.2.1:0"},
		"unknown key": {Addr: ":0", Notify: []Secondary{{Addr: netip.MustParseAddrPort("127.0.0.1:53"), Key: "k"}}},
	} {
		if s, err := New(cfg); err == nil {
			s.Close()
			t.Errorf("%s: no error", what)
		}
	}
	taken := start(t, Config{})
	if _, err := New(Config{Addr: taken.Addr()}); err == nil {
		t.Error("an address that is taken")
	}
}
