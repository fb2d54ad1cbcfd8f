package overload

import (
	"fmt"
	"testing"
	"time"
)

// TestThresholds walks through samples a second apart.
func TestThresholds(t *testing.T) {
	const limit = 1000 << 20
	memory := func(percent uint64) Sample { return Sample{Memory: limit / 100 * percent, MemoryLimit: limit} }
	late := func(d time.Duration) Sample { return Sample{Late: d} }
	for name, steps := range map[string][]struct {
		sample       Sample
		refuse, hold bool
	}{
		"memory": {
			{memory(84), false, false}, {memory(85), true, false}, {memory(80), true, false}, {memory(79), false, false}, {memory(84), false, false},
			{memory(95), true, true}, {memory(90), true, true}, {memory(89), true, false}, {memory(94), true, false}, {memory(10), false, false},
		},
		"more than the limit": {{memory(150), true, true}},
		"no limit":            {{Sample{Memory: 1 << 60}, false, false}},
		"late": {
			{late(999 * time.Millisecond), false, false}, {late(time.Second), false, true}, {late(250 * time.Millisecond), false, true},
			{late(249 * time.Millisecond), false, false}, {late(999 * time.Millisecond), false, false},
		},
		"late for long": {
			{late(time.Second), false, true}, {late(time.Second), false, true}, {late(time.Second), true, true}, {late(250 * time.Millisecond), true, true},
			{late(0), false, false}, {late(time.Second), false, true},
		},
		"what counts connections holds them": {{Sample{Full: true, Short: true, Failures: 7}, false, false}},
	} {
		g := new(Guard)
		at := time.Unix(0, 0)
		for i, step := range steps {
			at = at.Add(time.Second)
			if hold, _ := g.Look(at, step.sample); hold != step.hold || g.Refusing().Load() != step.refuse {
				t.Errorf("%s, step %d: refuse is %v, hold %v", name, i, g.Refusing().Load(), hold)
			}
		}
	}
}

func TestStats(t *testing.T) {
	g, at := new(Guard), time.Unix(0, 0)
	var began [][]Reason
	for _, s := range []Sample{
		{}, {Full: true}, {Full: true, Short: true, Failures: 2}, {Full: true, Failures: 2}, {Failures: 3}, {Full: true, Failures: 3}, {Failures: 3},
	} {
		at = at.Add(time.Second)
		_, now := g.Look(at, s)
		began = append(began, now)
	}
	if got := fmt.Sprint(began); got != "[[] [connections] [descriptors] [] [descriptors] [connections] []]" {
		t.Errorf("began %s", got)
	}
	stats := g.Stats()
	if got := stats[Connections]; got != (Stat{Times: 2, Time: 4 * time.Second}) {
		t.Errorf("connections: %+v", got)
	}
	if got := stats[Descriptors]; got != (Stat{Times: 2, Time: 2 * time.Second}) {
		t.Errorf("descriptors: %+v", got)
	}
	g.Look(at.Add(time.Second), Sample{Late: time.Hour})
	if !g.Stats()[Late].Now || g.Stats()[Memory].Now {
		t.Errorf("now: %+v", g.Stats())
	}
}
