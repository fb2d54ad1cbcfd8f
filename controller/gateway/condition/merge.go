// Package condition makes the conditions of a status of the Gateway API, and merges a status that is wanted with the one that is there:
// what others wrote stays, in its order and with its times. Its functions are pure.
package condition

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Merge returns the conditions have with those of want in them, and whether that is a change. Conditions of types that are in neither want
// nor owned stay; those of owned types that are not wanted go. A condition that was written for a later generation stays, because what wants
// another has not seen the object as it is. The time of a transition is now where the status changes, else that of have.
func Merge(have, want []metav1.Condition, owned []string, now metav1.Time) ([]metav1.Condition, bool) {
	merged := make([]metav1.Condition, 0, max(len(have), len(want)))
	changed := false
	for _, c := range have {
		i := slices.IndexFunc(want, func(w metav1.Condition) bool { return w.Type == c.Type })
		switch {
		case i >= 0:
			next := updated(c, want[i], now)
			changed = changed || next != c
			merged = append(merged, next)
		case slices.Contains(owned, c.Type):
			changed = true
		default:
			merged = append(merged, c)
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(have, func(c metav1.Condition) bool { return w.Type == c.Type }) {
			w.LastTransitionTime = now
			merged, changed = append(merged, w), true
		}
	}
	return merged, changed
}

// updated is the condition c after w is written over it.
func updated(c, w metav1.Condition, now metav1.Time) metav1.Condition {
	if c.ObservedGeneration > w.ObservedGeneration {
		return c
	}
	w.LastTransitionTime = c.LastTransitionTime
	if c.Status != w.Status {
		w.LastTransitionTime = now
	}
	return w
}
