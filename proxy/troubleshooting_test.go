package proxy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachReasonIsExplained: each reason has an anchor in docs/troubleshooting.md, which links of the access log and of explain lead to, and a text
// with something to do, and nothing else has one there.
func TestEachReasonIsExplained(t *testing.T) {
	text, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, reasons, ok := strings.Cut(string(text), "\n## Reasons\n")
	if !ok {
		t.Fatal("no section about reasons")
	}
	var anchors, want []string
	for _, section := range strings.Split(reasons, "\n### ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		anchors = append(anchors, name)
		if len(strings.TrimSpace(body)) < 40 {
			t.Errorf("%s: nothing is said", name)
		}
	}
	for _, r := range Reasons() {
		want = append(want, r.String())
	}
	slices.Sort(anchors)
	slices.Sort(want)
	if !slices.Equal(anchors, want) {
		t.Errorf("anchors are\n%v\nreasons are\n%v", anchors, want)
	}
	// The symptoms lead somewhere.
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		headings[strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if !headings[m[1]] {
			t.Errorf("a link leads to #%s, which is not there", m[1])
		}
	}
	for _, symptom := range []string{"503", "502", "504", "empty reply", "redirect loop", "wrong certificate", "slow", "memory", "WebSockets drop"} {
		if !regexp.MustCompile("(?m)^\\| " + symptom + " \\| .*`.+`").Match(text) {
			t.Errorf("no command for the symptom %q", symptom)
		}
	}
}
