package translate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"turnout/internal/wire/field"
)

// preflight is what a rule says to a preflight of an origin, a method and a field, one "name: value" after the other.
func preflight(t *testing.T, r *Result, origin string) string {
	t.Helper()
	if r.Spec.Policy.CORS == nil {
		return "none"
	}
	var request []field.Field
	for _, f := range [...][2]string{{"origin", origin}, {"access-control-request-method", "PUT"}, {"access-control-request-headers", "x-a"}} {
		request = append(request, field.Field{Name: []byte(f[0]), Value: []byte(f[1])})
	}
	var lines []string
	for _, f := range r.Spec.Policy.CORS.Permit(nil, request) {
		lines = append(lines, strings.TrimPrefix(string(f.Name), "access-control-")+": "+string(f.Value))
	}
	return strings.Join(lines, "; ")
}

// TestCORS: what of the annotations cannot be used lets no other page in.
func TestCORS(t *testing.T) {
	const origin, a, b = annotationOrigins, "https://a.test", "https://b.test"
	const refused = "vary: Origin"
	for _, c := range []struct {
		annotations []string
		origin      string
		want        string
		notes       int
	}{
		{nil, a, "none", 0},
		{[]string{origin, ""}, a, "none", 0},
		{[]string{annotationMethods, "PUT", annotationMaxAge, "7"}, a, "none", 2},
		{[]string{origin, a}, a, "allow-origin: https://a.test; vary: Origin; max-age: 5", 0},
		{[]string{origin, a}, b, refused, 0},
		{[]string{origin, "https://x.test, " + b}, b, "allow-origin: https://b.test; vary: Origin; max-age: 5", 0},
		{[]string{origin, "https://*.test"}, "https://x.y.test", "allow-origin: https://x.y.test; vary: Origin; max-age: 5", 0},
		{[]string{origin, "*"}, b, "allow-origin: *; max-age: 5", 0},
		{[]string{origin, "a.test https://a.test/path null"}, a, refused, 4},
		{[]string{origin, "a.test " + b}, b, "allow-origin: https://b.test; vary: Origin; max-age: 5", 1},
		{[]string{origin, strings.Repeat("https://a.test ", 300)}, a, refused, 2},
		{[]string{origin, a, annotationMethods, "PUT, DELETE", annotationHeaders, "X-A,X-B"}, a, "allow-origin: https://a.test; vary: Origin; allow-methods: PUT, DELETE; allow-headers: X-A, X-B; max-age: 5", 0},
		{[]string{origin, a, annotationMethods, "PUT D(LETE", annotationHeaders, "*"}, a, "allow-origin: https://a.test; vary: Origin; allow-methods: PUT; allow-headers: x-a; max-age: 5", 1},
		{[]string{origin, a, annotationExpose, "X-Total", annotationCredentials, "true", annotationMaxAge, "86400"}, a,
			"allow-origin: https://a.test; allow-credentials: true; expose-headers: X-Total; vary: Origin; max-age: 86400", 0},
		{[]string{origin, a, annotationCredentials, "yes", annotationMaxAge, "86401"}, a, "allow-origin: https://a.test; vary: Origin; max-age: 5", 2},
		{[]string{origin, "*", annotationCredentials, "true"}, b, "allow-origin: *; max-age: 5", 1},
		{[]string{origin, "* " + a, annotationCredentials, "true"}, b, "allow-origin: *; max-age: 5", 1},
		{[]string{origin, a, annotationMaxAge, "0"}, a, "allow-origin: https://a.test; vary: Origin; max-age: 5", 1},
	} {
		got := translated(t, Options{}, terminated("edge", "", c.annotations...))
		if said := preflight(t, got, c.origin); said != c.want || len(got.Notes) != c.notes {
			t.Errorf("%.200q, origin %s:\n%s, want\n%s; notes %q", c.annotations, c.origin, said, c.want, got.Notes)
		}
	}
	got := translated(t, Options{}, terminated("passthrough", "", origin, a, annotationMaxAge, "7"))
	if got.Spec.Policy.CORS != nil || len(got.Notes) != 2 {
		t.Errorf("passthrough: %v, notes %q", got.Spec.Policy.CORS, got.Notes)
	}
}

// TestEqualCORSIsOneRule: a route that is translated again is the same route, and routes that say the same share a rule.
func TestEqualCORSIsOneRule(t *testing.T) {
	tr := translator(t, Options{})
	rule := func(origins string) any {
		r := terminated("edge", "", annotationOrigins, origins)
		return tr.Route(Input{Route: r, Host: "h.test", TLS: r.Spec.TLS, Service: one}).Spec.Policy.CORS
	}
	if rule("https://a.test") != rule("https://a.test") || rule("https://a.test") == rule("https://b.test") {
		t.Error("equal annotations make different rules, or different ones the same")
	}
}

// TestWords: words of a list are bounded in number, in bytes and in notes.
func TestWords(t *testing.T) {
	var many, wrong []string
	for i := range maxWords + 6 {
		many, wrong = append(many, fmt.Sprint("w", i)), append(wrong, fmt.Sprint("(", i))
	}
	for _, c := range []struct {
		value       string
		words, note int
	}{
		{"", 0, 0}, {" , ", 0, 0}, {"a,a a\na", 1, 0}, {strings.Join(many, ","), maxWords, 1}, {strings.Join(wrong, " "), 0, maxNoted + 1}, {strings.Repeat("a", maxList+1), 0, 1},
	} {
		a := &annotations{values: map[string]string{annotationHeaders: c.value}}
		if list := a.words(annotationHeaders, "a name", field.IsToken); len(list) != c.words || len(a.notes) != c.note {
			t.Errorf("%.100q: %d words, notes %q", c.value, len(list), a.notes)
		}
	}
}

// FuzzLists: a list has each word that is valid once, in order, and nothing else.
func FuzzLists(f *testing.F) {
	for _, s := range []string{"", "PUT, DELETE", "a\x00b", "*", "a,,b  c\r\nd", "é", strings.Repeat("x ", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a := &annotations{values: map[string]string{annotationHeaders: text}}
		list := a.words(annotationHeaders, "a name", field.IsToken)
		if len(list) > maxWords || len(a.notes) > maxNoted+2 {
			t.Fatalf("%d words, %d notes", len(list), len(a.notes))
		}
		all := strings.FieldsFunc(text, separates)
		for i, word := range list {
			if !field.IsToken(word) || slices.Contains(list[:i], word) || !slices.Contains(all, word) {
				t.Fatalf("%q has %q", text, word)
			}
		}
		for _, word := range all {
			if len(text) <= maxList && len(list) < maxWords && field.IsToken(word) && !slices.Contains(list, word) {
				t.Fatalf("%q: %q is lost", text, word)
			}
		}
	})
}
