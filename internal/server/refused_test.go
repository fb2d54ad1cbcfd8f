package server

import (
	"testing"
	"time"
)

// TestRefusalsDoNotFillTheLog: of many refused clients one in a second is logged, and with the next how many were not.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	var r refusals
	start := time.Now()
	for _, tt := range []struct {
		after    time.Duration
		unlogged int64
		log      bool
	}{
		{0, 0, true},
		{0, 0, false},
		{refusalPause - 1, 0, false},
		{refusalPause, 2, true},
		{refusalPause, 0, false},
		{5 * refusalPause, 1, true},
		{6 * refusalPause, 0, true},
	} {
		if unlogged, log := r.refuse(start.Add(tt.after)); unlogged != tt.unlogged || log != tt.log {
			t.Errorf("after %v: logged %v, %d unlogged; want %v, %d", tt.after, log, unlogged, tt.log, tt.unlogged)
		}
	}
}
