package reactor

import (
	"testing"
	"time"
)

// TestBeatsBegin: a loop that waited for long has beats begin; while there are, less is enough to have them go on.
func TestBeatsBegin(t *testing.T) {
	const during, after = beatFor - 1, beatFor
	for _, c := range []struct {
		name          string
		first, second int64 // waits
		at            int64 // when the second one is found
		begin         [2]bool
		until         int64
	}{
		{"no wait", 0, 0, during, [2]bool{}, 0},
		{"short waits", longWait - 1, longWait - 1, during, [2]bool{}, 0},
		{"a long wait", longWait, 0, during, [2]bool{true, false}, beatFor},
		{"a little one follows", longWait, longWaitAgain, during, [2]bool{true, false}, during + beatFor},
		{"a lesser one follows", longWait, longWaitAgain - 1, during, [2]bool{true, false}, beatFor},
		{"a little one after the end", longWait, longWaitAgain, after, [2]bool{true, false}, beatFor},
		{"a long one after the end", longWait, longWait, after, [2]bool{true, true}, after + beatFor},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := beat{loaded: true}
			if got := [2]bool{b.note(0, c.first), b.note(c.at, c.second)}; got != c.begin || b.until.Load() != c.until {
				t.Errorf("they begin %v and last until %d, want %v and %d", got, b.until.Load(), c.begin, c.until)
			}
		})
	}
}

// TestLooksSeldom: the account is read at most every lookEvery, and never before begin.
func TestLooksSeldom(t *testing.T) {
	var b beat
	b.init()
	for _, now := range []int64{0, lookEvery, int64(time.Hour)} {
		if b.look(now); b.looked < int64(time.Hour) {
			t.Fatalf("looked at %d without an account", now)
		}
	}
	b.looked = 0
	for _, c := range []struct{ now, looked int64 }{{lookEvery - 1, 0}, {lookEvery, lookEvery}, {lookEvery + 1, lookEvery}} {
		if b.look(c.now); b.looked != c.looked {
			t.Errorf("at %d: looked at %d, want %d", c.now, b.looked, c.looked)
		}
	}
}

// TestIdleLoopsDoNotBeat: a loop that has run for a loadShare-th of the time at most has no beats, however long it waited once.
func TestIdleLoopsDoNotBeat(t *testing.T) {
	var b beat
	b.weigh(loadOver, loadOver/loadShare)
	if b.note(loadOver, longWait) {
		t.Error("it beats at the bound")
	}
	b.weigh(2*loadOver, 2*loadOver/loadShare+1)
	if !b.note(2*loadOver, longWait) {
		t.Error("it does not beat above the bound")
	}
	b.weigh(3*loadOver-1, 2*loadOver) // too early to tell
	if !b.loaded {
		t.Error("it has forgotten")
	}
}
