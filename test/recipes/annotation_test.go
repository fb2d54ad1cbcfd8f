package recipes

// annotation is one more that adds a field to every answer of a route.
var annotation = addition{
	recipe: "An annotation",
	places: []insertion{
		{
			"a constant `annotation...` in `controller/translate`", "controller/translate/headers.go", `"haproxy.router.openshift.io/h1-adjust-case"`,
			"\tannotationThrowaway  = \"turnout.router/throwaway\"",
		},
		{"`controller/translate/known.go`", "controller/translate/known.go", "var known = []string{", "\tannotationThrowaway,"},
		{
			"a method of `annotations`, called in `Translator.Route` or `policy`", "controller/translate/policy.go", "p.Forwarded, _ = parseForwarded(d.Forwarded)",
			"\ta.throwaway(p)",
		},
		{"a method of `annotations`, called in `Translator.Route` or `policy`", "controller/translate/throwaway.go", "", `package translate

import "turnout/routing"

// throwaway reads an annotation that is there for nothing.
func (a *annotations) throwaway(p *routing.Policy) {
	switch value, ok := a.values[annotationThrowaway]; {
	case ok && value == "true":
		p.Throwaway = true
	case ok && value != "false":
		a.invalid(annotationThrowaway, value, "is neither true nor false", "false")
	}
}`},
		{"`routing/spec.go`", "routing/spec.go", "type Policy struct {", "\tThrowaway        bool"},
		{
			"where it works", "proxy/response.go", "cookies := ex.stripResponse(h)",
			"\tif pol.Throwaway {\n\t\th.Fields = field.Delete(h.Fields, \"server\")\n\t}",
		},
		{"a table test in `controller/translate`: good, odd, too large, other kinds of routes", "controller/translate/throwaway_test.go", "", `package translate

import "testing"

func TestThrowaway(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "false": false, "odd": false} {
		got := translated(t, Options{}, terminated("edge", "", annotationThrowaway, value))
		if got.Spec.Policy.Throwaway != want || (len(got.Notes) > 0) != (value == "odd") {
			t.Errorf("%s: %v, notes %v", value, got.Spec.Policy.Throwaway, got.Notes)
		}
	}
}`},
		{
			"`annotated` in `controller/gateway/convert/annotations.go`, and [gateway-api.md](gateway-api.md#what-has-no-equal)", "controller/gateway/convert/annotations.go", "var annotated = map[string]lost{",
			"\tofTurnout + \"throwaway\": always(\"nothing is done\"),",
		},
		{
			"`annotated` in `controller/gateway/convert/annotations.go`, and [gateway-api.md](gateway-api.md#what-has-no-equal)", "docs/gateway-api.md", "| `cookie-same-site` | nothing |",
			"| `throwaway` | nothing |",
		},
		{"[annotations.md](annotations.md)", "docs/annotations.md", "| `haproxy.router.openshift.io/hsts_header` |", "| `turnout.router/throwaway` | E | `true`, `false` | `false` | nothing |"},
		{"[the places of limits.md](limits.md#places-where-tenant-text-meets-client-bytes)", "docs/limits.md", "| `RuleSpec.Match` `Match.Headers`", "| `Policy.Throwaway` | none | one comparison | one flag |"},
	},
	leftOut:  map[string]string{"[limits.md](limits.md), [lab/limits.md](lab/limits.md)": "nothing grows by it"},
	packages: []string{"./controller/translate", "./controller/gateway/convert", "./routing"},
}
