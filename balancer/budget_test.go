package balancer

import (
	"testing"
	"time"
)

func TestRetryBudget(t *testing.T) {
	const second = int64(time.Second)
	use := func(p *Pool, requests int) {
		for range requests {
			l, _ := p.Pick(Pick{})
			l.Release()
		}
	}
	spend := func(p *Pool, now int64) (n int) {
		for p.Retry(now) {
			n++
		}
		return n
	}
	p := pool(RoundRobin, targets(1, 1))
	now := 1000 * second
	if n := spend(p, now); n != 100 {
		t.Errorf("without requests: %d retries, want 100", n)
	}
	use(p, 10000)
	if n := spend(p, now); n != 1900 {
		t.Errorf("after 10000 requests: %d retries more, want a fifth but 100", n)
	}
	if n := spend(p, now+9*second); n != 0 {
		t.Errorf("9 s later: %d more", n)
	}
	if n := spend(p, now+20*second); n != 100 { // requests may be taken to be younger than they are
		t.Errorf("20 s later: %d more, want 100", n)
	}
	// Requests that are spread over the window count to its end, and no longer.
	now += 100 * second
	for i := range int64(10) {
		p.Retry(now + i*second) // tells the budget that time passes
		use(p, 1000)
	}
	if n := spend(p, now+9*second); n != 2000-10 {
		t.Errorf("1000 requests a second: %d retries", n)
	}
	if n := spend(p, now-second); n != 0 { // a clock that is late
		t.Errorf("%d more a second before", n)
	}
	// Of 1000 requests a second, nobody asking meanwhile, those of ten seconds count.
	p = pool(RoundRobin, targets(1))
	p.Retry(now)
	use(p, 60000)
	if n := spend(p, now+60*second); n < 1800 || n > 2000 {
		t.Errorf("after a minute of 1000 requests a second: %d retries", n)
	}
	// Servers that go away take their requests with them, but not out of the sum.
	p = pool(RoundRobin, targets(1, 1))
	p.Retry(now)
	use(p, 10000)
	p.Update(PoolConfig{Algorithm: RoundRobin}, targets(1, 1)[1:])
	p.Update(PoolConfig{Algorithm: RoundRobin}, []Target{aTarget("new", 1)})
	if n := spend(p, now); n != 2000-1 {
		t.Errorf("after the servers were replaced: %d retries", n)
	}
}
