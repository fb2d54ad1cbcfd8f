package main

import (
	"flag"
	"os"
	"regexp"
	"testing"
)

// TestMakefileRunsScenarios: each scenario has a target, and each target a scenario.
func TestMakefileRunsScenarios(t *testing.T) {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`\./bench/run ([a-z]+)`).FindAllStringSubmatch(string(text), -1) {
		targets[m[1]] = true
	}
	for _, s := range scenarios() {
		if !targets[s.Name] || s.About == "" || s.Flags(flag.NewFlagSet(s.Name, flag.ContinueOnError)) == nil {
			t.Errorf("%s has no target, or is not complete", s.Name)
		}
		delete(targets, s.Name)
	}
	if len(targets) > 0 {
		t.Errorf("no scenario is called %v", targets)
	}
}
