package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// untested are the rows of testdata/cases.txt that no test names, with the reason.
var untested = map[string]string{
	"C906": noFiles, "C907": noFiles, "C908": noFiles, "C909": noFiles, "C911": noFiles, "C912": noFiles,
	"C913": "there is no reload, so nobody answers it", "C914": "there is no reload, so nobody answers it",
}

const noFiles = "certificates of routes are never written to files; they stand in the table"

var caseID = regexp.MustCompile(`\bC[0-9]{3,4}\b`)

// TestCasesAreTested: each row of HTTP/1.1, of endpoints and of weights that the HAProxy router is known by is the
// row of a test, which names it in a string, or is named above with the reason why it is not.
func TestCasesAreTested(t *testing.T) {
	tested := map[string]bool{}
	note := func(text string) {
		for _, id := range caseID.FindAllString(text, -1) {
			tested[id] = true
		}
	}
	for _, f := range theModule(t).files {
		if !f.test || f.pkg == "internal/archtest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				note(lit.Value)
			}
			return true
		})
	}
	conversations, err := filepath.Glob(filepath.Join("..", "..", "test", "conformance", "testdata", "*.txt"))
	if err != nil || len(conversations) == 0 {
		t.Fatalf("%d conversations, %v", len(conversations), err)
	}
	for _, name := range conversations {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		note(string(text))
	}
	text, err := os.ReadFile(filepath.Join("testdata", "cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, id := range strings.Fields(line) {
			rows++
			switch reason, excused := untested[id]; {
			case tested[id] && excused:
				t.Errorf("%s is tested, so %q is not true any more", id, reason)
			case !tested[id] && !excused:
				t.Errorf("%s is in no test", id)
			}
		}
	}
	if rows < 250 {
		t.Errorf("only %d rows", rows)
	}
}
