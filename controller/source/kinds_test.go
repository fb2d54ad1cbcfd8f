package source

import "testing"

// TestMisspeltKind: a kind that is nearly known gets a suggestion.
func TestMisspeltKind(t *testing.T) {
	for kind, want := range map[string]string{
		"Rotue":      "kind Rotue of v1 is not known; did you mean Route?",
		"Deployment": "kind Deployment of v1 is not known",
	} {
		_, findings := Decode(Document{Number: 1, Line: 1, Data: []byte("apiVersion: v1\nkind: " + kind + "\nmetadata: {name: a}\n")})
		if len(findings) != 1 || findings[0].Reason != want {
			t.Errorf("%v, want %q", findings, want)
		}
	}
}
