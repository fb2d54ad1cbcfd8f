package routing

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestTenantTextHasABound checks that each field that a tenant can define has a row in
// docs/limits.md. The row contains the client bytes that the field is compared with, and the limit
// of that work.
func TestTenantTextHasABound(t *testing.T) {
	text, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Places where tenant text meets client bytes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("docs/limits.md has no section about places")
	}
	listed := map[string]int{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("%s: a row has fields, bytes, work and bound", line)
			continue
		}
		for _, m := range regexp.MustCompile("`([A-Za-z]+\\.[A-Za-z0-9]+)`").FindAllStringSubmatch(cells[0], -1) {
			listed[m[1]]++
		}
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[RuleSpec](), reflect.TypeFor[Match](), reflect.TypeFor[Policy](), reflect.TypeFor[BackendSpec](), reflect.TypeFor[MirrorSpec](),
		reflect.TypeFor[RetrySpec](), reflect.TypeFor[ClientAuthSpec](), reflect.TypeFor[ListenerSpec](),
	} {
		for f := range of.Fields() {
			name := of.Name() + "." + f.Name
			if listed[name] != 1 {
				t.Errorf("%s is in %d rows of the places where tenant text meets client bytes, want 1", name, listed[name])
			}
			delete(listed, name)
		}
	}
	for name := range listed {
		t.Errorf("docs/limits.md has a row for %s, which does not exist", name)
	}
}
