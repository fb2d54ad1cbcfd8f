package h2frame

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// size is the memory that is held.
func (m *memory) size() int {
	n := cap(m.own)
	for _, p := range m.more {
		n += cap(p)
	}
	return n
}

// shelf lends memory and counts what is out.
type shelf struct {
	free [][]byte
	lent int
}

func (s *shelf) Lend(n int) []byte {
	s.lent++
	if k := len(s.free); k > 0 && cap(s.free[k-1]) >= n {
		p := s.free[k-1]
		s.free = s.free[:k-1]
		return p
	}
	return make([]byte, 0, max(n, 16<<10))
}

func (s *shelf) TakeBack(p []byte) {
	s.lent--
	clear(p[:cap(p)]) // who still refers to it is found out
	s.free = append(s.free, p)
}

// oracle is x/net's decoder with the limits of a Block.
type oracle struct {
	dec  *hpack.Decoder
	list []pair
}

func newOracle(limits Limits) *oracle {
	o := &oracle{}
	o.dec = hpack.NewDecoder(TableSize, func(f hpack.HeaderField) { o.list = append(o.list, pair{f.Name, f.Value}) })
	o.dec.SetMaxStringLength(limits.Bytes)
	return o
}

// decode returns the fields of a list.
func (o *oracle) decode(p []byte) ([]pair, error) {
	o.list = nil
	_, err := o.dec.Write(p)
	if err == nil {
		err = o.dec.Close()
	}
	return o.list, err
}

// says is what a list is, for comparison: what a Block that got the fields one by one says.
func says(list []pair, limits Limits) string {
	var b Block
	b.Reset(Request, limits)
	for _, p := range list {
		b.AddField([]byte(p.name), []byte(p.value))
	}
	return describe(&b)
}

func describe(b *Block) string {
	f := b.Finish(false)
	s := fmt.Sprint(f, " ")
	if f != FaultNone {
		return s
	}
	s += fmt.Sprintf("%s %s %s %s", b.Method, b.Scheme, b.Path, b.Protocol)
	for _, f := range b.Fields {
		s += fmt.Sprintf("%q=%q;", f.Name, f.Value)
	}
	return s
}

// FuzzDecoder: lists of one connection, separated by a byte that ends a piece, are what x/net makes of them; what a decoder refuses
// ends the comparison. Memory that was lent comes back, and what is held is bounded.
func FuzzDecoder(f *testing.F) {
	enc := func(lists ...[]pair) []byte {
		var out, b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for _, list := range lists {
			b.Reset()
			for _, p := range list {
				_ = e.WriteField(hpack.HeaderField{Name: p.name, Value: p.value})
			}
			out.WriteByte(byte(b.Len() >> 8))
			out.WriteByte(byte(b.Len()))
			out.Write(b.Bytes())
		}
		return out.Bytes()
	}
	get := pairs(":method:GET\n:scheme:https\n:authority:A.test:80\n:path:/p?q=%20")
	long := strings.Repeat("v", 3000)
	f.Add(enc(get, get, append(get, pair{"x-a", "b"}, pair{"cookie", "a=1"}, pair{"cookie", "b=2"}), get))
	f.Add(enc(append(get, pair{"x-a", long}), append(get, pair{"x-b", long}), append(get, pair{"x-a", long}, pair{"x-c", long[:1500]})))
	f.Add([]byte("\x00\x03\x3f\xe1\x1f\x00\x02\x20\x3f\x00\x04\x20\x3f\xe1\x1f"))
	f.Add([]byte("\x00\x05\x00\x81\x81\x81\x00"))
	f.Add([]byte("\x00\x07\x40\x01a\x83\xff\xff\xff\x00\x01\xbe"))
	f.Add([]byte("\x00\x04\x40\x01a\x01\x00\x09\xbe\x7e\x01b\xbf\x00\x81\x07\x00"))
	f.Add(append(enc(append(get, pair{"x-a", long})), "\x00\x06\xbe\xbe\xbe\xbe\xbe\xbe\x00\x04\x7e\x01cx"...))
	f.Fuzz(func(t *testing.T, text []byte) {
		limits := Limits{Bytes: 8 << 10, Fields: 20}
		var d Decoder
		var b Block
		var from shelf
		b.Lend(&from)
		o := newOracle(limits)
		for len(text) >= 2 {
			n := min(int(text[0])<<8|int(text[1]), len(text)-2)
			p := text[2 : 2+n]
			text = text[2+n:]
			b.Reset(Request, limits)
			err := d.Decode(p, &b)
			list, wrong := o.decode(p)
			if err != nil || wrong != nil {
				// x/net decodes strings that are not used, and refuses a second update of the table's size.
				if (err == nil) == (wrong == nil) || b.Fault != FaultNone || wrong != nil && strings.Contains(wrong.Error(), "size update") {
					return
				}
				if len(p) > 4*limits.Bytes { // much that goes through the table
					return
				}
				t.Fatalf("%x: %v; x/net says %v", p, err, wrong)
			}
			got := describe(&b)
			if want := says(list, limits); got != want {
				t.Fatalf("%x is\n%s\nx/net says\n%s", p, got, want)
			}
			if d.table.size > TableSize || cap(d.table.b) > 4*TableSize || len(d.table.entries) > 2*TableSize/entryCost+1 {
				t.Fatalf("a table of %d bytes, %d entries in %d bytes", d.table.size, len(d.table.entries), cap(d.table.b))
			}
			if n := b.memory.size(); n > 8*limits.Bytes {
				t.Fatalf("%d bytes are held for a list", n)
			}
		}
		if b.Release(); from.lent != 0 || b.memory.size() > ownBytes {
			t.Fatalf("%d pieces of memory are not given back, %d bytes are held", from.lent, b.memory.size())
		}
	})
}

