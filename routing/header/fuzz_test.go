package header

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

const tokenModel = `%%|%(?:\{([+-]?[QXE](?:,[+-]?[QXE])*)\})?\[(ssl_c_der|req\.hdr\(([A-Za-z0-9-]+)\))((?:,(?:lower|base64))*)\]|[^%\x00-\x1f\x7f]`

var (
	valueModel = regexp.MustCompile(`\A(?:` + tokenModel + `)+\z`)
	oneModel   = regexp.MustCompile(tokenModel)
)

// model evaluates a value of the grammar token by token, in strings.
func model(value, x string, der []byte) string {
	var b strings.Builder
	for _, m := range oneModel.FindAllStringSubmatch(value, -1) {
		switch {
		case m[0] == "%%":
			b.WriteByte('%')
			continue
		case m[2] == "":
			b.WriteString(m[0])
			continue
		}
		got := ""
		switch strings.ToLower(m[3]) {
		case "":
			got = string(der)
		case "x":
			got = string(LastElement([]byte(x)))
		case "y":
			got = "2"
		case "out":
			got = "3"
		}
		for step := range strings.SplitSeq(m[4], ",") {
			switch step {
			case "lower":
				got = strings.Map(func(r rune) rune {
					if 'A' <= r && r <= 'Z' {
						r += 'a' - 'A'
					}
					return r
				}, latin(got))
				got = bytesOf(got)
			case "base64":
				got = base64.StdEncoding.EncodeToString([]byte(got))
			}
		}
		escape := false
		for flag := range strings.SplitSeq(m[1], ",") {
			if strings.HasSuffix(flag, "E") {
				escape = flag[0] != '-'
			}
		}
		for i := range len(got) {
			switch c := got[i]; {
			case c < ' ' && c != '\t', c == 0x7f:
				fmt.Fprintf(&b, "%%%02X", c)
			case escape && strings.IndexByte(`"\]`, c) >= 0:
				b.WriteByte('\\')
				fallthrough
			default:
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// costly reports a value with too many expressions, or with one that has too many converters.
func costly(value string) bool {
	n := 0
	for _, m := range oneModel.FindAllStringSubmatch(value, -1) {
		if m[2] == "" {
			continue
		}
		if n++; n > MaxExpressions || strings.Count(m[4], ",") > MaxConverters {
			return true
		}
	}
	return false
}

// latin makes a rune of each byte, and bytesOf a byte of each rune.
func latin(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func bytesOf(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// FuzzCompile: a value compiles if it is of the grammar, and gives what a second evaluation gives, without controls and
// within the room.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"a", "%%", "%[req.hdr(x)]", "%{+E}[req.hdr(X),lower,base64]z", "%[ssl_c_der]", "%{-Q,+X}[ssl_c_der,base64]", "%[", "%{", "%",
		"%{E,-E}[req.hdr(x)]", "%[req.hdr(x),base64,lower] \xff", "%{++E}[req.hdr(x)]", "%[res.hdr(x)]", " a%[req.hdr(none)] "} {
		f.Add(s, "a, b\"]", []byte("\x00\x7f\xff"), uint16(4096))
		f.Add(s, `"a,B"`, []byte(nil), uint16(10))
	}
	f.Fuzz(func(t *testing.T, value, header string, der []byte, room uint16) {
		a, errs := Compile(Request, []Action{{Name: "Out", Value: value}})
		want := len(value) <= MaxValue && valueModel.MatchString(value) && !costly(value)
		if (a == nil) == (len(errs) == 0) || (a != nil) != want {
			t.Fatalf("%q compiles: %v, %v; the pattern says %v", value, a != nil, errs, want)
		}
		if a == nil {
			return
		}
		clean := strings.TrimSpace(strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return -1
			}
			return r
		}, header))
		result, arena := model(value, clean, der), new(field.Arena)
		for range 2 { // the second time in memory that was used
			m := &Message{Fields: fields("x: "+clean, "out: 1", "y: 2", "out: 3"), Certificate: bytes.Clone(der), Arena: arena, Room: int(room), Work: new(work.Of(1 << 40))}
			if ok := a.Apply(m); ok != (len("out")+len(result) <= int(room)) {
				t.Fatalf("%d bytes into %d: %v", len(result), room, ok)
			} else if !ok {
				return
			}
			if m.Room != int(room)-len("out")-len(result) || len(m.Fields) != 3 || len(field.Delete(slices.Clone(m.Fields), "out")) != 2 {
				t.Fatalf("room %d of %d after %d bytes, fields %q", m.Room, room, len(result), show(m.Fields))
			}
			got := field.Get(m.Fields, "out")
			if string(got) != strings.Trim(result, " \t") || slices.ContainsFunc(got, isControl) || !bytes.Equal(m.Certificate, der) {
				t.Fatalf("%q gives %q, want %q", value, got, result)
			}
			arena.Reset()
		}
	})
}

// FuzzParseList: a list that parses has names that are names, and says again what it said.
func FuzzParseList(f *testing.F) {
	for _, s := range []string{"a:b:Set,c:Delete", "x:%25%5Bssl_c_der%5D:Set", "a:Set", ":", ",", "a:%zz:Set", "a:+%2C%3A:Set", "%61:b:%53et"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseList(text)
		if (err == nil) != (len(list) > 0) || err == nil && len(list) != 1+strings.Count(text, ",") {
			t.Fatal(list, err)
		}
		var items []string
		for _, a := range list {
			switch {
			case !field.IsToken(a.Name) || a.Delete && a.Value != "":
				t.Fatalf("%q: %+v", text, a)
			case a.Delete:
				items = append(items, url.QueryEscape(a.Name)+":Delete")
			default:
				items = append(items, url.QueryEscape(a.Name)+":"+url.QueryEscape(a.Value)+":Set")
			}
		}
		if err != nil {
			return
		}
		if again, err := ParseList(strings.Join(items, ",")); err != nil || !slices.Equal(again, list) {
			t.Fatalf("%q is %+v; written and read again %+v, %v", text, list, again, err)
		}
	})
}
