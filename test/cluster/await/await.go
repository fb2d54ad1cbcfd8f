// Package await waits, in tests, for what other processes do.
package await

import (
	"testing"
	"time"
)

// pause is between two attempts of Eventually.
const pause = 20 * time.Millisecond

// Eventually tries until try returns nil. It fails the test with what and the last error when that takes longer than patience.
func Eventually(t testing.TB, patience time.Duration, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

// Must returns what passes on a value, and fails the test for an error.
func Must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
