package framing

import (
	"math/rand/v2"
	"testing"
)

// TestBodyIsCompleteOrBroken adds bytes at random, before and after the end. A body is complete
// exactly if it has the announced length at its end and nothing follows.
func TestBodyIsCompleteOrBroken(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		length := int64(r.IntN(6)) - 1
		var b Body
		b.Begin(length)
		sum, fits := int64(0), true
		for range r.IntN(5) {
			n := r.IntN(3)
			sum += int64(n)
			fits = fits && (length == Unknown || sum <= length)
			if got := b.Add(n); got != (fits || n == 0) {
				t.Fatalf("length %d, %d bytes: Add returned %v", length, sum, got)
			}
		}
		want := fits && (length == Unknown || sum == length)
		if got := b.End(); got != want || b.Complete() != want {
			t.Fatalf("length %d, %d bytes: End returned %v, Complete %v", length, sum, got, b.Complete())
		}
		if !b.Add(0) || b.Add(1) || b.Complete() {
			t.Fatalf("length %d: a byte was added after the end", length)
		}
	}
}

// TestMessageWithoutHeadTakesNothing checks that the zero Body accepts no bytes.
func TestMessageWithoutHeadTakesNothing(t *testing.T) {
	var b Body
	if b.Complete() || b.Add(1) || b.End() {
		t.Error("a message without a head has a body")
	}
}

// TestUnreportedBreachPanics checks that a nil Breach panics, so that a test without one fails.
func TestUnreportedBreachPanics(t *testing.T) {
	got := ""
	Breach(func(what string) { got = what }).Report("a")
	if got != "a" {
		t.Errorf("reported %q", got)
	}
	defer func() {
		if v := recover(); v != "BUG: b" {
			t.Errorf("panic %v", v)
		}
	}()
	Breach(nil).Report("b")
}
