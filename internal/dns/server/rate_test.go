package server

import (
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"turnout/internal/bound"
)

func TestRate(t *testing.T) {
	l := newLimiter(10, 3)
	now := time.Unix(1000, 0)
	count := func(a string, n int) (got [3]int) {
		for range n {
			got[l.decide(netip.MustParseAddr(a), now)]++
		}
		return got
	}
	if got := count("192.0.2.1", 40); got != [3]int{10, 10, 20} {
		t.Errorf("at once: %v", got)
	}
	if got := count("192.0.2.200", 3); got[send] != 0 {
		t.Errorf("of the same /24: %v", got)
	}
	if got := count("::ffff:192.0.2.7", 3); got[send] != 0 {
		t.Errorf("the same /24, mapped: %v", got)
	}
	if got := count("192.0.3.1", 10); got[send] != 10 {
		t.Errorf("of another: %v", got)
	}
	now = now.Add(500 * time.Millisecond)
	if got := count("192.0.2.1", 20); got[send] != 5 {
		t.Errorf("after half a second: %v", got)
	}
	now = now.Add(time.Hour)
	if got := count("192.0.2.1", 20); got[send] != 10 {
		t.Errorf("after an hour: %v", got)
	}
	if got := count("2001:db8:0:100::1", 11); got[send] != 10 {
		t.Errorf("IPv6: %v", got)
	}
	if got := count("2001:db8:0:1ff::1", 1); got[send] != 0 {
		t.Errorf("of the same /56: %v", got)
	}
	if got := count("2001:db8:0:200::1", 1); got[send] != 1 {
		t.Errorf("of another /56: %v", got)
	}
	l = newLimiter(1, 0)
	if got := count("192.0.2.1", 10); got != [3]int{1, 0, 9} {
		t.Errorf("without slip: %v", got)
	}
	l = newLimiter(0, 2)
	if got := count("192.0.2.1", 10); got[send] != 10 {
		t.Errorf("no bound: %v", got)
	}
}

// TestRateOfMany: a flood of forged addresses does not make room for a client that goes on.
func TestRateOfMany(t *testing.T) {
	l := newLimiter(1, 0)
	now, sent := time.Unix(1000, 0), 0
	client := netip.MustParseAddr("192.0.2.1")
	for i := range 4 * MaxPrefixes {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 10<<24+uint32(i)<<6)
		l.decide(netip.AddrFrom4(b), now)
		if i%16 == 0 {
			if now = now.Add(time.Microsecond); l.decide(client, now) == send {
				sent++
			}
		}
	}
	if sent != 1 {
		t.Errorf("%d answers were sent within %v", sent, now.Sub(time.Unix(1000, 0)))
	}
}

// TestRateOfAnswers: a client beyond its rate gets one in so many answers, truncated, and asks over TCP.
func TestRateOfAnswers(t *testing.T) {
	now := time.Unix(1000, 0)
	bounds := new(bound.Counts)
	r := start(t, Config{Workers: 1, Rate: 4, Slip: 2, Bounds: bounds, Now: func() time.Time { return now }})
	conn, err := net.Dial("udp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	message, _ := question("a."+origin, dns.TypeA).Pack()
	for range 10 {
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	truncated := 0
	b := make([]byte, 512)
	for range 4 + 3 { // of six beyond the rate, three are dropped
		n, err := conn.Read(b)
		m := new(dns.Msg)
		if err != nil || m.Unpack(b[:n]) != nil {
			t.Fatal(err)
		}
		if m.Truncated {
			truncated++
			if len(m.Answer) != 0 {
				t.Errorf("%v", m)
			}
		}
	}
	got := r.Stats()
	if truncated != 3 || got.Slipped != 3 || got.Dropped != 3 || got.UDP != 10 || bounds.Of(bound.NameAnswers) != 6 {
		t.Errorf("%d truncated, %+v", truncated, got)
	}
	for range 20 {
		if m := r.ask("tcp", question("a."+origin, dns.TypeA)); len(m.Answer) != 2 {
			t.Fatal(m)
		}
	}
}

func BenchmarkRate(b *testing.B) {
	l, now := newLimiter(1e6, 2), time.Now()
	client := netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		l.decide(client, now)
	}
}
