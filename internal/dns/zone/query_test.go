package zone

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestWrongQueries(t *testing.T) {
	s := mustSet(t, shard1())
	good := packed(t, question("x.shard1.v3.rhcloud.com", dns.TypeA))
	change := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	opt := []byte{0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0}
	tsig := []byte{1, 'k', 0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0}
	with := func(section int, records ...[]byte) []byte {
		return change(func(b []byte) []byte {
			binary.BigEndian.PutUint16(b[section:], uint16(len(records)))
			return append(b, bytes.Join(records, nil)...)
		})
	}
	for _, c := range []struct {
		what    string
		message []byte
		rcode   int // -1: no answer
	}{
		{"in order", good, dns.RcodeSuccess},
		{"nothing", nil, -1},
		{"half a header", good[:11], -1},
		{"an answer", change(func(b []byte) []byte { b[2] |= 0x80; return b }), -1},
		{"NOTIFY", change(func(b []byte) []byte { b[2] |= 4 << 3; return b }), dns.RcodeNotImplemented},
		{"UPDATE", change(func(b []byte) []byte { b[2] |= 5 << 3; return b }), dns.RcodeNotImplemented},
		{"no question", change(func(b []byte) []byte { b[5] = 0; return b }), dns.RcodeFormatError},
		{"two questions", change(func(b []byte) []byte { b[5] = 2; return append(b, b[12:]...) }), dns.RcodeFormatError},
		{"question cut off", good[:len(good)-1], dns.RcodeFormatError},
		{"name cut off", good[:15], dns.RcodeFormatError},
		{"a pointer in the name", change(func(b []byte) []byte { b[12] = 0xc0; return b }), dns.RcodeFormatError},
		{"bits 01 in the name", change(func(b []byte) []byte { b[12] = 0x41; return b }), dns.RcodeFormatError},
		{"name of 255 bytes", append(append(bytes.Clone(good[:12]), bytes.Repeat([]byte("\x01a"), 127)...), 0, 0, 1, 0, 1), dns.RcodeRefused},
		{"name of 257 bytes", append(append(bytes.Clone(good[:12]), bytes.Repeat([]byte("\x01a"), 128)...), 0, 0, 1, 0, 1), dns.RcodeFormatError},
		{"name of 256 bytes", append(append(bytes.Clone(good[:12]), append(bytes.Repeat([]byte("\x01a"), 126), "\x02bb"...)...), 0, 0, 1, 0, 1), dns.RcodeFormatError},
		{"something after it", append(bytes.Clone(good), 0), dns.RcodeFormatError},
		{"a record that is not there", change(func(b []byte) []byte { b[11] = 1; return b }), dns.RcodeFormatError},
		{"EDNS", with(10, opt), dns.RcodeSuccess},
		{"EDNS twice", with(10, opt, opt), dns.RcodeFormatError},
		{"EDNS as an answer", with(6, opt), dns.RcodeFormatError},
		{"EDNS of a name", with(10, append([]byte{1, 'k'}, opt...)), dns.RcodeFormatError},
		{"EDNS cut off", with(10, opt[:9]), dns.RcodeFormatError},
		{"EDNS with options cut off", with(10, append(bytes.Clone(opt[:10]), 9)), dns.RcodeFormatError},
		{"EDNS with an option", with(10, append(append(bytes.Clone(opt[:10]), 4), 0, 3, 0, 0)), dns.RcodeSuccess},
		{"TSIG", with(10, opt, tsig), dns.RcodeSuccess},
		{"TSIG before the end", with(10, tsig, opt), dns.RcodeFormatError},
		{"TSIG as authority", with(8, tsig), dns.RcodeFormatError},
		{"name of a record is a pointer", with(8, append([]byte{0xc0, 12}, tsig[3:11]...), nil), dns.RcodeFormatError},
		{"name of a record is half a pointer", with(8, []byte{0xc0}), dns.RcodeFormatError},
		{"name of a record has bits 10", with(8, []byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), dns.RcodeFormatError},
		{"name of a record never ends", with(8, []byte{63}), dns.RcodeFormatError},
	} {
		var q Query
		if answered := q.Parse(c.message); answered != (c.rcode >= 0) {
			t.Errorf("%s: answered %v", c.what, answered)
			continue
		} else if !answered {
			continue
		}
		if m := unpacked(t, s.Answer(nil, &q, Payload, 0)); m.Rcode != c.rcode {
			t.Errorf("%s: %s", c.what, dns.RcodeToString[m.Rcode])
		}
		if c.rcode == dns.RcodeSuccess && q.Signed != (c.what == "TSIG") {
			t.Errorf("%s: signed %v", c.what, q.Signed)
		}
	}
}

// TestQueryAgain: nothing of a query is left when it is used for another.
func TestQueryAgain(t *testing.T) {
	s := mustSet(t, shard1())
	var used Query
	first := question("a.b.c.d.shard1.v3.rhcloud.com", dns.TypeAXFR)
	first.SetEdns0(4096, true)
	first.IsEdns0().SetVersion(3)
	for _, before := range [][]byte{packed(t, first), packed(t, question(strings.Repeat("a.", 127), dns.TypeA)), {15: 0}} {
		used.Parse(before)
		message := packed(t, question("x.shard1.v3.rhcloud.com", dns.TypeA))
		var fresh Query
		used.Parse(message)
		fresh.Parse(message)
		if got, want := s.Answer(nil, &used, used.Limit(Payload), 0), s.Answer(nil, &fresh, fresh.Limit(Payload), 0); !bytes.Equal(got, want) {
			t.Errorf("after %x:\n got %x\nwant %x", before, got, want)
		}
	}
}

// FuzzAnswer: whatever comes, an answer is one that others can read, fits, and is about what was asked.
func FuzzAnswer(f *testing.F) {
	s := mustSet(f, shard1(), Spec{Origin: "shard2.v3.rhcloud.com", Servers: []Server{{Name: "ns2.example.com"}}, Addresses: addresses("10.245.2.4")})
	for _, name := range []string{"x.shard1.v3.rhcloud.com", "shard1.v3.rhcloud.com", "a.child.shard1.v3.rhcloud.com", "one.shard1.v3.rhcloud.com", "X.shard2.v3.rhcloud.com", ".", "covered.shard1.v3.rhcloud.com"} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeANY, dns.TypeNS, dns.TypeAXFR, dns.TypeDS} {
			q := question(name, kind)
			f.Add(packed(f, q), uint16(512), uint32(0))
			q.SetEdns0(1232, true)
			f.Add(packed(f, q), uint16(1232), uint32(7))
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, limit uint16, turn uint32) {
		var q Query
		if !q.Parse(message) {
			return
		}
		most := max(int(limit), 512)
		b := s.Answer(nil, &q, q.Limit(most), turn)
		m := unpacked(t, b)
		if !m.Response || m.Id != binary.BigEndian.Uint16(message) || len(b) > most || m.RecursionAvailable {
			t.Fatalf("%x is answered %v in %d bytes", message, m, len(b))
		}
		if len(q.question) > 0 && !bytes.HasPrefix(b[headerSize:], q.question) {
			t.Fatalf("%x: another question: %x", message, b)
		}
		asked := new(dns.Msg)
		if m.Rcode == dns.RcodeSuccess && asked.Unpack(message) == nil && len(asked.Question) != 1 {
			t.Fatalf("%d questions are answered", len(asked.Question))
		}
	})
}
