package server

import (
	"testing"
	"time"
)

// TestCollectionsWhileRefusing: whether memory is free again is found out every two seconds, and only while it matters.
func TestCollectionsWhileRefusing(t *testing.T) {
	var c collections
	start := time.Now()
	for _, x := range []struct {
		at             time.Duration
		refusing, want bool
	}{
		{0, false, false}, {1 * time.Second, true, true}, {2 * time.Second, true, false}, {3 * time.Second, true, true},
		{4 * time.Second, false, false}, {10 * time.Second, false, false}, {10 * time.Second, true, true},
	} {
		if got := c.due(start.Add(x.at), x.refusing); got != x.want {
			t.Errorf("after %v, refusing %v: %v", x.at, x.refusing, got)
		}
	}
}
