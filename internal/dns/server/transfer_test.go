package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"turnout/internal/bound"
	"turnout/internal/dns/zone"
)

// secrets are those of keyFile, as the client of the library takes them, and of a key that the server does not have.
var secrets = map[string]string{"secondary.example.com.": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "other.": "b3RoZXItc2VjcmV0", "unknown.": "b3RoZXItc2VjcmV0"}

// fetch transfers a zone, and returns the records.
func (r *running) fetch(q *dns.Msg) ([]dns.RR, error) {
	r.t.Helper()
	tr := &dns.Transfer{DialTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second}
	if q.IsTsig() != nil {
		tr.TsigSecret = secrets
	}
	messages, err := tr.In(q, r.Addr())
	if err != nil {
		return nil, err
	}
	var all []dns.RR
	for m := range messages {
		if m.Error != nil {
			err = errors.Join(err, m.Error)
		}
		all = append(all, m.RR...)
	}
	return all, err
}

func axfr(key, algorithm string) *dns.Msg {
	q := new(dns.Msg).SetAxfr(origin)
	if key != "" {
		q.SetTsig(key, algorithm, 300, time.Now().Unix())
	}
	return q
}

func TestWhoMayTransfer(t *testing.T) {
	here, elsewhere := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")
	k := keys(t)
	for _, c := range []struct {
		what           string
		cfg            Config
		key, algorithm string
		may            bool
	}{
		{"nobody", Config{}, "", "", false},
		{"an address that may", Config{Transfers: []netip.Prefix{elsewhere, here}}, "", "", true},
		{"another address", Config{Transfers: []netip.Prefix{elsewhere}}, "", "", false},
		{"a key", Config{Keys: k}, "secondary.example.com.", dns.HmacSHA256, true},
		{"another key", Config{Keys: k}, "other.", dns.HmacSHA512, true},
		{"no key", Config{Keys: k}, "", "", false},
		{"unknown key", Config{Keys: k}, "unknown.", dns.HmacSHA256, false},
		{"another algorithm with the same secret", Config{Keys: k}, "other.", dns.HmacSHA256, false},
		{"key and address", Config{Keys: k, Transfers: []netip.Prefix{here}}, "other.", dns.HmacSHA512, true},
		{"key, but not the address", Config{Keys: k, Transfers: []netip.Prefix{elsewhere}}, "other.", dns.HmacSHA512, false},
		{"address, but not the key", Config{Keys: k, Transfers: []netip.Prefix{here}}, "", "", false},
	} {
		r := start(t, c.cfg)
		for _, kind := range []uint16{dns.TypeAXFR, dns.TypeIXFR} {
			q := axfr(c.key, c.algorithm)
			if q.Question[0].Qtype = kind; kind == dns.TypeIXFR {
				q.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: origin, Rrtype: dns.TypeSOA, Class: dns.ClassINET}, Ns: ".", Mbox: ".", Serial: 0}}
			}
			got, err := r.fetch(q)
			if (err == nil) != c.may || c.may != (len(got) == 11) {
				t.Errorf("%s: %s: %v, %d records: %v", c.what, dns.TypeToString[kind], err, len(got), got)
			}
		}
		if got := r.Stats(); (got.Transfers == 2) != c.may || (got.Refused == 2) == c.may {
			t.Errorf("%s: %+v", c.what, got)
		}
		if c.may {
			if e := r.wait(Transferred); e.Zone != origin || e.Serial != 1 || !e.Peer.Addr().IsLoopback() {
				t.Errorf("%s: %+v", c.what, e)
			}
		}
	}
}

