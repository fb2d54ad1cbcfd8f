package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestLinksOfDocuments: a link to a file of the project leads somewhere.
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
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
			}
		}
		return nil
	})
	if err != nil || documents < 5 {
		t.Fatalf("%d documents, %v", documents, err)
	}
}

// TestDocumentsNameRealFiles: a path in backquotes that looks like one of ours
// exists. What is announced for later stands without backquotes or in later.
func TestDocumentsNameRealFiles(t *testing.T) {
	later := map[string]bool{"proxy/h2": true}
	path := regexp.MustCompile("`((?:cmd|controller|routing|balancer|tlsmux|proxy|internal|bench|deploy|docs)/[a-z0-9_/.]*[a-z0-9])`")
	names, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CONTRIBUTING.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range path.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("..", "..", m[1])); err != nil && !later[m[1]] {
				t.Errorf("%s names %s: %v", name, m[1], err)
			}
		}
	}
}
