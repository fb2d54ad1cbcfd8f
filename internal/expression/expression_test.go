package expression

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
)

// plenty is a budget that is never used up by accident.
const plenty = 1 << 30

// same compares an expression with package regexp on one input.
func same(t *testing.T, text string, input []byte) {
	t.Helper()
	for form, oracle := range []string{`(?s)\A(?:` + text + `)\z`, text} {
		want, err := regexp.Compile(oracle)
		if _, alone := regexp.Compile(text); err != nil || alone != nil {
			continue // "a)|(b" is no expression on its own
		}
		e, err := New(text, Form(form), Tenant())
		if err != nil {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		budget := plenty
		got := e.Match(new(Machine), input, &budget)
		if (got == Yes) != want.Match(input) || got == Undecided {
			t.Errorf("%q form %d on %q: %d, package regexp says %v", text, form, input, got, want.Match(input))
		}
		if tree, err := syntax.Parse(text, syntax.Perl); err == nil && instructions(tree, plenty) < e.Instructions() {
			t.Errorf("%q: %d instructions, estimated %d", text, e.Instructions(), instructions(tree, plenty))
		}
		if most := 3 * (e.Instructions() + wideWork) * (len(input) + 2); plenty-budget > most {
			t.Errorf("%q form %d on %d bytes: %d steps, more than %d", text, form, len(input), plenty-budget, most)
		}
	}
}

var texts = []string{
	"", "a", "abc", "/api/v[0-9]+/.*", "/x/.*?", "(a|ab)(c|bcd)(d*)", "a*", "(a*)*b", "(?:a|b|c){2,5}", `\bfoo\b`, `\Bo`, "^a$", `(?m)^b$`, `(?i)straße`,
	"(?i)k", "(?i)[a-c]+", `\pL+`, `[^\x00-\x7f]`, "é+", ".", "(?-s).*x", `\x{FFFD}b`, "a|", "|", "()", "(?:)", "[^a]", `\z`, `a\z.*`, `\Aa`, "x?y?z?", `[[:^alpha:]]\d*`,
	"(|a)+", "(a|b)*abb", `(?i)\x{212a}`, "a)|(b", "[a-z]{1,253}", "$^", `(?m)$\n^`, "[\\s\\S]*", "(.*)(.*)", "a.*b.*", `.*\.php`, "(?U)a+b",
}

func TestExpressionsMatchAsPackageRegexp(t *testing.T) {
	inputs := []string{
		"", "a", "b", "ab", "abc", "abcd", "/api/v1/", "/api/v12/x/y", "/x/", "/x", "foo", "a foo b", "a\nb", "b\n", "STRASSE", "straße", "k", "K", "\u212a",
		"é", "éé", "\xff", "\xffb", "aab", "abab", "babb", "xyz", "z1", "\n", "axxbyy", "/index.php", strings.Repeat("a", 300),
	}
	for _, text := range texts {
		for _, input := range inputs {
			same(t, text, []byte(input))
		}
	}
}

// TestRandomExpressionsMatchAsPackageRegexp builds expressions from a grammar, so that nearly all
// of them compile.
func TestRandomExpressionsMatchAsPackageRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	atoms := []string{"a", "b", "é", ".", "[ab]", "[^a]", "^", "$", `\b`, `\B`, "(?i)a", "(?m)^", "(?-s).", `\n`, ""}
	var build func(depth int) string
	build = func(depth int) string {
		if depth == 0 {
			return atoms[r.IntN(len(atoms))]
		}
		a, b := build(depth-1), build(depth-1)
		return [...]string{a + b, "(?:" + a + "|" + b + ")", "(" + a + ")*" + b, "(?:" + a + ")+?", "(?:" + a + "){1,3}" + b, "(?:" + a + ")?" + b}[r.IntN(6)]
	}
	letters := []string{"a", "b", "A", "é", "\n", "\xff", " "}
	for range 3000 {
		text := build(1 + r.IntN(4))
		for range 5 {
			var input strings.Builder
			for range r.IntN(8) {
				input.WriteString(letters[r.IntN(len(letters))])
			}
			same(t, text, []byte(input.String()))
		}
	}
}

func FuzzExpressionMatchesAsPackageRegexp(f *testing.F) {
	for i, text := range texts {
		f.Add(text, []byte(texts[len(texts)-1-i]))
	}
	f.Fuzz(func(t *testing.T, text string, input []byte) {
		if len(text) > 200 || len(input) > 500 {
			return
		}
		same(t, text, input)
	})
}

// costly are expressions below 1,024 bytes that package regexp compiles to megabytes, parses for a
// long time, or matches slowly.
var costly = map[string]string{
	"repetitions":              strings.Repeat("a{1000}", 146),
	"nested repetitions":       strings.Repeat("((a{10}){10}){10}", 60),
	"repeated classes":         strings.Repeat(`\pL{1000}`, 113),
	"repeated nothing":         strings.Repeat("(?:){1000}", 100),
	"repeated alternatives":    strings.Repeat("(|a|b|c){1000}", 70),
	"many classes":             "[" + strings.Repeat(`\pL`, 340) + "]",
	"many folded classes":      "(?i)[" + strings.Repeat(`\PN`, 330) + "]",
	"ranges that ignore case":  "(?i)[" + strings.Repeat(`b-\x{1e942}`, 90) + "]",
	"the same, written out":    "(?i)[" + strings.Repeat("b-\U0001e942", 150) + "]",
	"the same, flag elsewhere": "(?s-m)((?i:[" + strings.Repeat(`b-\x{1e942}`, 85) + "]))",
}

