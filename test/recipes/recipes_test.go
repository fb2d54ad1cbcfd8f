// Package recipes holds docs/hacking.md to its word: what a recipe says has to be changed for one more metric or annotation is
// enough, and all of it is needed. It makes the change in a copy of the module and runs the tests there that compare lists.
package recipes

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is that of the module.
const root = "../.."

// insertion is text that comes after the first line of a file that contains another; a file that is not there is made of it.
type insertion struct{ row, file, behind, text string }

// addition is one more of what a recipe is about.
type addition struct {
	recipe   string // its heading
	places   []insertion
	leftOut  map[string]string // rows of the recipe that do not apply, with the reason
	packages []string          // whose tests find what is missing
}

func TestRecipes(t *testing.T) {
	module, packages := t.TempDir(), []string{"test", "-short"}
	if err := copyModule(module); err != nil {
		t.Fatal(err)
	}
	for _, a := range []addition{metric, annotation} {
		a.compare(t)
		for _, p := range a.places {
			p.make(t, module)
		}
		packages = append(packages, a.packages...)
	}
	run(t, module, "build", "./...")
	run(t, module, packages...)
}

// compare holds the places to the rows of the recipe: each row is followed or left out for a reason, and no place is in none.
func (a addition) compare(t *testing.T) {
	t.Helper()
	followed := map[string]bool{}
	for _, p := range a.places {
		followed[p.row] = true
	}
	rows := rowsOf(t, a.recipe)
	for _, row := range rows {
		if _, out := a.leftOut[row]; out == followed[row] {
			t.Errorf("docs/hacking.md has the place %q: followed %v, left out %v", row, followed[row], out)
		}
	}
	for row := range followed {
		if !slices.Contains(rows, row) {
			t.Errorf("%q had to be changed, and docs/hacking.md does not have it", row)
		}
	}
	for row := range a.leftOut {
		if !slices.Contains(rows, row) {
			t.Errorf("%q is left out, and docs/hacking.md does not have it", row)
		}
	}
}

// rowsOf returns the first column of the table under a heading of docs/hacking.md.
func rowsOf(t *testing.T, recipe string) (rows []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "hacking.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n**"+recipe+"**\n")
	_, rest, found := strings.Cut(rest, "\n|---|---|---|\n")
	if !found {
		t.Fatalf("docs/hacking.md has no recipe %q", recipe)
	}
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			return rows
		}
		rows = append(rows, strings.TrimSpace(cells[1]))
	}
	return rows
}

func (p insertion) make(t *testing.T, module string) {
	t.Helper()
	name := filepath.Join(module, filepath.FromSlash(p.file))
	text, err := os.ReadFile(name)
	if err != nil && p.behind != "" {
		t.Fatal(err)
	}
	at := strings.Index(string(text), p.behind)
	if at < 0 {
		t.Fatalf("%s does not contain %q any more", p.file, p.behind)
	}
	if p.behind != "" {
		at += strings.Index(string(text[at:]), "\n") + 1
	}
	if err := os.WriteFile(name, slices.Concat(text[:at], []byte(p.text+"\n"), text[at:]), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyModule copies what the tests of the module read.
func copyModule(to string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == ".git" || name == filepath.Join(root, "bin")):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		within, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, within)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

// run runs the go command in the changed module, without paths in what it builds: else nothing that was built for another directory
// would fit.
func run(t *testing.T, module string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", slices.Insert(args, 1, "-trimpath")...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
