package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// The caps of the house rules, in lines.
const (
	maxFile     = 500
	maxTestFile = 700
	maxFunction = 80
	maxMain     = 2000 // package main without tests
)

func TestFileSizes(t *testing.T) {
	for _, f := range theModule(t).files {
		limit := maxFile
		if f.test {
			limit = maxTestFile
		}
		if f.lines > limit && !excused(t, "file", f.path) {
			t.Errorf("%s has %d lines, at most %d: a file is read in one sitting", f.path, f.lines, limit)
		}
	}
}

// TestMainIsWiring: package main has flags, environment and wiring, and the substance is in packages that can be imported.
func TestMainIsWiring(t *testing.T) {
	lines := 0
	for f := range theModule(t).production {
		if strings.HasPrefix(f.path, "cmd/turnout/") {
			lines += f.lines
		}
	}
	if lines == 0 || lines > maxMain {
		t.Errorf("cmd/turnout has %d lines without tests, at most %d", lines, maxMain)
	}
}

func TestFunctionSizes(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			lines := m.set.Position(fn.End()).Line - m.set.Position(fn.Pos()).Line + 1
			if lines > maxFunction && !excused(t, "function", f.path+" "+nameOf(fn)) {
				t.Errorf("%s: %s has %d lines, at most %d: a function does one thing", m.at(fn), nameOf(fn), lines, maxFunction)
			}
		}
	}
}

// nameOf is "F" or "T.M".
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	return receiver(fn.Recv.List[0].Type) + "." + fn.Name.Name
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func TestNoInit(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init(): cmd wires everything by hand; nothing happens by being imported", m.at(fn))
			}
		}
	}
}

// TestNoGlobalState: a package-level variable may be a table, a pattern, an error
// or an embedded file, all of which nobody changes; anything that starts empty or
// is made at run time is state.
func TestNoGlobalState(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		for _, d := range f.syntax.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			embedded := g.Doc != nil && strings.Contains(commentText(g.Doc), "//go:embed")
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if name.Name == "_" || embedded || (i < len(v.Values) && isConstant(v.Values[i])) {
						continue
					}
					if !excused(t, "global", f.path+" "+name.Name) {
						t.Errorf("%s: %s is global state: each package gets its state from its constructor", m.at(v), name.Name)
					}
				}
			}
		}
	}
}

func commentText(g *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

// isConstant accepts literals and calls that make values nobody changes.
func isConstant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.CompositeLit, *ast.BinaryExpr, *ast.FuncLit, *ast.SelectorExpr, *ast.Ident:
		return true
	case *ast.UnaryExpr:
		_, literal := e.X.(*ast.CompositeLit)
		return literal || e.Op != token.AND
	case *ast.CallExpr:
		switch fn := e.Fun.(type) {
		case *ast.SelectorExpr:
			name := fn.Sel.Name
			return strings.HasPrefix(name, "Must") || name == "New" || name == "Errorf" || name == "NewReplacer" || name == "AddrFrom4"
		case *ast.ArrayType:
			return true // []byte("...")
		case *ast.FuncLit:
			return true // a table computed in place
		case *ast.Ident:
			return fn.Name != "make" && fn.Name != "new"
		}
	}
	return false
}

func TestExportedNamesAreDocumented(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) && !saysItself(d.Name.Name)) {
					documented(t, m, d, nameOf(d), d.Doc)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.IsExported() {
							documented(t, m, s, s.Name.Name, d.Doc, s.Doc, s.Comment)
						}
					case *ast.ValueSpec:
						for _, n := range s.Names {
							if n.IsExported() {
								documented(t, m, s, n.Name, d.Doc, s.Doc, s.Comment)
							}
						}
					}
				}
			}
		}
	}
}

// saysItself: methods of the language's own interfaces.
func saysItself(method string) bool {
	return method == "Error" || method == "String" || method == "Unwrap"
}

func documented(t *testing.T, m *module, n ast.Node, name string, docs ...*ast.CommentGroup) {
	t.Helper()
	for _, d := range docs {
		if d != nil && strings.TrimSpace(d.Text()) != "" {
			return
		}
	}
	t.Errorf("%s: %s has no doc comment: what, unit, zero value, who owns the memory, which errors", m.at(n), name)
}

func TestPackagesAreDocumented(t *testing.T) {
	m := theModule(t)
	has, all := map[string]bool{}, map[string]bool{}
	for f := range m.production {
		all[f.pkg] = true
		if f.syntax.Doc != nil {
			has[f.pkg] = true
		}
	}
	for pkg := range all {
		if !has[pkg] {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// TestNoSkips: a test that does not run does not count. Missing tools of the host
// are the one reason, listed as exceptions.
func TestNoSkips(t *testing.T) {
	m := theModule(t)
	for _, f := range m.files {
		if !f.test || within(f.pkg, "internal/archtest") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && (sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf" || sel.Sel.Name == "SkipNow") && !excused(t, "skip", f.path) {
				t.Errorf("%s: a skipped test does not count", m.at(n))
			}
			return true
		})
	}
}

// TestNoSleeps: tests wait for events.
func TestNoSleeps(t *testing.T) {
	m := theModule(t)
	for _, f := range m.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == "time" && !excused(t, "sleep", f.path) {
				t.Errorf("%s: time.Sleep: wait for an event instead", m.at(n))
			}
			return true
		})
	}
}

// TestExpressionsHaveOneConstructor checks that only internal/expression compiles texts of tenants
// and options. That package limits the text and gives matching a budget. Package regexp is for
// patterns written in the program, outside the request path.
func TestExpressionsHaveOneConstructor(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		if withinAny(f.pkg, []string{"internal/expression", "bench", "test", "deploy"}) {
			continue
		}
		// proxy/identity needs the type of errors.
		if slices.Contains(f.imports, "regexp/syntax") && f.pkg != "proxy/identity" {
			t.Errorf("%s imports regexp/syntax: expressions are parsed by internal/expression", f.path)
		}
		if !slices.Contains(f.imports, "regexp") {
			continue
		}
		if withinAny(f.pkg, []string{"routing", "proxy", "tlsmux", "balancer", "internal/server"}) {
			t.Errorf("%s imports regexp: the request path matches by internal/expression", f.path)
		}
		constant := map[ast.Expr]bool{}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 {
				literal, ok := call.Args[0].(*ast.BasicLit)
				fn, named := call.Fun.(*ast.SelectorExpr)
				constant[call.Fun] = ok && literal.Kind == token.STRING && named && fn.Sel.Name == "MustCompile"
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := s.X.(*ast.Ident); ok && id.Name == "regexp" && s.Sel.Name != "Regexp" && !constant[s] {
					t.Errorf("%s: regexp.%s of a text that is not constant: use internal/expression", m.at(s), s.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestRefusedWorkIsNotDone checks that code looks at the result of work.Account.Spend. Operations
// that take place in any case use Charge.
func TestRefusedWorkIsNotDone(t *testing.T) {
	m := theModule(t)
	for f := range m.production {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.ExprStmt); ok {
				call, _ := s.X.(*ast.CallExpr)
				if call == nil {
					return true
				}
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok && (fn.Sel.Name == "Spend" || fn.Sel.Name == "Spare") {
					t.Errorf("%s: the result of %s is ignored: use Charge for what takes place in any case", m.at(s), fn.Sel.Name)
				}
			}
			return true
		})
	}
}
