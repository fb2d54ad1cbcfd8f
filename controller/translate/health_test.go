package translate

import (
	"testing"
	"time"
)

func TestFailureAnnotations(t *testing.T) {
	for _, c := range []struct {
		key, value string
		errors     int
		slow       time.Duration
		notes      int
	}{
		{annotationEjectErrors, "5", 5, 0, 0},
		{annotationEjectErrors, "0", 0, 0, 0},
		{annotationEjectErrors, "-1", 0, 0, 1},
		{annotationEjectErrors, "1001", 0, 0, 1},
		{annotationEjectErrors, "five", 0, 0, 1},
		{annotationSlowStart, "30s", 0, 30 * time.Second, 0},
		{annotationSlowStart, "soon", 0, 0, 1},
		{"other", "1", 0, 0, 0},
	} {
		got := translated(t, Options{}, terminated("edge", "", c.key, c.value))
		if got.Spec.EjectAfterErrors != c.errors || got.Spec.SlowStart != c.slow || len(got.Notes) != c.notes {
			t.Errorf("%s: %q: %d errors, slow start %v, notes %q", c.key, c.value, got.Spec.EjectAfterErrors, got.Spec.SlowStart, got.Notes)
		}
	}
	if got := translated(t, Options{Defaults: Defaults{CheckInterval: time.Minute}}, terminated("edge", "")); got.Spec.Check != time.Minute {
		t.Errorf("checked every %v, want the router's default", got.Spec.Check)
	}
}
