package logformat

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	variable := func(name string, change func(*Item)) Item {
		i := Item{Text: "%" + name, Name: name}
		if change != nil {
			change(&i)
		}
		return i
	}
	sample := func(inner, name, arg string, converters ...string) Item {
		if converters == nil {
			converters = []string{}
		}
		return Item{Text: "%[" + inner + "]", Name: name, Sample: true, Arg: arg, Converters: converters}
	}
	quote, hex := func(i *Item) { i.Quote = true }, func(i *Item) { i.Hex = true }
	for _, tc := range []struct {
		format string
		want   []Item
	}{
		{"", nil},
		{"a  b", []Item{{Text: "a b"}}},
		{"100%%", []Item{{Text: "100%"}}},
		{"%ci:%cp", []Item{variable("ci", nil), {Text: ":"}, variable("cp", nil)}},
		{"%{+Q}r%r", []Item{variable("r", quote), variable("r", nil)}},
		{"%{+X}o  %ci%{-X}ci", []Item{variable("ci", hex), variable("ci", nil)}},
		{"%{+Q,+X,-Q}ci", []Item{variable("ci", hex)}},
		{"%{Q}ci", []Item{variable("ci", quote)}},
		{"%[src]", []Item{sample("src", "src", "")}},
		{"%[req.hdr(Host),lower]", []Item{sample("req.hdr(Host),lower", "req.hdr", "Host", "lower")}},
		{"%[a(1,2),field(1,x),upper]|", []Item{sample("a(1,2),field(1,x),upper", "a", "1,2", "field(1,x)", "upper"), {Text: "|"}}},
		{"%[rand()]", []Item{sample("rand()", "rand", "")}},
		{"%[a(b]", []Item{sample("a(b", "a(b", "")}},
	} {
		if got, err := Parse(tc.format); err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q: %+v, %v; want %+v", tc.format, got, err, tc.want)
		}
	}
	for format, want := range map[string]string{
		"%": "without a name", "%1": "without a name", "%{Q": "flags are", "%{Z}r": "flags are", "%{}r": "flags are", "%{+-Q}r": "flags are",
		"%[src": `without "]"`, "%[]": "without the name", "a\nb": "control character", "\x7f": "control character",
	} {
		if got, err := Parse(format); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", format, got, err)
		}
	}
}

func TestCase(t *testing.T) {
	for _, tc := range []struct {
		converters string
		to         int
		ok         bool
	}{{"lower", -1, true}, {"lower,upper", 1, true}, {"upper,lower", -1, true}, {"upper,base64", 0, false}} {
		i := Item{Converters: strings.Split(tc.converters, ",")}
		if to, ok := i.Case(); to != tc.to || ok != tc.ok {
			t.Errorf("%s: %d %v", tc.converters, to, ok)
		}
	}
	if to, ok := new(Item).Case(); to != 0 || !ok {
		t.Errorf("none: %d %v", to, ok)
	}
}

// FuzzParse: what the items say, written one after the other, is the format again, but for flags and merged blanks.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid", `%{+Q,-E}r %[capture.req.hdr(0),lower] %% `, "%", "%{", "%[", "%o", "a  b", "%[a(,),b(,)]", "%{-X}o%o%ci",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, format string) {
		items, err := Parse(format)
		if err != nil {
			if items != nil {
				t.Fatalf("%q: items beside %v", format, err)
			}
			return
		}
		var b strings.Builder
		for _, i := range items {
			if i.Text == "" {
				t.Fatalf("%q: an empty item: %+v", format, items)
			}
			if i.Name == "" {
				b.WriteString(strings.ReplaceAll(i.Text, "%", "%%"))
				continue
			}
			b.WriteString(i.Text)
			if !i.Sample && i.Text != "%"+i.Name {
				t.Fatalf("%q: %+v", format, i)
			}
		}
		again, err := Parse(b.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", format, b.String(), err)
		}
		var c strings.Builder
		for _, i := range again {
			if i.Name == "" {
				i.Text = strings.ReplaceAll(i.Text, "%", "%%")
			}
			c.WriteString(i.Text)
		}
		if c.String() != b.String() && !strings.Contains(b.String(), "  ") && !strings.Contains(b.String(), "%o") {
			t.Fatalf("%q became %q and that %q", format, b.String(), c.String())
		}
	})
}

// FuzzEscape: as many backslashes as there are bytes to escape, each before one, and the time of a copy.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", `"`, `a"b\]c`, `\\\`, "]]]"} {
		f.Add("pre\"", s)
	}
	f.Fuzz(func(t *testing.T, before, s string) {
		want := before + strings.NewReplacer(`"`, `\"`, `\`, `\\`, `]`, `\]`).Replace(s)
		if got := string(Escape([]byte(before+s), len(before))); got != want {
			t.Fatalf("%q after %q: %q, want %q", s, before, got, want)
		}
	})
}

// TestEscapeIsLinear: what is all quotes takes no longer than its size explains.
func TestEscapeIsLinear(t *testing.T) {
	quotes := strings.Repeat(`"`, 1<<20)
	start := time.Now()
	if n := len(Escape([]byte(quotes), 0)); n != 2<<20 {
		t.Fatal(n)
	}
	if took := time.Since(start); took > 3*time.Second { // quadratic, it is a minute
		t.Errorf("%v", took)
	}
}
