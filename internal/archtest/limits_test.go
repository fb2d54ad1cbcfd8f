package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"turnout/internal/bound"
)

// limitColumns are those of each table of docs/limits.md: what, bound, at the bound, metric.
const limitColumns = 4

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

// readDoc is a document, by its path below docs.
func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// limitRows are the rows of the tables of limits, by "heading: first column", in order. Other tables than those that begin with the column
// "what" are left out.
func limitRows(t *testing.T, text string, columns int) (names []string, rows map[string][]string) {
	t.Helper()
	rows = map[string][]string{}
	heading, limits := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			heading, limits = line[3:], false
			continue
		case strings.HasPrefix(line, "| what |"):
			limits = true
			continue
		case !limits || !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---"):
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i, cell := range cells {
			if cells[i] = strings.TrimSpace(cell); cells[i] == "" {
				t.Errorf("%s: column %d is empty", line, i+1)
			}
		}
		name := heading + ": " + cells[0]
		if len(cells) != columns {
			t.Errorf("%s: %d columns, not %d", name, len(cells), columns)
			continue
		}
		if rows[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		names, rows[name] = append(names, name), cells
	}
	return names, rows
}

// TestLimitsAreTested: each row of docs/limits.md is complete, its flags and metrics exist, and docs/lab/limits.md has a row of the same
// name with tests that exist.
func TestLimitsAreTested(t *testing.T) {
	options, metrics, tests := readDoc(t, "options.md"), readDoc(t, "metrics.md"), testFuncs(t)
	flags, series := regexp.MustCompile("`(--[a-z0-9-]+)"), regexp.MustCompile("`((?:turnout|haproxy)_[a-z0-9_]+)")
	names, rows := limitRows(t, readDoc(t, "limits.md"), limitColumns)
	tested, testsOf := limitRows(t, readDoc(t, "lab/limits.md"), 2)
	if !slices.Equal(names, tested) {
		t.Errorf("docs/limits.md and docs/lab/limits.md do not have the same rows in the same order; the first has, the second not: %q; the reverse: %q",
			without(names, tested), without(tested, names))
	}
	for _, what := range names {
		cells := rows[what]
		if testsOf[what] != nil {
			for name := range strings.SplitSeq(testsOf[what][1], ",") {
				if name = strings.TrimSpace(name); !tests[name] {
					t.Errorf("%s: there is no test %q", what, name)
				}
			}
		}
		line := strings.Join(cells, "|")
		for _, m := range flags.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(options, "`"+m[1]) {
				t.Errorf("%s: %s is not in options.md", what, m[1])
			}
		}
		if !series.MatchString(cells[limitColumns-1]) {
			t.Errorf("%s: no metric shows it", what)
		}
		for _, m := range series.FindAllStringSubmatch(line, -1) {
			if !strings.Contains(metrics, "`"+m[1]+"`") {
				t.Errorf("%s: %s is not in metrics.md", what, m[1])
			}
		}
	}
	if len(names) < 100 {
		t.Errorf("only %d rows", len(names))
	}
}

// without is what of one list is not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// TestBoundsHaveRows: what turnout_bound_reached_total counts has a row in docs/limits.md and an action, and somebody counts it.
func TestBoundsHaveRows(t *testing.T) {
	text := readDoc(t, "limits.md")
	_, actions, _ := strings.Cut(text, "## A bound was reached\n")
	actions, _, _ = strings.Cut(actions, "\n## ")
	for _, n := range bound.All() {
		if !strings.Contains(text, `turnout_bound_reached_total{bound="`+n.String()+`"}`) {
			t.Errorf("bound %s has no row in docs/limits.md", n)
		}
		if !strings.Contains(actions, "`"+n.String()+"`") {
			t.Errorf("docs/limits.md does not say what to do when bound %s is reached", n)
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