// TestHuffman: each symbol, alone and in company, and what is no code.
func TestHuffman(t *testing.T) {
	all := make([]byte, 0, 256)
	for i := range 256 {
		all = append(all, byte(i))
		s := strings.Repeat(string([]byte{byte(i)}), 1+i%9)
		code := hpack.AppendHuffmanString(nil, s)
		if got, ok := appendHuffman(make([]byte, 0, huffmanSize(len(code))), code); !ok || string(got) != s {
			t.Errorf("%x is %q, %v; want %q", code, got, ok, s)
		}
	}
	code := hpack.AppendHuffmanString(nil, string(all))
	if got, ok := appendHuffman(nil, code); !ok || !bytes.Equal(got, all) {
		t.Errorf("all symbols are %q, %v", got, ok)
	}
	for _, bad := range []string{"\xff", "\xff\xff\xff\xff", "\xff\xff\xff\xfc", "\x00\x00\x07", "\x1f\xff", "\x18"} {
		if got, ok := appendHuffman(nil, []byte(bad)); ok {
			t.Errorf("%x is %q", bad, got)
		}
	}
}

// TestStaticTable is x/net's.
func TestStaticTable(t *testing.T) {
	o := newOracle(Limits{Bytes: 1 << 10})
	for i, f := range static {
		list, err := o.decode([]byte{0x80 | byte(i+1)})
		if err != nil || list[0] != pair(f) {
			t.Errorf("%d is %q, %v; here %q", i+1, list, err, f)
		}
	}
}

// TestCostlyLists: lists that make much of few bytes end with the connection when they go through the table, and cost little when
// they refer to it.
func TestCostlyLists(t *testing.T) {
	limits := Limits{Bytes: 64 << 10, Fields: 101}
	entry := append([]byte{0x40, 0x7f, 0xe1, 0x1e}, bytes.Repeat([]byte("n"), 0x1e<<7|0x61+0x7f)...) // a name of 4 KiB
	var d Decoder
	var b Block
	b.Reset(Request, limits)
	entry = append(entry, 0)
	if err := d.Decode(entry, &b); err != nil || d.table.size < 4000 {
		t.Fatalf("%v, a table of %d bytes", err, d.table.size)
	}
	b.Reset(Request, limits)
	if err := d.Decode(bytes.Repeat([]byte{0xbe}, 60<<10), &b); err != nil || b.Fault != FaultTooLarge || b.memory.size() > 80<<10 {
		t.Errorf("references: %v, %v, %d bytes", err, b.Fault, b.memory.size())
	}
	b.Reset(Request, limits)
	if err := d.Decode(bytes.Repeat([]byte{0x7e, 0}, 30<<10), &b); err != ErrHPACK || d.copied > (maxCopied+1)*limits.Bytes {
		t.Errorf("entries: %v, %d bytes went through the table", err, d.copied)
	}
}

// TestListsAllocateNothing: neither do lists that HPACK has no place for.
func TestListsAllocateNothing(t *testing.T) {
	for name, list := range manyFields() {
		var d Decoder
		var b Block
		var from shelf
		b.Lend(&from)
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		for _, p := range list {
			_ = e.WriteField(hpack.HeaderField{Name: p.name, Value: p.value})
		}
		p := block.Bytes()
		got := testing.AllocsPerRun(100, func() {
			b.Reset(Request, Limits{Bytes: 64 << 10, Fields: 101})
			if err := d.Decode(p, &b); err != nil || b.Finish(true) != FaultNone {
				t.Fatal(err, b.Fault)
			}
			b.Release()
		})
		if got != 0 {
			t.Errorf("%s: %v allocations for %d bytes", name, got, len(p))
		}
	}
}

// manyFields are lists of which the table has no room for, all literal in each list.
func manyFields() map[string][]pair {
	get := pairs(":method:GET\n:scheme:https\n:authority:app.test\n:path:/")
	fields, cookies, large := get[:4:4], get[:4:4], get[:4:4]
	for i := range 90 {
		fields = append(fields, pair{fmt.Sprintf("x-field-%d", i), fmt.Sprintf("value %d of one that is not so short", i)})
	}
	for i := range 30 {
		cookies = append(cookies, pair{"cookie", fmt.Sprintf("cookie-%d=%s", i, strings.Repeat("v", 200))})
	}
	for i := range 20 {
		large = append(large, pair{fmt.Sprintf("x-%d", i), strings.Repeat("v", 2500)})
	}
	return map[string][]pair{"90 fields": fields, "30 cookies": cookies, "50 KiB": large}
}
