package balancer

import (
	"testing"
	"time"
)

// TestListMakesNoServer: who looks at all servers of a pool leaves those alone that no request has wanted.
func TestListMakesNoServer(t *testing.T) {
	p := pool(RoundRobin, targets(equal(3)...))
	lease, _ := p.Pick(Pick{})
	defer lease.Release()
	known, n := 0, 0
	for l := range p.List {
		n++
		if l.Server != nil {
			known++
			if l.Server != lease.Server() || l.InFlight() != 1 || l.MostInFlight() != 1 {
				t.Errorf("%+v", l)
			}
		}
		if l.Weight != 1 || !l.Usable() || !l.Addr.IsValid() {
			t.Errorf("%+v", l)
		}
	}
	if n != 3 || known != 1 {
		t.Errorf("%d servers are listed, %d of them were made, want 3 and 1", n, known)
	}
}

// TestCheckResults: how often a check failed, and for how long its endpoint was down.
func TestCheckResults(t *testing.T) {
	c := &Check{member: &member{endpoint: new(Endpoint)}}
	at := func(s int64) time.Time { return time.Unix(1000+s, 0) }
	want := func(what string, now int64, failures uint64, took, down time.Duration) {
		t.Helper()
		if c.Failures() != failures || c.Took() != took || c.Downtime(at(now)) != down {
			t.Errorf("%s: %d failures, took %v, down for %v", what, c.Failures(), c.Took(), c.Downtime(at(now)))
		}
	}
	want("before the first", 0, 0, 0, 0)
	c.CountResult(time.Millisecond, true)
	c.CountResult(2*time.Millisecond, false)
	want("one failed", 0, 1, 2*time.Millisecond, 0)
	c.counted().setDown(true, at(10))
	want("down", 15, 1, 2*time.Millisecond, 5*time.Second)
	c.counted().setDown(false, at(30))
	want("up", 100, 1, 2*time.Millisecond, 20*time.Second)
	c.counted().setDown(true, at(200))
	want("down again", 201, 1, 2*time.Millisecond, 21*time.Second)
}