func TestCostlyExpressionsAreRefusedBeforeTheyCost(t *testing.T) {
	for name, text := range costly {
		if len(text) > Tenant().Text {
			t.Fatalf("%s: %d bytes", name, len(text))
		}
		_, err := New(text, Whole, Tenant())
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		// A refusal costs less than the largest expression that is accepted.
		if n := testing.AllocsPerRun(1, func() { _, _ = New(text, Whole, Tenant()) }); n > 20_000 {
			t.Errorf("%s: %v allocations to refuse it", name, n)
		}
	}
	if _, err := New(strings.Repeat("a", 1025), Whole, Tenant()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long text: %v", err)
	}
	if _, err := New("(", Whole, Tenant()); err == nil || errors.Is(err, ErrTooLarge) {
		t.Errorf("no expression: %v", err)
	}
	for _, text := range []string{"a{1000}", "[a-z0-9-]{1,253}", `(?i)/straße/[a-z]+`, `\p{Greek}\pL+`, "(?i)(?:GET|POST)"} {
		if _, err := New(text, Whole, Tenant()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOperatorsHaveLargerLimits(t *testing.T) {
	text := "CN=(?:" + strings.Repeat("client-[0-9]+|", 1000) + "x)"
	if _, err := New(text, Somewhere, Tenant()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("of a tenant: %v", err)
	}
	if _, err := New(text, Somewhere, Operator()); err != nil {
		t.Errorf("of an option: %v", err)
	}
	if _, err := New(strings.Repeat("[a-z]{100}", 1000), Somewhere, Operator()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("100,000 instructions: %v", err)
	}
}

// TestExpressionsKeepTheirSize compares Size with the limit for the largest texts of several kinds.
func TestExpressionsKeepTheirSize(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 1024), `\pL{900}`, strings.Repeat("[a-z]", 200), strings.Repeat(`\pL`, 16), "(?i)" + strings.Repeat("k", 1000)} {
		e, err := New(text, Whole, Tenant())
		if err != nil {
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%.20q: %v", text, err)
			}
			continue
		}
		if e.Size() > Tenant().Size || e.Size() < len(text) || e.Instructions() > Tenant().Instructions {
			t.Errorf("%.20q: %d bytes, %d instructions", text, e.Size(), e.Instructions())
		}
	}
}

// TestMatchingStopsAtItsBudget checks that a match with an exhausted budget returns Undecided, and
// that it takes few steps beyond the budget.
func TestMatchingStopsAtItsBudget(t *testing.T) {
	e, err := New("(?:a?){500}(?:[ab]?){500}c", Whole, Tenant())
	if err != nil {
		t.Fatal(err)
	}
	m, input := new(Machine), []byte(strings.Repeat("a", 20<<10))
	for _, budget := range []int{0, 1, 1000, 32 << 10} {
		left := budget
		if got := e.Match(m, input, &left); got != Undecided || left != 0 {
			t.Errorf("budget %d: result %d, %d left", budget, got, left)
		}
		if over := m.work - budget; over > 2+wideWork {
			t.Errorf("budget %d: %d steps more", budget, over)
		}
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	var list []*Expression
	for _, text := range []string{"/api/v[0-9]+/.*x", "(?:a?){500}", `\bé+`, "(?i)abc"} {
		e, err := New(text, Whole, Tenant())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	m, input := new(Machine), []byte("/api/v1/"+strings.Repeat("a", 1000))
	if n := testing.AllocsPerRun(100, func() {
		for _, e := range list {
			budget := plenty
			e.Match(m, input, &budget)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTheEndOfAnExpressionDecidesEarly(t *testing.T) {
	e, err := New("/api/v[0-9]+/.*", Whole, Tenant())
	if err != nil {
		t.Fatal(err)
	}
	budget := 50
	if e.Match(new(Machine), []byte("/api/v1/"+strings.Repeat("x", 20<<10)), &budget) != Yes {
		t.Error("a long path costs more than 50 steps")
	}
}

// BenchmarkStep measures a step of several worst programs. The budgets of routing are based on the
// slowest one.
func BenchmarkStep(b *testing.B) {
	input := []byte(strings.Repeat("aé", 10<<10))
	for name, text := range map[string]string{
		"alternatives": "(?:(?:a?é?){500})*c", "classes": `(?:\pL?){400}`, "folded": "(?i)(?:[aé]?){500}c", "words": `(?:\b?a?é?){300}c`,
		"line": "(?-s)(?:.?){900}c", "few": "(?:a|é)*c",
	} {
		b.Run(name, func(b *testing.B) {
			e, err := New(text, Whole, Tenant())
			if err != nil {
				b.Fatal(err)
			}
			m, steps := new(Machine), 0
			for b.Loop() {
				budget := 64 << 10
				e.Match(m, input, &budget)
				steps += 64<<10 - budget
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
		})
	}
}
