package header

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// fields makes a list of "name: value" lines.
func fields(lines ...string) []field.Field {
	var list []field.Field
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		list = append(list, field.Field{Name: []byte(name), Value: []byte(value)})
	}
	return list
}

func show(list []field.Field) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

func apply(t *testing.T, side Side, m *Message, list ...Action) string {
	t.Helper()
	a, errs := Compile(side, list)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if m.Arena == nil {
		m.Arena = new(field.Arena)
	}
	if m.Room == 0 {
		m.Room = 8192
	}
	if m.Work == nil {
		m.Work = new(work.Of(work.Request))
	}
	if !a.Apply(m) {
		t.Fatal("the room was used up")
	}
	return show(m.Fields)
}

// TestExpressions is the table of evaluation.
func TestExpressions(t *testing.T) {
	der := []byte("\x30\x82\x00\x0a\xff]")
	for _, c := range []struct{ id, value, want string }{
		{"%{+Q}[req.hdr(X-In)]: b", "%{+Q}[req.hdr(X-In)]", "b"},
		{"%{+E}[req.hdr(X-In2)]: q\\\"\\\\\\]z", "%{+E}[req.hdr(X-In2)]", `q\"\\\]z`},
		{"%[req.hdr(host)]: lower-cased host", "%[req.hdr(host)]", "plain.test:80"},
		{"[%[req.hdr(x-forwarded-for)]]: [8.8.8.8]", "[%[req.hdr(x-forwarded-for)]]", "[8.8.8.8]"},
		{"%[req.hdr(Missing)]: empty value", "%[req.hdr(Missing)]", ""},
		{"100%%: 100%", "100%%", "100%"},
		{"text", `"quoted" 'single' \ back # $x ${y}`, `"quoted" 'single' \ back # $x ${y}`},
		{"blanks", "  a  ", "a"},
		{"lower", "%[req.hdr(x-mixed),lower]", "abc"},
		{"base64", "%[req.hdr(x-mixed),base64]", "QWJj"},
		{"both", "%[req.hdr(x-mixed),base64,lower]", "qwjj"},
		{"base64 twice", "%[req.hdr(x-mixed),base64,base64]", base64.StdEncoding.EncodeToString([]byte("QWJj"))},
		{"flags", "%{-Q,+X,E}[req.hdr(X-In2)]", `q\"\\\]z`},
		{"flag off", "%{+E,-E}[req.hdr(X-In2)]", `q"\]z`},
		{"mixed", "a%[req.hdr(X-In)]b%%%[req.hdr(x-mixed)]", "abb%Abc"},
		{"last of many", "%[req.hdr(x-many)]", "three"},
		{"quoted comma", "%[req.hdr(x-list)]", `"b,c"`},
		{"certificate", "%[ssl_c_der,base64]", base64.StdEncoding.EncodeToString(der)},
		{"raw certificate", "%{+E}[ssl_c_der]", "0\x82%00%0A\xff\\]"},
	} {
		m := &Message{Certificate: der, Fields: fields("host: plain.test:80", "x-in: a, b", `x-in2: q"\]z`, "x-forwarded-for: 9.9.9.9, 8.8.8.8",
			"x-mixed: Abc", "x-many: one", "x-many: two, three", `x-list: a, "b,c"`)}
		want := show(m.Fields) + "x-out: " + c.want + "\n"
		if got := apply(t, Request, m, Action{Name: "X-Out", Value: c.value}); got != want {
			t.Errorf("%s: %q gives\n%s, want\n%s", c.id, c.value, got, want)
		}
	}
	m := &Message{Fields: fields("content-type: Text/HTML")}
	if got := apply(t, Response, m, Action{Name: "x", Value: "%[res.hdr(Content-Type),lower]"}); !strings.Contains(got, "x: text/html\n") {
		t.Errorf("%%[res.hdr(Content-Type),lower] (response): lower-cased content type: %s", got)
	}
	m = &Message{Fields: fields("a: b")}
	if got := apply(t, Request, m, Action{Name: "x", Value: "%[ssl_c_der,base64]"}); !strings.HasSuffix(got, "x: \n") {
		t.Errorf("without a certificate: %q", got)
	}
}

