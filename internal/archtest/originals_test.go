package archtest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// originals are the cases of a package, by function and name: each call of it(t, NAME, ...)
// within a test is one, and each test without such calls.
func originals(t *testing.T, pkg string) map[[2]string]bool {
	t.Helper()
	found := map[[2]string]bool{}
	for _, f := range theModule(t).files {
		if f.pkg != pkg {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			names := its(fn)
			if names == nil {
				names = []string{fn.Name.Name}
			}
			for _, name := range names {
				found[[2]string{fn.Name.Name, name}] = true
			}
		}
	}
	return found
}

// its are the names that a function gives to the function it.
func its(fn *ast.FuncDecl) []string {
	var names []string
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 3 {
			return true
		}
		if id, ok := call.Fun.(*ast.Ident); !ok || id.Name != "it" {
			return true
		}
		if lit, ok := call.Args[1].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if name, err := strconv.Unquote(lit.Value); err == nil {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

// TestOriginalsHaveRows: docs/cases.md has a row for each case of OpenShift's suites that runs
// here, and each of its rows has a test; those that differ are in docs/differences.md, and no
// others.
func TestOriginalsHaveRows(t *testing.T) {
	tests, differ := originals(t, "test/cluster/origin"), map[string]bool{}
	rows := map[[2]string]bool{}
	for line := range strings.Lines(readDoc(t, "cases.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "-") || strings.TrimSpace(cells[0]) == "case" {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		row := [2]string{cells[1], cells[0]}
		if rows[row] {
			t.Errorf("docs/cases.md has %s twice", cells[0])
		}
		if rows[row] = true; !tests[row] {
			t.Errorf("docs/cases.md: there is no case %q in %s", cells[0], cells[1])
		}
		switch cells[3] {
		case "differs":
			differ[cells[0]] = true
		case "same":
		default:
			t.Errorf("docs/cases.md: %q is compared as %q, want same or differs", cells[0], cells[3])
		}
	}
	for row := range tests {
		if !rows[row] {
			t.Errorf("docs/cases.md has no row for the case %q of %s", row[1], row[0])
		}
	}
	if len(rows) < 100 {
		t.Errorf("%d rows", len(rows))
	}
	_, section, _ := strings.Cut(readDoc(t, "differences.md"), "\n## Cases of OpenShift's own suites\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]bool{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 3 && !strings.HasPrefix(cells[0], "-") {
			said[strings.TrimSpace(cells[0])] = true
		}
	}
	delete(said, "case")
	for name := range differ {
		if !said[name] {
			t.Errorf("docs/differences.md does not say how %q differs", name)
		}
	}
	for name := range said {
		if !differ[name] {
			t.Errorf("docs/differences.md says that %q differs, docs/cases.md does not", name)
		}
	}
}
