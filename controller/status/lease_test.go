package status

import (
	"testing"
	"time"
)

// TestLease is about the states of a lease.
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
		{"first work returns Extend: leader", "w", leader, 0, 0},
		{"Extend after 5 retries: leader, 5 calls", "lllllw", leader, 0, 0},
		{"Release after 5 retries: follower, 5 calls", "lllll", follower, 20 * 256 * time.Millisecond, leaseFor},
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
					l.lost("ns", at)
				case 'f':
					l.followed("ns", at)
				}
			}
			if wait := l.wait("ns", at, at); l.state != c.state || wait < c.wait || wait > c.most {
				t.Errorf("%s, chance %v: %v waits %v, want %v and %v to %v", c.id, chance, l.state, wait, c.state, c.wait, c.most)
			}
			if least := l.first(); (c.state == follower) != (least == followerMin) {
				t.Errorf("%s: new work of a %v waits %v at least", c.id, l.state, least)
			}
			if l.wait("ns", at, at.Add(leaseFor)) != 0 {
				t.Errorf("%s: waits longer than a lease", c.id)
			}
		}
	}
}

// TestLeaseOfOtherNamespaces: where nobody was seen to write, work waits the shorter the fewer the namespaces are where somebody was.
func TestLeaseOfOtherNamespaces(t *testing.T) {
	at := time.Unix(1000, 0)
	l := lease{chance: func() float64 { return 0 }}
	for range 20 {
		l.lost("bad", at)
	}
	if wait := l.wait("bad", at, at); wait != leaseFor {
		t.Errorf("where somebody writes: %v", wait)
	}
	if wait := l.wait("good", at, at); wait != 2*leaseProbe || l.wait("good", at, at.Add(wait)) != 0 {
		t.Errorf("elsewhere: %v", wait)
	}
	for i := range leaseSeen + 3 {
		l.followed(string(rune('a'+i)), at)
	}
	if wait := l.wait("good", at, at); wait != leaseFor || len(l.seen) != leaseSeen {
		t.Errorf("many namespaces: %v, %d remembered", wait, len(l.seen))
	}
	l.followed("later", at.Add(leaseFor))
	if len(l.seen) != 1 {
		t.Errorf("%d remembered after the lease", len(l.seen))
	}
	l.wrote()
	if l.wait("good", at, at) != 0 || l.seen != nil {
		t.Error("a leader waits")
	}
}