func TestLists(t *testing.T) {
	m := &Message{Fields: fields("a: 1", "b: 2", "a: 3", "c: 4", "a: 5")}
	got := apply(t, Request, m,
		Action{Name: "A", Value: "new"},                        // once, where the first stood
		Action{Name: "c", Delete: true},                        //
		Action{Name: "d", Value: "<%[req.hdr(a)]>"},            // sees what was set
		Action{Name: "e", Value: "<%[req.hdr(c)]>"},            // and what was deleted
		Action{Name: "d", Value: "%[req.hdr(d)]%[req.hdr(d)]"}, // its own old value
		Action{Name: "missing", Delete: true})
	if want := "a: new\nb: 2\nd: <new><new>\ne: <>\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWhatCannotBeCompiled(t *testing.T) {
	for _, c := range []struct {
		side Side
		a    Action
		want string
	}{
		{Request, Action{Name: "a b", Value: "x"}, "invalid HTTP header name: a b"},
		{Request, Action{Name: "", Delete: true}, "invalid HTTP header name"},
		{Request, Action{Name: "Content-Length", Value: "5"}, "frames messages"},
		{Response, Action{Name: "transfer-encoding", Delete: true}, "frames messages"},
		{Request, Action{Name: "Connection", Value: "close"}, "frames messages"},
		{Request, Action{Name: "Host", Delete: true}, "cannot be without"},
		{Request, Action{Name: "CDN-Loop", Delete: true}, "so that loops end"},
		{Request, Action{Name: "cdn-loop", Value: "a"}, "so that loops end"},
		{Request, Action{Name: "x"}, "it is empty"},
		{Request, Action{Name: "x", Value: strings.Repeat("a", MaxValue+1)}, "longer than"},
		{Request, Action{Name: "x", Value: "a\r\nEvil: 1"}, "control character"},
		{Request, Action{Name: "x", Value: "100%"}, `is written "%%"`},
		{Request, Action{Name: "x", Value: "%ci"}, `is written "%%"`},
		{Request, Action{Name: "x", Value: "%[req.hdr(a)"}, "ends with"},
		{Request, Action{Name: "x", Value: "%[req.hdr()]"}, "letters, digits"},
		{Request, Action{Name: "x", Value: "%[req.hdr(a_b)]"}, "letters, digits"},
		{Request, Action{Name: "x", Value: "%[res.hdr(a)]"}, "unknown source"},
		{Response, Action{Name: "x", Value: "%[req.hdr(a)]"}, "unknown source"},
		{Request, Action{Name: "x", Value: "%[src]"}, "unknown source"},
		{Request, Action{Name: "x", Value: "%[req.hdr(a),upper]"}, "unknown converter"},
		{Request, Action{Name: "x", Value: "%{+Z}[req.hdr(a)]"}, "flags are"},
		{Request, Action{Name: "x", Value: "%{++E}[req.hdr(a)]"}, "flags are"},
		{Request, Action{Name: "x", Value: "%{}[req.hdr(a)]"}, "flags are"},
		{Request, Action{Name: "x", Value: "%{+E"}, "flags are"},
		{Request, Action{Name: "x", Value: "%[req.hdr(a)" + strings.Repeat(",base64", MaxConverters+1) + "]"}, "at most 16 converters, not 17"},
		{Request, Action{Name: "x", Value: "%[req.hdr(a)" + strings.Repeat(",lower", 1000) + "]"}, "at most 16 converters, not 1000"},
		{Response, Action{Name: "x", Value: strings.Repeat("%[ssl_c_der]", MaxExpressions+1)}, "at most 64 expressions"},
	} {
		a, errs := Compile(c.side, []Action{{Name: "good", Value: "v"}, c.a})
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) || a == nil || len(a.ops) != 1 {
			t.Errorf("%+v: %v, want %s", c.a, errs, c.want)
		}
	}
	if a, errs := Compile(Request, nil); a != nil || errs != nil {
		t.Errorf("an empty list: %v %v", a, errs)
	}
}

// TestRoom: what a list adds is bounded, however often a value repeats a field.
func TestRoom(t *testing.T) {
	big := strings.Repeat("x", 4000)
	for _, c := range []struct {
		value string
		room  int
		ok    bool
	}{
		{"%[req.hdr(big)]", 4001, true},
		{"%[req.hdr(big)]", 4000, false}, // the name counts too
		{strings.Repeat("%[req.hdr(big)]", MaxExpressions), 8192, false},
		{strings.Repeat("a", 8191), 8192, true},
		{strings.Repeat("a", 8192), 8192, false},
	} {
		a, _ := Compile(Request, []Action{{Name: "o", Value: c.value}})
		m := &Message{Fields: fields("big: " + big), Arena: new(field.Arena), Room: c.room, Work: new(work.Of(work.Request))}
		if ok := a.Apply(m); ok != c.ok {
			t.Errorf("%.30s with room for %d: %v", c.value, c.room, ok)
		}
	}
}

