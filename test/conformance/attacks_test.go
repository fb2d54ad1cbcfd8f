package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedFile = regexp.MustCompile("`((?:rfc|proxy-)[a-z0-9.-]+\\.txt)`")
	namedTest = regexp.MustCompile(`([a-z0-9/]+): ((?:Test|Fuzz)[A-Za-z0-9]+)`)
)

// TestAttacksAreDocumented compares docs/lab/attacks.md with the conversations and tests there are.
func TestAttacksAreDocumented(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "lab", "attacks.md"))
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for name := range readConversations(t) {
		left[name] = true
	}
	known := len(left)
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack ") {
			continue
		}
		files, tests := namedFile.FindAllStringSubmatch(line, -1), namedTest.FindAllStringSubmatch(line, -1)
		if len(files)+len(tests) == 0 {
			t.Errorf("nothing shows: %s", line)
		}
		for _, m := range files {
			if !left[m[1]] && !named[m[1]] {
				t.Errorf("%s does not exist", m[1])
			}
			named[m[1]] = true
			delete(left, m[1])
		}
		for _, m := range tests {
			if !hasTest(t, filepath.Join(root, filepath.FromSlash(m[1])), m[2]) {
				t.Errorf("%s has no %s", m[1], m[2])
			}
		}
	}
	for name := range left {
		t.Errorf("%s is in no row of docs/lab/attacks.md", name)
	}
	if known < 20 || len(named) < 20 {
		t.Errorf("%d conversations, %d of them named", known, len(named))
	}
}

// hasTest reports that a package has a test.
func hasTest(t *testing.T, tree, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tree, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
