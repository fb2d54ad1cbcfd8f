package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// source is one Go file of the module, whatever system it is built for.
type source struct {
	path    string // from the module's root, with slashes
	pkg     string // folder of path, "." for the root
	test    bool
	lines   int
	syntax  *ast.File
	imports []string
}

// module is every Go file, parsed once for all tests.
type module struct {
	set   *token.FileSet
	files []source
}

var load = sync.OnceValues(func() (*module, error) {
	root := filepath.Join("..", "..")
	m := &module{set: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f := source{path: filepath.ToSlash(rel), test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(string(text), "\n")}
		f.pkg = path.Dir(f.path)
		if f.syntax, err = parser.ParseFile(m.set, f.path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		for _, i := range f.syntax.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, p)
		}
		m.files = append(m.files, f)
		return nil
	})
	return m, err
})

// theModule fails the test when a file does not parse.
func theModule(t *testing.T) *module {
	t.Helper()
	m, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.files) < 20 {
		t.Fatalf("only %d Go files found", len(m.files))
	}
	return m
}

// production is every file that is not a test.
func (m *module) production(yield func(source) bool) {
	for _, f := range m.files {
		if !f.test && !yield(f) {
			return
		}
	}
}

// at is the place of a node, for messages.
func (m *module) at(n ast.Node) string { return m.set.Position(n.Pos()).String() }

// within says whether pkg is package or lies below it.
func within(pkg, tree string) bool { return pkg == tree || strings.HasPrefix(pkg, tree+"/") }

// withinAny is within for several packages.
func withinAny(pkg string, trees []string) bool {
	for _, r := range trees {
		if within(pkg, r) {
			return true
		}
	}
	return false
}
