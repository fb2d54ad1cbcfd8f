package field

import (
	"testing"

	"turnout/internal/spare"
)

func list(pairs ...string) []Field {
	var fields []Field
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, Field{[]byte(pairs[i]), []byte(pairs[i+1])})
	}
	return fields
}

func text(fields []Field) (s string) {
	for _, f := range fields {
		s += string(f.Name) + "=" + string(f.Value) + ";"
	}
	return s
}

func TestLookups(t *testing.T) {
	fields := list("a", "1", "b", "", "a", "2")
	if i := Index(fields, "b"); i != 1 {
		t.Errorf("Index of b is %d", i)
	}
	if i := Index(fields, "A"); i != -1 {
		t.Errorf("Index of A is %d: names are lower-case", i)
	}
	if v := Get(fields, "a"); string(v) != "1" {
		t.Errorf("Get of a is %q, not the first", v)
	}
	if v := Get(fields, "b"); v == nil {
		t.Error("Get of an empty value is nil")
	}
	if v := Get(fields, "c"); v != nil {
		t.Errorf("Get of an absent field is %q", v)
	}
}

func TestDeleteKeepsOrder(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"a", "b=2;c=4;b=5;"},
		{"b", "a=1;a=3;c=4;"},
		{"x", "a=1;b=2;a=3;c=4;b=5;"},
	} {
		fields := list("a", "1", "b", "2", "a", "3", "c", "4", "b", "5")
		got := Delete(fields, c.name)
		if text(got) != c.want {
			t.Errorf("Delete %s leaves %s, not %s", c.name, text(got), c.want)
		}
		for _, f := range fields[len(got):] {
			if f.Name != nil || f.Value != nil {
				t.Errorf("Delete %s keeps bytes alive after the end of the list", c.name)
			}
		}
	}
	if got := Delete(nil, "a"); len(got) != 0 {
		t.Error("Delete of nothing")
	}
}

func TestNoAllocations(t *testing.T) {
	fields := list("a", "1", "b", "2")
	if n := testing.AllocsPerRun(100, func() {
		Get(fields, "b")
		Delete(fields[:1], "b")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTrim(t *testing.T) {
	for in, want := range map[string]string{"": "", " \t ": "", " a b\t": "a b", "\na\r": "\na\r"} {
		if got := string(Trim([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestArena: values stay as they were, and after a few rounds nothing is allocated.
func TestArena(t *testing.T) {
	var a Arena
	kept := a.Copy([]byte("first"))
	for range 100 {
		a.Copy(make([]byte, 100))
	}
	if string(kept) != "first" {
		t.Fatalf("a value became %q", kept)
	}
	value := make([]byte, 300)
	round := func() {
		a.Reset()
		for range 10 {
			a.Copy(value)
		}
	}
	for range 4 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
	a.Copy(make([]byte, keptBlock+1))
	a.Reset()
	if cap(a.block) != 0 {
		t.Errorf("%d bytes are kept", cap(a.block))
	}
}

// TestArenaLendsLargeBlocks: what one message needs beyond others is given back with it.
func TestArenaLendsLargeBlocks(t *testing.T) {
	var large spare.List[Block]
	a, other := Arena{Large: &large}, Arena{Large: &large}
	round := func(a *Arena) {
		small := a.Copy([]byte("small"))
		for range 10 {
			a.Copy(make([]byte, 5000))
		}
		if string(small) != "small" {
			t.Fatalf("a value became %q", small)
		}
		a.Reset()
	}
	for range 3 {
		round(&a)
		round(&other)
	}
	if large.Len() != 1 || cap(a.block) > keptBlock || a.lent != nil || a.small != nil {
		t.Errorf("%d blocks for messages one after the other; %d bytes are kept besides", large.Len(), cap(a.block))
	}
	value := make([]byte, 5000)
	if n := testing.AllocsPerRun(100, func() { a.Copy(value); a.Reset() }); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
	a.Copy(make([]byte, len(Block{})+1)) // more than a block has
	a.Copy(value)
	a.Reset()
	if large.Len() != 1 || cap(a.block) > keptBlock {
		t.Errorf("%d blocks, %d bytes are kept of a message that needed more than a block", large.Len(), cap(a.block))
	}
}
