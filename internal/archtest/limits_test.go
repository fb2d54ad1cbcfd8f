package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
