package follow

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestKeeperLogsOnce: the same failure is logged once, until another one or a success comes between.
func TestKeeperLogsOnce(t *testing.T) {
	core, logged := observer.New(zap.ErrorLevel)
	k := keeper{log: zap.New(core), text: "it stays"}
	one, other := errors.New("one"), errors.New("other")
	for i, c := range []struct {
		err   error
		lines int
	}{{nil, 0}, {one, 1}, {one, 1}, {other, 2}, {one, 3}, {nil, 3}, {one, 4}} {
		if ok := k.keep(c.err); ok != (c.err == nil) || logged.Len() != c.lines {
			t.Errorf("look %d: %v, %d lines, want %d", i, ok, logged.Len(), c.lines)
		}
	}
	if logged.All()[0].Message != "it stays" {
		t.Errorf("logged %v", logged.All())
	}
}