// TestTransferOfManyNames: the records come in several messages, each of them signed.
func TestTransferOfManyNames(t *testing.T) {
	r := start(t, Config{Keys: keys(t)})
	spec := shard1()
	for i := range 5000 {
		spec.Names = append(spec.Names, zone.Name{Name: fmt.Sprintf("app%d.%s", i, origin), Addresses: addresses("10.0.0.9")})
	}
	r.Publish(setOf(t, 2, spec))
	got, err := r.fetch(axfr("other.", dns.HmacSHA512))
	if err != nil || len(got) != 5011 || got[0].String() != got[len(got)-1].String() {
		t.Fatalf("%d records: %v", len(got), err)
	}
	want := map[string]bool{}
	for rr := range r.Zones().Zone(origin).Records() {
		want[rr.String()] = true
	}
	for _, rr := range got {
		if !want[rr.String()] {
			t.Errorf("%v is not in the zone", rr)
		}
	}
}

// TestIXFR: who has the zone already gets its SOA record alone (RFC 1995 section 2), over UDP everybody does.
func TestIXFR(t *testing.T) {
	r := start(t, Config{Transfers: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	r.Publish(setOf(t, 100, shard1()))
	for _, c := range []struct {
		network string
		serial  uint32
		records int
	}{{"tcp", 99, 11}, {"tcp", 100, 1}, {"tcp", 101, 1}, {"tcp", 100 + 1<<31 + 5, 11}, {"udp", 99, 1}, {"udp", 100, 1}} {
		m := r.ask(c.network, new(dns.Msg).SetIxfr(origin, c.serial, ".", "."))
		if len(m.Answer) != c.records || m.Answer[0].(*dns.SOA).Serial != 100 || !m.Authoritative {
			t.Errorf("%s, serial %d: %v", c.network, c.serial, m.Answer)
		}
	}
	for name, network := range map[string]string{origin: "udp", "a." + origin: "tcp", "example.com.": "tcp"} {
		if m := r.ask(network, new(dns.Msg).SetAxfr(name)); m.Rcode != dns.RcodeRefused || len(m.Answer) != 0 {
			t.Errorf("AXFR of %s over %s: %v", name, network, m)
		}
	}
	without := new(dns.Msg).SetIxfr(origin, 1, ".", ".")
	without.Ns = nil
	if m := r.ask("tcp", without); len(m.Answer) != 11 {
		t.Errorf("IXFR without a serial: %v", m)
	}
}

// TestManyTransfers: of those beyond the bound clients are told to come again.
func TestManyTransfers(t *testing.T) {
	bounds := new(bound.Counts)
	r := start(t, Config{Bounds: bounds, Transfers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Limits: Limits{Transfers: 1}})
	r.transfers.room <- struct{}{}
	if m := r.ask("tcp", axfr("", "")); m.Rcode != dns.RcodeServerFailure || bounds.Of(bound.NameTransfers) != 1 {
		t.Errorf("%v", m)
	}
	r.wait(TransferDeferred)
	<-r.transfers.room
	if got, err := r.fetch(axfr("", "")); err != nil || len(got) != 11 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestTransferToNobody: a client that does not read ends its transfer.
func TestTransferToNobody(t *testing.T) {
	r := start(t, Config{Transfers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Limits: Limits{Write: 50 * time.Millisecond}})
	spec := shard1()
	for i := range 100_000 {
		spec.Names = append(spec.Names, zone.Name{Name: fmt.Sprintf("app%d.%s", i, origin), Addresses: addresses("10.0.0.9")})
	}
	r.Publish(setOf(t, 2, spec))
	conn := r.dial("127.0.0.1")
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(framed(t, axfr("", ""))); err != nil {
		t.Fatal(err)
	}
	if e := r.wait(TransferFailed); e.Err == nil || len(r.transfers.room) != 0 {
		t.Errorf("%+v", e)
	}
}

// TestSignedQueries: an answer to a signed query is signed, and one that is signed wrongly says what is wrong (RFC 8945 section 5.2).
func TestSignedQueries(t *testing.T) {
	r := start(t, Config{Keys: keys(t)})
	for _, network := range []string{"udp", "tcp"} {
		client := &dns.Client{Net: network, TsigSecret: secrets, Timeout: 10 * time.Second}
		f := func(what, key, algorithm string, secret string, signed int64, rcode int, code uint16) {
			t.Helper()
			q := question("a."+origin, dns.TypeA)
			q.SetTsig(key, algorithm, 300, signed)
			used := *client
			if secret != "" {
				used.TsigSecret = map[string]string{key: secret, dns.CanonicalName(key): secret}
			}
			m, _, err := used.Exchange(q, r.Addr())
			if m == nil {
				t.Fatalf("%s over %s: %v", what, network, err)
			}
			sig := m.IsTsig()
			if m.Rcode != rcode || sig == nil || sig.Error != code || (rcode == dns.RcodeSuccess) != (len(m.Answer) == 2 && err == nil) {
				t.Errorf("%s over %s: %v, %v", what, network, err, m)
			}
			if code == dns.RcodeBadTime && (err != nil && !errors.Is(err, dns.ErrAuth) || len(sig.OtherData) != 12 || sig.MAC == "") {
				t.Errorf("%s over %s: %v", what, network, err)
			}
		}
		now := time.Now().Unix()
		f("right", "other.", dns.HmacSHA512, "", now, dns.RcodeSuccess, 0)
		f("right, with capitals", "OTHER.", dns.HmacSHA512, secrets["other."], now, dns.RcodeSuccess, 0)
		f("unknown key", "unknown.", dns.HmacSHA512, "", now, dns.RcodeNotAuth, dns.RcodeBadKey)
		f("another algorithm", "other.", dns.HmacSHA256, "", now, dns.RcodeNotAuth, dns.RcodeBadKey)
		f("wrong secret", "other.", dns.HmacSHA512, "d3Jvbmc=", now, dns.RcodeNotAuth, dns.RcodeBadSig)
		f("old", "other.", dns.HmacSHA512, "", now-1000, dns.RcodeNotAuth, dns.RcodeBadTime)
		f("from the future", "other.", dns.HmacSHA512, "", now+1000, dns.RcodeNotAuth, dns.RcodeBadTime)
	}
	if got := r.Stats(); got.Signed != 4 || got.BadSigned != 10 {
		t.Errorf("%+v", got)
	}
	r.SetKeys(nil)
	q := question("a."+origin, dns.TypeA)
	q.SetTsig("other.", dns.HmacSHA512, 300, time.Now().Unix())
	client := &dns.Client{TsigSecret: secrets}
	if m, _, _ := client.Exchange(q, r.Addr()); m == nil || m.Rcode != dns.RcodeNotAuth {
		t.Errorf("after the keys have gone: %v", m)
	}
}

// TestSignedAndLong: a signature does not make an answer longer than the client takes.
func TestSignedAndLong(t *testing.T) {
	r := start(t, Config{Keys: keys(t)})
	spec := shard1()
	for i := range 23 { // 28 would fit without a signature
		spec.Addresses = append(spec.Addresses, addresses(fmt.Sprintf("10.1.0.%d", i))...)
	}
	r.Publish(setOf(t, 2, spec))
	long := strings.Repeat("very-long-name.", 13)
	for name, truncated := range map[string]bool{"a." + origin: true, "moved." + origin: false, long + origin: true} {
		q := question(name, dns.TypeA)
		q.SetTsig("other.", dns.HmacSHA512, 300, time.Now().Unix())
		client := &dns.Client{TsigSecret: secrets, UDPSize: 4096}
		m, _, err := client.Exchange(q, r.Addr())
		if err != nil || m.Truncated != truncated || m.IsTsig() == nil {
			t.Errorf("%s: %v, %v", name, err, m)
		}
	}
	ixfr := new(dns.Msg).SetIxfr(origin, 1, ".", ".")
	ixfr.SetTsig("other.", dns.HmacSHA512, 300, time.Now().Unix())
	client := &dns.Client{TsigSecret: secrets}
	if m, _, err := client.Exchange(ixfr, r.Addr()); err != nil || len(m.Answer) != 1 || m.IsTsig() == nil {
		t.Errorf("IXFR over UDP: %v, %v", m, err)
	}
}
