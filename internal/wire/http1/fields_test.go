package http1

import (
	"fmt"
	"strings"
	"testing"
)

// RFC 9112 section 5 and RFC 9110 section 5: field lines.

func TestFieldsKeepOrderRepetitionAndBytes(t *testing.T) {
	r := accept(t, get("X-B: 2", "COOKIE:a=1", "x-b:  two words\t", "Empty:", "Blank: \t ", "Cookie: b=2",
		"Obs: D\xfcsseldorf \xff", "Tabs: a\tb\t\tc", "!#$%&'*+-.^_`|~09: t"))
	want := "host=a.example;x-b=2;cookie=a=1;x-b=two words;empty=;blank=;cookie=b=2;" +
		"obs=D\xfcsseldorf \xff;tabs=a\tb\t\tc;!#$%&'*+-.^_`|~09=t;"
	if got := show(r.Fields); got != want {
		t.Errorf("fields are\n%q, not\n%q", got, want)
	}
	for _, f := range r.Fields {
		if f.Value == nil {
			t.Errorf("empty value of %s is nil", f.Name)
		}
		if cap(f.Name) != len(f.Name) || cap(f.Value) != len(f.Value) {
			t.Errorf("appending to %s would overwrite the head", f.Name)
		}
	}
}

// Values of every length put the bytes that end them at every place of a word.
func TestEveryValueLength(t *testing.T) {
	for n := range 70 {
		for _, last := range []string{"", "\t", " ", "x\ty"} {
			value := strings.Repeat("v", n) + last
			r := accept(t, get("A: "+value, "B: next"))
			want := "host=a.example;a=" + strings.TrimRight(value, " \t") + ";b=next;"
			if got := show(r.Fields); got != want {
				t.Fatalf("%q, not %q", got, want)
			}
		}
	}
}

func TestEveryByteInAValue(t *testing.T) {
	for c := range 256 {
		ok := c == '\t' || c >= ' ' && c != 0x7f
		for pad := range 20 {
			value := strings.Repeat("v", pad) + string([]byte{byte(c)}) + strings.Repeat("w", 20-pad)
			_, err := parseRequest(get("A: "+value), Limits{})
			if (err == nil) != ok {
				t.Fatalf("byte %#02x at %d: %v", c, pad, err)
			}
			if !ok {
				want := map[int]string{0: "nul", '\n': "bare-lf", '\r': "bare-cr"}[c]
				if want == "" {
					want = "field-value"
				}
				if got := reasonOf(t, err); got != want {
					t.Fatalf("byte %#02x refused for %q, not %q", c, got, want)
				}
			}
		}
	}
}

func TestEveryByteInAName(t *testing.T) {
	for c := range 256 {
		ok := strings.IndexByte("!#$%&'*+-.^_`|~:", byte(c)) >= 0 || c >= '0' && c <= '9' ||
			c|0x20 >= 'a' && c|0x20 <= 'z'
		r, err := parseRequest(get("A"+string([]byte{byte(c)})+"B: 1"), Limits{})
		if (err == nil) != ok {
			t.Fatalf("byte %#02x: %v", c, err)
		}
		if ok && c != ':' {
			want := strings.ToLower("a" + string([]byte{byte(c)}) + "b")
			if got := string(r.Fields[1].Name); got != want {
				t.Errorf("name %q, not %q", got, want)
			}
		}
	}
}

func TestFieldLinesRefused(t *testing.T) {
	refuseRequests(t, 400, []refusal{
		{"obs-fold", get("X-A: b", " c"), "obs-fold"},
		{"obs-fold with a tab", get("X-A: b", "\tc: d"), "obs-fold"},
		{"obs-fold of nothing", get("X-A:", " chunked"), "obs-fold"},
		{"space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "leading-space"},
		{"blank line of spaces", "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n", "leading-space"},
		{"space before colon", get("X-A : b"), "space-before-colon"},
		{"tab before colon", get("X-A\t: b"), "space-before-colon"},
		{"space in the name", get("X A: b"), "field-name"},
		{"empty name", get(": b"), "field-name"},
		{"no colon", get("X-A"), "no-colon"},
		{"UTF-8 name", get("X-T\xc3\xabst: b"), "field-name"},
		{"bracket", get("Bad[Name: b"), "field-name"},
		{"NUL in the name", get("X\x00A: b"), "nul"},
		{"CR in the name", get("X\rA: b"), "bare-cr"},
		{"LF in the name", get("X\nA: b"), "bare-lf"},
		{"LF ends the line", "GET / HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n", "bare-lf"},
		{"CR ends the line", "GET / HTTP/1.1\r\nHost: a\rX-A: b\r\n\r\n", "bare-cr"},
		{"CR instead of the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n", "bare-cr"},
		{"LF instead of the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n", "bare-lf"},
		{"NUL in the value", get("X-A: b\x00c"), "nul"},
		{"bell in the value", get("X-A: b\x07c"), "field-value"},
		{"vertical tab before the value", get("X-A: \x0bb"), "field-value"},
		{"DEL in the value", get("X-A: b\x7f"), "field-value"},
	})
}

func TestFieldCount(t *testing.T) {
	lines := func(n int) string {
		var b strings.Builder
		b.WriteString("GET / HTTP/1.1\r\nHost: a\r\n")
		for i := 1; i < n; i++ {
			fmt.Fprintf(&b, "x-%d: y\r\n", i)
		}
		return b.String() + "\r\n"
	}
	for _, c := range []struct {
		lines, limit int
		reason       string
	}{{DefaultFields, 0, ""}, {DefaultFields + 1, 0, "field-count"}, {3, 3, ""}, {4, 3, "field-count"}} {
		r, err := parseRequest(lines(c.lines), Limits{Fields: c.limit})
		if got := reasonOf(t, err); got != c.reason {
			t.Errorf("%d lines with limit %d: %q, not %q", c.lines, c.limit, got, c.reason)
		}
		if err == nil && len(r.Fields) != c.lines {
			t.Errorf("%d fields of %d lines", len(r.Fields), c.lines)
		}
	}
	// Merged repetitions count as lines: they cost as much.
	raw := "GET / HTTP/1.1\r\n" + strings.Repeat("Host: a\r\n", DefaultFields+1) + "\r\n"
	if _, err := parseRequest(raw, Limits{}); reasonOf(t, err) != "field-count" {
		t.Errorf("102 lines of Host: %v", err)
	}
}
