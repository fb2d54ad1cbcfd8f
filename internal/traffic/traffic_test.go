package traffic

import (
	"testing"
	"time"
)

const second = int64(time.Second)

// TestSessions: what has begun and not ended, the most of it at a time, and how much begins in a second.
func TestSessions(t *testing.T) {
	var s Sessions
	for _, step := range []struct {
		what          string
		now           int64
		begin, end    int
		current, most int64
		last, mostOf  uint64 // rates
	}{
		{what: "nothing yet", now: 5 * second},
		{what: "three in the first second", now: 5 * second, begin: 3, current: 3, most: 3, mostOf: 3},
		{what: "one more, two have ended", now: 6*second - 1, begin: 1, end: 2, current: 2, most: 4, mostOf: 4},
		{what: "the next second", now: 6 * second, current: 2, most: 4, last: 4, mostOf: 4},
		{what: "two in it", now: 6*second + 1, begin: 2, current: 4, most: 4, last: 4, mostOf: 4},
		{what: "a loop whose clock is behind", now: 6*second - 1, begin: 1, current: 5, most: 5, last: 4, mostOf: 4},
		{what: "a quiet second", now: 8 * second, end: 5, most: 5, mostOf: 4},
		{what: "after it", now: 8*second + 1, begin: 1, end: 1, most: 5, mostOf: 4},
		{what: "one in the second before", now: 9 * second, most: 5, last: 1, mostOf: 4},
	} {
		for range step.begin {
			s.Begin(step.now)
		}
		for range step.end {
			s.End()
		}
		last, mostOf := s.Rate(step.now)
		if s.Current() != step.current || s.Most() != step.most || last != step.last || mostOf != step.mostOf {
			t.Errorf("%s: %d now, %d most, %d in the last second, %d in any; want %+v", step.what, s.Current(), s.Most(), last, mostOf, step)
		}
	}
	if s.Total() != 8 {
		t.Errorf("%d in all, want 8", s.Total())
	}
}

func TestAverage(t *testing.T) {
	var a Average
	near := func(what string, requests uint64, want time.Duration) {
		t.Helper()
		if got := a.Mean(requests); got < want*95/100 || got > want*105/100 {
			t.Errorf("%s: %v, want about %v", what, got, want)
		}
	}
	near("nothing", 0, 0)
	a.AddDuration(-1)
	a.AddDuration(0)
	near("what was not reached", 2, 0)
	for range 4 {
		a.AddDuration(30 * time.Millisecond)
	}
	near("the first ones", 4, 30*time.Millisecond)
	for range 20 * averaged {
		a.AddDuration(10 * time.Millisecond)
	}
	near("many more", 20*averaged, 10*time.Millisecond)
	for range 20 * averaged {
		a.AddDuration(0)
	}
	if a.sum.Load() != 0 {
		t.Errorf("%v is left of what was long ago", a.Mean(averaged))
	}
}

func TestClass(t *testing.T) {
	for status, want := range map[int]int{-1: 0, 0: 0, 99: 0, 100: 1, 101: 1, 204: 2, 302: 3, 499: 4, 503: 5, 599: 5, 600: 0, 999: 0} {
		if got := Class(status); got != want {
			t.Errorf("%d has class %d, want %d", status, got, want)
		}
	}
}

func TestCountBytes(t *testing.T) {
	var c Counts
	c.CountBytes(1, 2)
	c.CountBytes(0, 40)
	c.CountBytes(10, 0)
	if c.BytesIn.Load() != 11 || c.BytesOut.Load() != 42 {
		t.Errorf("%d in, %d out", c.BytesIn.Load(), c.BytesOut.Load())
	}
}
