package controller

import (
	"testing"
	"time"
)

// TestTiming: each table counts, and of later changes how long they took to be served.
func TestTiming(t *testing.T) {
	var s timing
	s.published(time.Second, time.Millisecond)
	s.published(time.Second, time.Millisecond)
	s.propagated(20 * time.Millisecond)
	if s.t.Tables != 2 || s.t.Compile != 2*time.Second || s.t.Publish != 2*time.Millisecond || s.t.Propagation.Count() != 1 {
		t.Errorf("%+v", &s.t)
	}
}
