package reactor

import "testing"

// TestPipesThatNobodyNeeds: what was needed since the last look stays, and the rest is closed, and its descriptors are given back.
func TestPipesThatNobodyNeeds(t *testing.T) {
	e := &epollEngine{budget: NewBudget(BudgetConfig{Descriptors: 1000})}
	use := func(n int) {
		t.Helper()
		var used []*pipe
		for range n {
			p, err := e.getPipe()
			if err != nil {
				t.Fatal(err)
			}
			used = append(used, p)
		}
		for _, p := range used {
			e.putPipe(p, 0)
		}
	}
	use(5)
	for _, look := range []struct {
		needed, kept int
	}{{0, 5}, {2, 2}, {2, 2}, {0, 0}, {0, 0}} {
		use(look.needed)
		e.trimPipes()
		if len(e.pipes) != look.kept {
			t.Errorf("%d pipes are kept after %d were needed, want %d", len(e.pipes), look.needed, look.kept)
		}
		if got := e.budget.dialled.Load(); got != int64(look.kept*pipeDescriptors) {
			t.Errorf("%d descriptors are spent on %d pipes", got, look.kept)
		}
	}
}
