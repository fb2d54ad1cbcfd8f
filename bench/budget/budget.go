// Package budget guards what a request costs in figures that do not depend on how busy the machine is: system calls, allocations, and
// instructions in user mode, of a router that does one thing at a time. They are compared with a file that is committed.
package budget

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
)

// cost is what a unit of a case costs.
type cost struct {
	Calls        map[string]float64 `json:"system_calls"`
	Allocations  float64            `json:"allocations"`
	Instructions float64            `json:"instructions"`
}

// budget is the file. Instructions mean something only to the same Go on the same kind of processor.
type budget struct {
	Go    string          `json:"go"`
	Arch  string          `json:"arch"`
	Cases map[string]cost `json:"cases"`
}

const (
	// tolerance is how much more than the budget is no excess.
	tolerance = 0.03
	// Rests of what happens once per connection, or as time passes, are no excess either.
	spareCalls       = 0.1
	spareAllocations = 0.1
	// rare is how many of a system call per unit are left out of the file.
	rare = 0.1
)

// exceeded says in which figures a case costs more than b allows, and in which so much less that the file should say so. Instructions
// are compared if the machine is the same.
func (b *budget) exceeded(name string, now cost, same bool) (worse, better []string) {
	was, ok := b.Cases[name]
	if !ok {
		return []string{name + " is not in the budget"}, nil
	}
	compare := func(what string, was, now, spare float64) {
		text := fmt.Sprintf("%s: %s were %.2f and are %.2f", name, what, was, now)
		switch {
		case now > was*(1+tolerance)+spare:
			worse = append(worse, text)
		case now < was*(1-tolerance)-spare:
			better = append(better, text)
		}
	}
	calls := maps.Clone(was.Calls)
	maps.Copy(calls, now.Calls)
	for _, call := range slices.Sorted(maps.Keys(calls)) {
		compare("system calls "+call, was.Calls[call], now.Calls[call], spareCalls)
	}
	compare("allocations", was.Allocations, now.Allocations, spareAllocations)
	if same {
		compare("instructions", was.Instructions, now.Instructions, 0)
	}
	return worse, better
}

func readBudget(path string) (*budget, error) {
	text, err := os.ReadFile(path)
	b := new(budget)
	if err == nil {
		err = json.Unmarshal(text, b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the budget: %w", err)
	}
	return b, nil
}

func (b *budget) write(path string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // it is committed
	}
	if err != nil {
		return fmt.Errorf("cannot write the budget: %w", err)
	}
	return nil
}
