package server

import (
	"testing"
	"time"
)

// TestRefusalsDoNotFillTheLog: of many refused clients one in a second is told, and with the next how many were not.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	var r refusals
	start := time.Now()
	for _, tt := range []struct {
		after  time.Duration
		untold int64
		tell   bool
	}{
		{0, 0, true},
		{0, 0, false},
		{refusalPause - 1, 0, false},
		{refusalPause, 2, true},
		{refusalPause, 0, false},
		{5 * refusalPause, 1, true},
		{6 * refusalPause, 0, true},
	} {
		if untold, tell := r.next(start.Add(tt.after)); untold != tt.untold || tell != tt.tell {
			t.Errorf("after %v: told %v, %d untold; want %v, %d", tt.after, tell, untold, tt.tell, tt.untold)
		}
	}
}
