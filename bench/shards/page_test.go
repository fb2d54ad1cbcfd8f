package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var lab = filepath.Join("..", "..", "docs", "lab")

// TestPageIsThatOfTheResults: docs/lab/shards.md and its pictures were made of docs/lab/shards.json as it is, which has each strategy.
func TestPageIsThatOfTheResults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(lab, "shards.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results []Result
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, r := range results {
		i := slices.IndexFunc(cases(), func(c strategyCase) bool { return c.name == r.Strategy })
		if i <= last || r.Size != cases()[i].size && (r.Size.Routes < 20_000 || r.Size.Routers != tenth.Routers) {
			t.Errorf("%s with %+v", r.Strategy, r.Size)
		}
		last = i
	}
	if len(results) == 0 || results[0].Size != large {
		t.Error("no strategy was simulated at full size")
	}
	made := t.TempDir()
	if err := publish(made, results); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(made)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, err := os.ReadFile(filepath.Join(made, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(lab, f.Name()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/lab/%s is not that of shards.json, %v: go run ./bench/shards -draw", f.Name(), err)
		}
	}
	if again, err := encode(results); err != nil || !bytes.Equal(again, text) {
		t.Errorf("shards.json is not as the program writes it, %v", err)
	}
}

// TestPageHasTheFigures: a result's figures stand in their columns.
func TestPageHasTheFigures(t *testing.T) {
	r := Result{
		Strategy: "RoundRobin", About: "as it is", Size: size{Routes: 1_000_000, Routers: 1000, Lost: 10, Added: 100, Writes: 1000},
		Phases: []Phase{
			{Name: "all placed", Minutes: 50, Moves: 1_000_000, Writes: 2_700_000, Spread: sample{50, 1.5, 0.25, 2, 0.5}},
			{Name: "10 lost", From: 50, Minutes: 3, Moves: 10_029, Least: 10_000, Spread: sample{53, 1, 0, 1, 0}},
			{Name: "100 added", From: 53, Minutes: 300, Moves: 91_743, Least: 91_000, Spread: sample{353, 1, 0, 1, 0}},
		},
		MostWrites: 1000, UnderWay: 0.0914, Heap: 900, Planner: 400, RSS: 1000, Seconds: 200,
		Samples: []sample{{1, 2, 0.5, 3, 0.6}, {20, 1.5, 0.25, 2, 0.5}, {353, 1, 0, 1, 0}},
	}
	text := string(page([]Result{r}))
	for _, row := range []string{
		"| RoundRobin | 1,000,000 × 1,000 | 50.0 min | 10: 3.0 min | 10,029 | 10,000 | 100: 5.0 h | 91,743 | 91,000 | 900 | 1,000 | 9.1 % |",
		"| RoundRobin | routes | 1.500 | 0.250 | 1.000 | 0.000 | 1.000 | 0.000 |",
		"| RoundRobin | requests | 2.000 | 0.500 | 1.000 | 0.000 | 1.000 | 0.000 |",
		"| RoundRobin | 900 | 400 | 1,000 | 419 | 200 s |",
		"RoundRobin: as it is.",
		"(shards-roundrobin.svg)",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("no %s in\n%s", row, text)
		}
	}
	var b bytes.Buffer
	if err := picture(&b, &r); err != nil || !strings.Contains(b.String(), "Gini coefficient") || !strings.Contains(b.String(), "100 added") {
		t.Errorf("%v, %s", err, b.String())
	}
	r.Samples = nil
	if err := picture(&b, &r); err == nil {
		t.Error("nothing is drawn")
	}
}

func TestThereIsNoSuchStrategy(t *testing.T) {
	for _, args := range [][]string{{"-only", "Guess", "-result", filepath.Join(t.TempDir(), "x")}, {"-nothing"}} {
		if err := run(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
