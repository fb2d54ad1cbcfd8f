package balancer

import (
	"testing"
	"time"
)

// TestCheckFailures: each pool that wants a check has its failures, from when it wants it on, and keeps them when its servers change.
func TestCheckFailures(t *testing.T) {
	r := NewRegistry()
	cfg := PoolConfig{Check: time.Second}
	first, second := r.Pool("ns/first/1"), r.Pool("ns/second/2")
	first.Update(cfg, targets(1, 1))
	want := func(what string, p *Pool, connect, status uint64) {
		t.Helper()
		sum, some := p.CheckFailures()
		if sum[3] != connect || sum[10] != status || some != (connect+status > 0) {
			t.Errorf("%s: %v, %t, want %d and %d", what, sum, some, connect, status)
		}
	}
	want("before the first", first, 0, 0)
	c := first.Servers()[0].Check()
	r.CountFailure(c, 3)
	want("one failed", first, 1, 0)
	second.Update(cfg, targets(1, 1))
	want("a pool that comes later", second, 0, 0)
	r.CountFailure(c, 10)
	want("the first", first, 1, 1)
	want("the second", second, 0, 1)
	first.Update(cfg, targets(1, 1, 1))
	want("with another server", first, 1, 1)
	r.CountFailure(first.Servers()[0].Check(), 3)
	want("and another failure", first, 2, 1)
	want("of a check that both want", second, 1, 1)
	first.Update(cfg, targets(1, 1))
	r.CountFailure(c, 3)
	want("back again", first, 3, 1)
	want("both in one group", second, 2, 1)
}
