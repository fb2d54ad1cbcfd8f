package convert

import (
	"os"
	"strings"
	"testing"

	"turnout/controller/translate"
)

// TestEveryAnnotationIsConverted: of each annotation that the router reads it is known what becomes of it, and of no other; those that are lost are in the documentation.
func TestEveryAnnotationIsConverted(t *testing.T) {
	text, err := os.ReadFile("../../../docs/gateway-api.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, key := range translate.Annotations() {
		known[key] = true
		if annotated[key] == nil {
			t.Errorf("nobody knows what becomes of the annotation %s", key)
		}
		if _, name, _ := strings.Cut(key, "/"); !strings.Contains(string(text), "`"+name) && !strings.Contains(string(text), "`"+key) {
			t.Errorf("docs/gateway-api.md does not say what becomes of the annotation %s", key)
		}
	}
	for key := range annotated {
		if !known[key] {
			t.Errorf("no router reads the annotation %s", key)
		}
	}
}
