package health

import (
	"testing"
	"time"

	"turnout/balancer"
	"turnout/internal/reactor"
)

// TestPanicGivesOneCheckUp, wherever it happens, and as often: the others are made as before, and nobody keeps a place.
func TestPanicGivesOneCheckUp(t *testing.T) {
	const bad, good = 20, 5
	for name, x := range map[string]struct {
		secure  func(c *reactor.Conn, done func(error)) // for the bad ones
		changed bool                                    // panics when one goes down
		after   func(r *rig, addr *balancer.Check)
	}{
		"connected": {secure: func(*reactor.Conn, func(error)) { panic("a mistake") }},
		"timer":     {secure: func(*reactor.Conn, func(error)) {}, changed: true},
		"end":       {changed: true, after: func(r *rig, c *balancer.Check) { r.net.RefuseDial(c.Endpoint().Addr(), errRefused) }},
	} {
		t.Run(name, func(t *testing.T) {
			panics, broken := 0, map[*balancer.Check]bool{}
			id, err := balancer.NewTLS(balancer.TLSConfig{SNI: "pod.test"})
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, func(c *Config) {
				c.MaxRunning, c.Rise, c.Fall = 2, 1, 1
				c.Panicked = func(any, []byte) { panics++ }
				c.Secure = func(c *reactor.Conn, _ *balancer.TLS, done func(error)) { x.secure(c, done) }
				tell := c.Changed
				c.Changed = func(c *balancer.Check, up bool, why Result) {
					if !up && x.changed {
						panic("a mistake")
					}
					tell(c, up, why)
				}
			})
			for n := range good {
				r.k.Check(r.endpoint(n+1, nil), time.Second)
			}
			if x.secure == nil {
				id = nil
			}
			for n := range bad {
				c := r.endpoint(100+n, id)
				broken[c] = true
				if x.after != nil {
					x.after(r, c)
				}
				r.k.Check(c, time.Second)
			}
			r.net.Advance(5 * time.Minute)
			if panics != bad || r.k.Len() != good {
				t.Fatalf("%d panics, want %d; %d checks are left, want %d", panics, bad, r.k.Len(), good)
			}
			for ck := range r.k.checks.All() {
				c := ck.of
				if broken[c] {
					t.Error("one that panicked is left")
				}
			}
			before, _ := r.counts()
			r.net.Advance(10 * time.Second)
			if done, _ := r.counts(); done-before < good*8 {
				t.Errorf("%d checks in 10 s", done-before)
			}
			if n := r.running() + r.waiting(); n > good {
				t.Errorf("%d run or wait", n)
			}
			if came := len(r.changes) == bad; came != x.changed {
				t.Errorf("reported %q", r.changes)
			}
		})
	}
}
