package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"turnout/internal/bound"
)

// limitColumns are those of each table of docs/limits.md.
const limitColumns = 7

// testFuncs are the tests, benchmarks left out, as "package: Name" is written in documents.
func testFuncs(t *testing.T) map[string]bool {
	tests := map[string]bool{}
	for _, f := range theModule(t).files {
		if !f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[f.pkg+": "+fn.Name.Name] = true
			}
		}
	}
	return tests
}

// TestLimitsAreTested: each row of docs/limits.md is complete, and its tests, flags and metrics exist.
func TestLimitsAreTested(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text, options, metrics, tests := read("limits.md"), read("options.md"), read("metrics.md"), testFuncs(t)
	flags, series := regexp.MustCompile("`(--[a-z0-9-]+)"), regexp.MustCompile("`((?:turnout|haproxy)_[a-z0-9_]+)")
	rows := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| what |") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		what := strings.TrimSpace(cells[0])
		if len(cells) != limitColumns {
			t.Errorf("%s: %d columns, not %d", what, len(cells), limitColumns)
			continue
		}
		for i, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("%s: column %d is empty", what, i+1)
			}
		}
		for name := range strings.SplitSeq(cells[limitColumns-1], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("%s: there is no test %q", what, name)
			}
		}
		for _, m := range flags.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(options, "`"+m[1]) {
				t.Errorf("%s: %s is not in options.md", what, m[1])
			}
		}
		if !series.MatchString(cells[limitColumns-2]) {
			t.Errorf("%s: no metric shows it", what)
		}
		for _, m := range series.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(metrics, "`"+m[1]+"`") {
				t.Errorf("%s: %s is not in metrics.md", what, m[1])
			}
		}
	}
	t.Logf("%d rows", rows)
}

// TestBoundsHaveRows: what turnout_bound_reached_total counts has a row in docs/limits.md, and somebody counts it.
func TestBoundsHaveRows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range bound.All() {
		if !strings.Contains(string(text), `turnout_bound_reached_total{bound="`+n.String()+`"}`) {
			t.Errorf("bound %s has no row in docs/limits.md", n)
		}
	}
	declared, counted := map[string]bool{}, map[string]bool{}
	for f := range theModule(t).production {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr: // of the list of names
				if key, ok := n.Key.(*ast.Ident); ok && f.pkg == "internal/bound" {
					declared[key.Name] = true
				}
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && id.Name == "bound" {
					counted[n.Sel.Name] = true
				}
			}
			return true
		})
	}
	if len(declared) != len(bound.All()) {
		t.Errorf("%d names of %d bounds", len(declared), len(bound.All()))
	}
	for name := range declared {
		if !counted[name] {
			t.Errorf("nobody counts bound.%s", name)
		}
	}
}