// TestParseList: the actions of the whole router as a variable has them.
func TestParseList(t *testing.T) {
	for _, c := range []struct {
		id, in string
		want   []Action
		err    string
	}{
		{"list Accept:text%2Fplain%2C+text%2Fhtml:Set sets text/plain, text/html", "Accept:text%2Fplain%2C+text%2Fhtml:Set", []Action{{Name: "Accept", Value: "text/plain, text/html"}}, ""},
		{"list Content-Location%3A%252Fmy-first-blog-post%3ASet is no list", "Content-Location%3A%252Fmy-first-blog-post%3ASet", nil, "invalid HTTP header input specification: Content-Location%3A%252Fmy-first-blog-post%3ASet"},
		{"list of three Sets with percent-encoded values", "X-Frame-Options:DENY:Set,X-XSS-Protection:1%3Bmode%3Dblock:Set,x-forwarded-client-cert:%25%7B%2BQ%7D%5Bssl_c_der%2Cbase64%5D:Set",
			[]Action{{Name: "X-Frame-Options", Value: "DENY"}, {Name: "X-XSS-Protection", Value: "1;mode=block"}, {Name: "x-forwarded-client-cert", Value: "%{+Q}[ssl_c_der,base64]"}}, ""},
		{"list X-Frame-Options:DENY:Set: Set", "X-Frame-Options:DENY:Set", []Action{{Name: "X-Frame-Options", Value: "DENY"}}, ""},
		{"list with a broken escape cannot be decoded", "X-Frame-Options:DE%5:Set", nil, "failed to decode percent encoding: DE%5"},
		{"list Accept-Encoding:Delete%2 cannot be decoded", "Accept-Encoding:Delete%2", nil, "failed to decode percent encoding: Delete%2"},
		{"list X-Frame-Options:DENY:Delete%2 cannot be decoded", "X-Frame-Options:DENY:Delete%2", nil, "failed to decode percent encoding: Delete%2"},
		{"list X-Frame-Options:Bad: invalid action: Bad", "X-Frame-Options:Bad", nil, "invalid action: Bad"},
		{"list X-Frame-Options is no list", "X-Frame-Options", nil, "invalid HTTP header input specification: X-Frame-Options"},
		{"an empty list passed to the parser is an error", "", nil, "encoded header string not present"},
		{"list X-Frame-Options!=:DENY:Set: invalid HTTP header name: X-Frame-Options!=", "X-Frame-Options**!=:DENY:Set", nil, "invalid HTTP header name: X-Frame-Options**!="},
		{"list X-Frame-Options:DENY:Set:Invalid is no list", "X-Frame-Options:DENY:Set:Invalid", nil, "invalid HTTP header input specification: X-Frame-Options:DENY:Set:Invalid"},
		{"delete", "a:Delete,b:x:Delete", []Action{{Name: "a", Delete: true}, {Name: "b", Delete: true}}, ""},
		{"set nothing", "a:Set", []Action{{Name: "a"}}, ""},
		{"case", "a:b:set", nil, "invalid action: set"},
	} {
		got, err := ParseList(c.in)
		if fmt.Sprint(got) != fmt.Sprint(c.want) || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %+v, %v; want %+v, %s", c.id, got, err, c.want, c.err)
		}
	}
}

func TestLastElement(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", " a ": "a", "a,b": "b", "a, b ": "b", "a,": "", `"a,b"`: `"a,b"`, `x,"a\",b",c`: "c", `x,"a\",b`: `"a\",b`,
	} {
		if got := string(LastElement([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestAdd: a value is added behind those that are there, and counts as a set does.
func TestAdd(t *testing.T) {
	actions, errs := Compile(Response, []Action{{Name: "X-A", Value: "two", Add: true}, {Name: "X-B", Value: "%[res.hdr(x-a)]", Add: true}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	m := &Message{Fields: []field.Field{{Name: []byte("x-a"), Value: []byte("one")}}, Arena: &field.Arena{}, Room: 100, Work: new(work.Of(work.Request))}
	got := ""
	if !actions.Apply(m) {
		t.Fatal("the budget was used up")
	}
	for _, f := range m.Fields {
		got += string(f.Name) + ":" + string(f.Value) + ";"
	}
	if got != "x-a:one;x-a:two;x-b:two;" {
		t.Error(got)
	}
	if m.Room = 5; actions.Apply(m) {
		t.Error("what is added has no bound")
	}
	if _, errs := Compile(Request, []Action{{Name: "Host", Value: "b", Add: true}}); len(errs) != 1 {
		t.Error("a request gets a second Host")
	}
}
