package status

import (
	"testing"
	"time"
)

// TestLease is section U.5 and the states of a lease.
func TestLease(t *testing.T) {
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		id    string
		do    string // w = wrote, l = lost, f = followed
		state leaseState
		wait  time.Duration // at least, of work that comes then
		most  time.Duration
	}{
		{"none", "", election, 0, 0},
		{"C826", "w", leader, 0, 0},
		{"C827", "lllllw", leader, 0, 0},
		{"C828", "lllll", follower, 20 * 256 * time.Millisecond, leaseFor},
		{"lost at once", "l", follower, 20 * time.Millisecond, 20 * time.Millisecond},
		{"leader loses", "wl", follower, 20 * time.Millisecond, 20 * time.Millisecond},
		{"seen once", "lf", follower, 80 * time.Millisecond, 120 * time.Millisecond},
		{"seen twice", "lff", follower, 320 * time.Millisecond, 720 * time.Millisecond},
		{"seen often", "lffffff", follower, leaseFor, leaseFor},
		{"takes over", "lffffffw", leader, 0, 0},
		{"loses again", "lffffffwl", follower, 20 * time.Millisecond, 20 * time.Millisecond},
		{"a leader does not follow", "wf", leader, 0, 0},
		{"nor does who has not written", "f", election, 0, 0},
	} {
		for _, chance := range []float64{0, 0.5, 1} {
			l := lease{chance: func() float64 { return chance }}
			for _, do := range c.do {
				switch do {
				case 'w':
					l.wrote()
				case 'l':
					l.lost(at)
				case 'f':
					l.followed(at)
				}
			}
			if wait := l.wait(at); l.state != c.state || wait < c.wait || wait > c.most {
				t.Errorf("%s, chance %v: %v waits %v, want %v and %v to %v", c.id, chance, l.state, wait, c.state, c.wait, c.most)
			}
			if least := l.first(); (c.state == follower) != (least == followerMin) {
				t.Errorf("%s: new work of a %v waits %v at least", c.id, l.state, least)
			}
			if l.wait(at.Add(leaseFor)) != 0 {
				t.Errorf("%s: waits longer than a lease", c.id)
			}
		}
	}
}
