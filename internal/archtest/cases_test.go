package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// untested are the sentences of testdata/cases.txt that no test says, with the reason.
var untested = map[string]string{
	"write for edge: one file (cert)":                              noFiles,
	"write for reencrypt with destination CA: two files":           noFiles,
	"write for passthrough / unknown termination / no certs: none": noFiles,
	"second write when already saved: none":                        noFiles,
	"delete then commit: removed":                                  noFiles,
	"edge with certificate but no key: not written":                noFiles,
	"reload reply Success=1: ok":                                   "there is no reload, so nobody answers it",
	"reload reply other: error":                                    "there is no reload, so nobody answers it",
}

const noFiles = "certificates of routes are never written to files; they stand in the table"

// TestCasesAreTested: each sentence about what the HAProxy router does with HTTP/1.1, endpoints and weights stands in a string of a test,
// as the name of a row, or is named above with the reason why not. What follows it in the string says what is
// different here on purpose.
func TestCasesAreTested(t *testing.T) {
	var said strings.Builder
	for _, f := range theModule(t).files {
		if !f.test || f.pkg == "internal/archtest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					said.WriteString("\n" + text + "\n" + strings.ReplaceAll(text, "%%", "%"))
				}
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
		said.Write(text)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all, rows := said.String(), map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if rows[line] {
			t.Errorf("%q is there twice", line)
		}
		rows[line] = true
		switch reason, tested := untested[line], strings.Contains(all, line); {
		case tested && reason != "":
			t.Errorf("%q is tested, so %q is not true any more", line, reason)
		case !tested && reason == "":
			t.Errorf("%q is in no test", line)
		}
	}
	for line := range untested {
		if !rows[line] {
			t.Errorf("%q is not tested, and no case", line)
		}
	}
	if len(rows) < 250 {
		t.Errorf("only %d rows", len(rows))
	}
}
