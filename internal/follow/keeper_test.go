package follow

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnout/internal/problem"
)

// TestKeeperLogsOnce: the same failure is logged once, until another one or a success comes between.
func TestKeeperLogsOnce(t *testing.T) {
	core, logged := observer.New(zap.ErrorLevel)
	problems := problem.NewList()
	k := keeper{log: zap.New(core), problems: problems, file: "a", text: "it stays"}
	one, other := errors.New("one"), errors.New("other")
	for i, c := range []struct {
		err   error
		lines int
	}{{nil, 0}, {one, 1}, {one, 1}, {other, 2}, {one, 3}, {nil, 3}, {one, 4}} {
		if ok := k.keep(c.err); ok != (c.err == nil) || logged.Len() != c.lines {
			t.Errorf("look %d: %v, %d lines, want %d", i, ok, logged.Len(), c.lines)
		}
		var texts []string
		all, _ := problems.All("", 0)
		for p := range all {
			texts = append(texts, p.File+" "+p.Text)
		}
		if want := fmt.Sprintf("a it stays: %v", c.err); c.err == nil && texts != nil || c.err != nil && !slices.Equal(texts, []string{want}) {
			t.Errorf("look %d: problems are %q", i, texts)
		}
	}
	if logged.All()[0].Message != "it stays" {
		t.Errorf("logged %v", logged.All())
	}
}
