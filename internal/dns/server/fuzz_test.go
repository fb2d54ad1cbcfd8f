package server

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"turnout/internal/dns/zone"
)

// FuzzMessage: whatever comes over UDP or TCP, signed or not, no bug is found, and an answer is one that fits.
func FuzzMessage(f *testing.F) {
	now := time.Now()
	server, err := New(Config{Addr: "127.0.0.1:0", Keys: keys(f), Transfers: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if err != nil {
		f.Fatal(err)
	}
	defer server.Close()
	server.Publish(setOf(f, 1, shard1()))
	var panicked error
	server.cfg.Tell = func(e Event) {
		if e.Kind == Panicked {
			panicked = e.Err
		}
	}
	add := func(q *dns.Msg) {
		b, err := q.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		for name, algorithm := range map[string]string{"other.": dns.HmacSHA512, "unknown.": dns.HmacSHA256} {
			q.SetTsig(name, algorithm, 300, now.Unix())
			b, _, err := dns.TsigGenerate(q, secrets[name], "", false)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	add(question("a."+origin, dns.TypeA))
	add(new(dns.Msg).SetAxfr(origin))
	add(new(dns.Msg).SetIxfr(origin, 7, ".", "."))
	add(new(dns.Msg).SetNotify(origin))
	edns := question("x.moved."+origin, dns.TypeANY)
	edns.SetEdns0(1232, true)
	add(edns)
	w := newWorker(server, nil, false)
	client := netip.MustParseAddrPort("192.0.2.1:5353")
	f.Fuzz(func(t *testing.T, message []byte) {
		check := func(b []byte, limit int) {
			m := new(dns.Msg)
			if err := m.Unpack(b); err != nil || len(b) > limit || !m.Response || m.Id != binary.BigEndian.Uint16(message) {
				t.Fatalf("%x is answered %x: %v", message, b, err)
			}
		}
		if b := w.answer(message, client); len(b) > 0 {
			check(b, zone.Payload)
		}
		var q zone.Query
		if q.Parse(message) && q.Transfer() {
			_ = server.transfer(message, &q, client, &server.gate.counters, func(b []byte) error {
				check(b, maxMessage)
				return nil
			})
		}
		if panicked != nil {
			t.Fatal(panicked)
		}
	})
}
