package translate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/internal/wire/field"
	"turnout/internal/work"
	"turnout/routing/header"
)

func setHeader(name, value string) routev1.RouteHTTPHeader {
	return routev1.RouteHTTPHeader{Name: name, Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Set, Set: &routev1.RouteSetHTTPHeader{Value: value}}}
}

func deleteHeader(name string) routev1.RouteHTTPHeader {
	return routev1.RouteHTTPHeader{Name: name, Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Delete}}
}

// applied is what a list does to a message that has every field it deletes.
func applied(t *testing.T, a *header.Actions, deleted string) string {
	t.Helper()
	if a == nil {
		return ""
	}
	m := &header.Message{Arena: new(field.Arena), Room: 1 << 20, Work: new(work.Of(work.Request)), Fields: []field.Field{{Name: []byte(strings.ToLower(deleted)), Value: []byte("there")}}}
	if !a.Apply(m) {
		t.Fatal("no room")
	}
	var b strings.Builder
	for _, f := range m.Fields {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	return b.String()
}

// TestHeaderActions is about actions that are kept, and what an API server would not have taken.
func TestHeaderActions(t *testing.T) {
	for _, c := range []struct {
		id    string
		entry routev1.RouteHTTPHeader
		want  string // of the message; "" = the entry is dropped and noted
		note  string
	}{
		{"action Set X-Frame-Options DENY is kept", setHeader("X-Frame-Options", "DENY"), "x-frame-options: DENY\n", ""},
		{"action Set x-client \"abc\"\\ 'def' is kept", setHeader("x-client", `"abc"\ 'def'`), "x-client: \"abc\"\\ 'def'\n", ""},
		{"action Delete X-XSS-Protection is kept", deleteHeader("X-XSS-Protection"), "-", ""},
		{"action Set with empty value is not kept", setHeader("x", ""), "", "it is empty"},
		{"action Set Accept text/}plain,text/html{ is kept", setHeader("Accept", "text/}plain,text/html{"), "accept: text/}plain,text/html{\n", ""},
		{"action Set x foo if bar is kept", setHeader("x", "foo if bar"), "x: foo if bar\n", ""},
		{"action Set x \"shouldn't break\"\\ is kept", setHeader("x", `"shouldn't break"\`), "x: \"shouldn't break\"\\\n", ""},
		{"no name", deleteHeader(""), "", "invalid HTTP header name"},
		{"reserved", setHeader("Set-COOKIE", "a=b"), "", "may not be changed by a route"},
		{"reserved", setHeader("Strict-Transport-Security", "max-age=0"), "", "may not be changed by a route"},
		{"framing", setHeader("Content-Length", "0"), "", "frames messages"},
		{"long name", setHeader(strings.Repeat("x", 256), "v"), "", "longer than 255"},
		{"expression", setHeader("x", "%[src]"), "", "unknown source"},
		{"type", routev1.RouteHTTPHeader{Name: "x", Action: routev1.RouteHTTPHeaderActionUnion{Type: "Append"}}, "", `action "Append" is not Set or Delete`},
		{"no set", routev1.RouteHTTPHeader{Name: "x", Action: routev1.RouteHTTPHeaderActionUnion{Type: routev1.Set}}, "", "a set without a value"},
	} {
		r := terminated("edge", "")
		r.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{Request: []routev1.RouteHTTPHeader{c.entry}, Response: []routev1.RouteHTTPHeader{c.entry}}}
		got := translated(t, Options{}, r)
		want := c.want + "y: there\n"
		switch c.want {
		case "-":
			want = ""
		case "":
		default:
			want = "y: there\n" + c.want
		}
		for side, a := range []*header.Actions{got.Spec.Policy.RequestActions, got.Spec.Policy.ResponseActions} {
			switch {
			case c.want == "" && a != nil:
				t.Errorf("%s: side %d: the entry is kept", c.id, side)
			case c.want == "-" && applied(t, a, c.entry.Name) != "":
				t.Errorf("%s: side %d: not deleted", c.id, side)
			case c.want != "" && c.want != "-" && applied(t, a, "y") != want:
				t.Errorf("%s: side %d: %q, want %q", c.id, side, applied(t, a, "y"), want)
			}
		}
		if c.note == "" && len(got.Notes) > 0 || c.note != "" && (len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "spec.httpHeaders.actions.request[0]") || !strings.Contains(got.Notes[1], c.note)) {
			t.Errorf("%s: notes %q", c.id, got.Notes)
		}
	}
}

func TestHeaderActionLists(t *testing.T) {
	r := terminated("", "")
	var list []routev1.RouteHTTPHeader
	for i := range 22 {
		list = append(list, setHeader(fmt.Sprintf("x-%d", i), "v"))
	}
	list[3] = setHeader("x-0", "again")
	r.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{Actions: routev1.RouteHTTPHeaderActions{Request: list}}
	tr := translator(t, Options{})
	in := Input{Route: r, Host: "h.test", Service: one}
	got := tr.Route(in)
	if len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "is in the list already") || !strings.Contains(got.Notes[1], "[21] has no effect: a list has at most 20") {
		t.Errorf("notes %q", got.Notes)
	}
	if text := applied(t, got.Spec.Policy.RequestActions, "y"); strings.Count(text, "\n") != 21 || !strings.Contains(text, "x-0: v\n") {
		t.Errorf("%q", text)
	}
	r.Annotations[annotationRewrite] = "/v2"
	first, second := tr.Route(in), tr.Route(in)
	if first.Spec.Policy != second.Spec.Policy || first.Spec.Policy.Rewrite == nil || first.Spec.Policy.RequestActions != got.Spec.Policy.RequestActions {
		t.Error("a route that is translated again is another one")
	}
	p := terminated("passthrough", "", annotationRewrite, "/", annotationAdjustCase, "true")
	p.Spec.HTTPHeaders = r.Spec.HTTPHeaders
	got = translated(t, Options{}, p)
	if policy := got.Spec.Policy; policy.RequestActions != nil || policy.Rewrite != nil || policy.AdjustCase || len(got.Notes) != 3 {
		t.Errorf("passthrough: %+v, notes %q", policy, got.Notes)
	}
}

func TestRewriteAndCase(t *testing.T) {
	for _, c := range []struct {
		id, path, target, request, want string
		notes                           int
	}{
		{"path /api/v1 with target /v2 is ^/api/v1(.*)$ -> /v2\\1", "/api/v1", "/v2", "/api/v1/x", "/v2/x", 0},
		{"path \"\" with target /x is ^(.*)$ -> /x\\1", "", "/x", "/y", "/x/y", 0},
		{"path /app with target v2 is annotation ignored", "/app", "v2", "", "", 1},
		{"newline", "/app", "/v2\n", "", "", 1},
		{"absent", "/app", "", "", "", 0},
	} {
		r := terminated("", "", annotationRewrite, c.target)
		r.Spec.Path = c.path
		got := translated(t, Options{}, r)
		rule := got.Spec.Policy.Rewrite
		if (rule != nil) != (c.want != "") || len(got.Notes) != c.notes {
			t.Errorf("%s: rule %v, notes %q", c.id, rule, got.Notes)
			continue
		}
		if rule == nil {
			continue
		}
		if path, ok := rule.Apply([]byte(c.request), new(field.Arena), 100, new(work.Of(work.Request))); !ok || string(path) != c.want {
			t.Errorf("%s: %q", c.id, path)
		}
	}
	for value, want := range map[string]bool{"true": true, "1": true, "yes": false, "True": true, "false": false} {
		if got := translated(t, Options{}, terminated("", "", annotationAdjustCase, value)); got.Spec.Policy.AdjustCase != want {
			t.Errorf("h1-adjust-case %q: %v", value, !want)
		}
	}
}

// TestAnnotationsAreDocumented compares the annotations that are read with
// docs/annotations.md.
func TestAnnotationsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/annotations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z.]+/[a-zA-Z0-9_.-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\tannotation\w+\s+= (annotationRates \+ )?"([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
			read++
			key := m[2]
			if m[1] != "" {
				key = annotationRates + key
			}
			if !documented[key] {
				t.Errorf("annotation %s is not in docs/annotations.md", key)
			}
			if !Reads(key) {
				t.Errorf("annotation %s is not known to be read", key)
			}
			delete(documented, key)
		}
	}
	for name := range documented {
		t.Errorf("docs/annotations.md describes %s, which nobody reads", name)
	}
	if read < 10 {
		t.Errorf("only %d annotations found in the source", read)
	}
}

// TestLongAnnotations: what an annotation adds to each message is bounded; a longer one has no effect.
func TestLongAnnotations(t *testing.T) {
	for key, value := range map[string]func(n int) string{
		annotationCookieName: func(n int) string { return strings.Repeat("c", n) },
		annotationHSTS:       func(n int) string { return "max-age=" + strings.Repeat("1", n-len("max-age=")) },
	} {
		for _, n := range []int{maxFieldAnnotation, maxFieldAnnotation + 1} {
			spec := translated(t, Options{}, terminated("edge", "", key, value(n))).Spec
			if used := len(spec.CookieName) == n || len(spec.Policy.HSTS) == n; used != (n == maxFieldAnnotation) {
				t.Errorf("%s of %d bytes: used %v", key, n, used)
			}
		}
	}
}

// TestLongValuesAreCutInNotes: notes are for people, and no second copy of what a route says.
func TestLongValuesAreCutInNotes(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	r := terminated("edge", "", annotationBalance, long, annotationTimeout, long, annotationAllow, long+" 10.0.0.1", annotationSameSite, long,
		annotationCheckPath, long, annotationRates, long, annotationTunnel, strings.Repeat("9", 100<<10)+"s")
	r.Spec.HTTPHeaders = &routev1.RouteHTTPHeaders{}
	for i := range 1000 {
		r.Spec.HTTPHeaders.Actions.Request = append(r.Spec.HTTPHeaders.Actions.Request, setHeader(fmt.Sprint("x-", i), "v"))
	}
	got := translated(t, Options{}, r)
	size := 0
	for _, note := range got.Notes {
		size += len(note)
	}
	if len(got.Notes) < 7 || len(got.Notes) > 12 || size > 500*len(got.Notes) {
		t.Errorf("%d bytes in %d notes", size, len(got.Notes))
	}
}
