package translate

import (
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	long := strings.Repeat("é", mostShown)
	for in, want := range map[string]string{
		"":                                "",
		"5s":                              "5s",
		"x -----BEGIN PRIVATE KEY----- y": "REDACTED",
		"a" + long:                        "a" + long[:mostShown-2] + "...",
	} {
		if got := Shown(in); got != want {
			t.Errorf("%.40q: %q, want %q", in, got, want)
		}
	}
}

// TestNotesAreShort: a value that cannot be used is not repeated at length, whatever its length, nor is a key.
func TestNotesAreShort(t *testing.T) {
	for _, value := range []string{strings.Repeat("x", 100_000), "-----BEGIN EC PRIVATE KEY-----\nsecret"} {
		a := annotations{values: map[string]string{annotationTimeout: value, annotationDisableCookies: value}}
		a.timespec(annotationTimeout, 0)
		a.bool(annotationDisableCookies)
		for _, note := range a.notes {
			if len(note) > 2*mostShown || strings.Contains(note, "secret") {
				t.Errorf("%d bytes: %.300s", len(note), note)
			}
		}
		if len(a.notes) != 2 {
			t.Errorf("%d notes", len(a.notes))
		}
	}
}
