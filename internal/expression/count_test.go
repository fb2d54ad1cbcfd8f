package expression

import (
	"errors"
	"strings"
	"testing"
)

// TestBytesIsAtLeastTheSize checks that Bytes, computed without compiling, is never below the Size
// of the compiled expression.
func TestBytesIsAtLeastTheSize(t *testing.T) {
	all := append([]string{
		strings.Repeat("a", 1024), "a{1000}", strings.Repeat("[a-z]", 200), strings.Repeat(`\pL`, maxClasses), strings.Repeat("a*", 300), strings.Repeat("()", 300), strings.Repeat("(a|)*", 150), strings.Repeat("a?|", 200), "(?i)" + strings.Repeat("k", 1000), strings.Repeat("[^a-f]", 150),
		"(?i)[" + strings.Repeat("azAZ09", 100) + "]", "[" + strings.Repeat("éà", 200) + "]{10}", `(\w|\d|\s){300}`, "([[:alpha:]]{3}){100}",
	}, texts...)
	for _, text := range costly {
		all = append(all, text)
	}
	for _, text := range all {
		e, err := New(text, Whole, Tenant())
		if err != nil {
			continue
		}
		if got := Bytes(text, Tenant()); got < e.Size() {
			t.Errorf("%.40q: counted %d bytes, takes %d", text, got, e.Size())
		}
		if most := MostBytes(text, Tenant()); most < Bytes(text, Tenant()) || most < e.Size() {
			t.Errorf("%.40q: %d bytes at most, takes %d", text, most, e.Size())
		}
		if got := Count(text, Tenant()); got < e.Instructions() {
			t.Errorf("%.40q: counted %d instructions, has %d", text, got, e.Instructions())
		}
	}
	if honest := Bytes("/api/v[0-9]+/.*", Tenant()); honest > 4<<10 {
		t.Errorf("%d bytes are counted for a short expression", honest)
	}
}

// TestCountingCostsLittle checks that MostBytes does not parse the expression and that Unicode
// classes are never parsed for counting.
func TestCountingCostsLittle(t *testing.T) {
	text := "(?i)[" + strings.Repeat(`\pL\PL`, maxClasses/2) + "]"
	for name, count := range map[string]func(){
		"the most":        func() { MostBytes("(a{2}){2}"+text, Tenant()) },
		"Unicode classes": func() { Bytes(text, Tenant()) },
	} {
		if n := testing.AllocsPerRun(10, count); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if _, err := New(text+`\pL`, Whole, Tenant()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than %d Unicode classes: %v", maxClasses, err)
	}
}
