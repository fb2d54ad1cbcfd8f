package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slugs are the fragments that lead to the headings of a document.
func slugs(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinksOfDocuments: a link to a file of the project leads somewhere, and its fragment to a heading.
func TestLinksOfDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	documents := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".md"):
			return nil
		}
		documents++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := filepath.Join(filepath.Dir(name), m[1])
			if m[1] == "" {
				to = name
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
			}
			if m[2] == "" || !strings.HasSuffix(to, ".md") {
				continue
			}
			if there, err := os.ReadFile(to); err != nil || !slugs(string(there))[m[2]] {
				t.Errorf("%s: %s has no heading for #%s", name, m[1], m[2])
			}
		}
		return nil
	})
	if err != nil || documents < 5 {
		t.Fatalf("%d documents, %v", documents, err)
	}
}

// documents are the pages of docs and docs/lab.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, folder := range []string{"docs", filepath.Join("docs", "lab")} {
		names, err := filepath.Glob(filepath.Join("..", "..", folder, "*.md"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s has %d pages, %v", folder, len(names), err)
		}
		all = append(all, names...)
	}
	return all
}

// TestDocumentsNameRealFiles: a path in backquotes that looks like one of ours
// exists.
func TestDocumentsNameRealFiles(t *testing.T) {
	ours := regexp.MustCompile("`((?:cmd|controller|routing|balancer|tlsmux|proxy|internal|bench|deploy|docs)/[a-z0-9_/.]*[a-z0-9])`")
	root := filepath.Join("..", "..")
	for _, name := range append(documents(t), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ours.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: %v", name, m[1], err)
			}
		}
	}
}

// TestArchitectureNamesEveryPackage: each package stands in the list of packages, by itself or in what is said of a package above it.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## Packages\n\n```\n")
	list, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no list of packages")
	}
	named, above := map[string]string{}, "" // what is said of each package; the folder that indented ones are in
	for line := range strings.Lines(list) {
		switch {
		case !strings.HasPrefix(line, " "):
			above, _, _ = strings.Cut(line, "/")
			named[above] = line
		case strings.HasPrefix(line, "   "):
			named[above] += line
		default:
			trees, said, _ := strings.Cut(strings.TrimSpace(line), "  ")
			for tree := range strings.SplitSeq(trees, ", ") {
				named[above+"/"+tree] = said
			}
		}
	}
	for _, f := range theModule(t).files {
		if f.pkg == "" || named[f.pkg] != "" || strings.Contains(f.pkg, "/internal/") {
			continue
		}
		tree := f.pkg
		for named[tree] == "" && strings.Contains(tree, "/") {
			tree = path.Dir(tree)
		}
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(path.Base(f.pkg)) + `\b`).MatchString(named[tree]) {
			t.Errorf("docs/architecture.md does not say what %s is for", f.pkg)
			named[f.pkg] = "said already"
		}
	}
}

// TestHackingListsEveryTarget: what make help prints stands in docs/hacking.md, and documents name no other targets.
func TestHackingListsEveryTarget(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	hacking, err := os.ReadFile(filepath.Join(root, "docs", "hacking.md"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = true
		if m[1] != "help" && !strings.Contains(string(hacking), "    make "+m[1]+" ") {
			t.Errorf("docs/hacking.md does not say what make %s does", m[1])
		}
	}
	for _, name := range append(documents(t), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "bench", "README.md"), filepath.Join(root, "deploy", "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^    |`)make ([a-z0-9-]+)(?:[^a-z0-9/-]|$)").FindAllStringSubmatch(string(text), -1) {
			if !targets[m[1]] {
				t.Errorf("%s names make %s, which is not there", name, m[1])
			}
		}
	}
}

// TestRecipesNameRealTests: each test that docs/hacking.md says fails when a place is forgotten exists.
func TestRecipesNameRealTests(t *testing.T) {
	exists := map[string]bool{}
	for name := range testFuncs(t) {
		_, name, _ = strings.Cut(name, ": ")
		exists[name] = true
	}
	_, recipes, _ := strings.Cut(readDoc(t, "hacking.md"), "## Recipes")
	named := regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+`).FindAllString(recipes, -1)
	if len(named) < 8 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, name := range named {
		if !exists[name] {
			t.Errorf("docs/hacking.md names %s, which does not exist", name)
		}
	}
}

// TestRulesNameRealTests checks that each row of "What cannot happen, and what makes it so" has
// three cells and that its tests exist.
func TestRulesNameRealTests(t *testing.T) {
	tests := testFuncs(t)
	_, section, _ := strings.Cut(readDoc(t, "architecture.md"), "\n## What cannot happen, and what makes it so\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rules := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| **") || strings.HasPrefix(line, "| cannot") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if rules++; len(cells) != 3 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("docs/architecture.md: there is no test %q", name)
			}
		}
	}
	if rules < 20 {
		t.Errorf("%d rules are found", rules)
	}
}

// TestSecurityModelNamesRealTests checks the tables of docs/security-model.md. Each row has three
// cells and names tests that exist, or planned tests that do not exist yet. A row that nothing
// stops yet names a planned test.
func TestSecurityModelNamesRealTests(t *testing.T) {
	tests, rows, table := testFuncs(t), 0, false
	for line := range strings.Lines(readDoc(t, "security-model.md")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "| reach | what stops it | test |":
			table = true
			continue
		case !strings.HasPrefix(line, "|"):
			table = false
			continue
		case !table || strings.HasPrefix(line, "|---"):
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if rows++; len(cells) != 3 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		anyPlanned := false
		for name := range strings.SplitSeq(cells[2], ",") {
			name, planned := strings.CutPrefix(strings.TrimSpace(name), "planned: ")
			anyPlanned = anyPlanned || planned
			if tests[name] == planned {
				t.Errorf("docs/security-model.md: test %q exists: %t, planned: %t", name, tests[name], planned)
			}
		}
		if strings.HasPrefix(strings.TrimSpace(cells[1]), "nothing yet") && !anyPlanned {
			t.Errorf("docs/security-model.md: no test is planned: %s", line)
		}
	}
	if rows < 50 {
		t.Errorf("%d rows are found", rows)
	}
}

// TestDecisionsHaveNumbers: each decision has a number of its own, the one that its heading says.
func TestDecisionsHaveNumbers(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "..", "docs", "decisions", "0*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d decisions, %v", len(names), err)
	}
	of := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		number, _, _ := strings.Cut(base, "-")
		if other := of[number]; other != "" {
			t.Errorf("%s and %s have the same number", other, base)
		}
		of[number] = base
		if !regexp.MustCompile(`^# 0*` + strings.TrimLeft(number, "0") + `[.:] `).Match(text) {
			t.Errorf("%s begins with %q", base, text[:min(len(text), 40)])
		}
	}
}
