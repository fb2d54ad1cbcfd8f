package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttacksAreTested: the tests that docs/lab/http2.md names for each attack exist.
func TestAttacksAreTested(t *testing.T) {
	tests := map[string]bool{}
	for _, f := range theModule(t).files {
		if !f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[f.pkg+"."+fn.Name.Name] = true
			}
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "lab", "http2.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Attack | Outcome | Tests |")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") {
			continue
		}
		rows++
		for name := range strings.SplitSeq(cells[2], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("%s: there is no test %s", strings.TrimSpace(cells[0]), name)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d rows", rows)
	}
}
