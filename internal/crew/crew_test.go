package crew

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestCrew: the first goroutine that ends unasked is a failure, those that are stopped give their errors, and who does not end
// is named and not waited for.
func TestCrew(t *testing.T) {
	failed := make(chan error, 1)
	c := New(failed)
	broken, late, hung := errors.New("broken"), errors.New("late"), make(chan struct{})
	c.Start("broken", func(context.Context) error { return broken })
	if err := <-failed; !errors.Is(err, broken) {
		t.Errorf("failed: %v", err)
	}
	c.Start("without an error", func(context.Context) error { return nil })
	if err := <-failed; err == nil {
		t.Error("a goroutine that ended by itself is no failure")
	}
	c.Start("obedient", func(ctx context.Context) error { <-ctx.Done(); return late })
	if left, err := c.Stop(time.Minute); len(left) > 0 || !errors.Is(err, late) {
		t.Errorf("left %v, %v", left, err)
	}

	c = New(failed)
	c.Start("hung", func(context.Context) error { <-hung; return nil })
	if left, err := c.Stop(time.Millisecond); !slices.Equal(left, []string{"hung"}) || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
	close(hung)
}

// TestLinger: what ends the wait, and with which error.
func TestLinger(t *testing.T) {
	over, failed := make(chan struct{}), make(chan error, 1)
	if err := Linger(0, nil, nil); err != nil {
		t.Error(err)
	}
	if err := Linger(time.Millisecond, over, failed); err != nil {
		t.Error(err)
	}
	want := errors.New("a package")
	failed <- want
	if err := Linger(time.Hour, over, failed); !errors.Is(err, want) {
		t.Error(err)
	}
	close(over)
	if err := Linger(time.Hour, over, failed); err != nil {
		t.Error(err)
	}
}
