package shard

import "time"

// leastRate is how many writes a second there are at least, however long the API is in trouble: something must find out that it is well again.
const leastRate = 1.0

// pace is how fast writes go: at most so many a second, fewer while the API fails.
type pace struct {
	most, rate float64 // a second
	tokens     float64
	slowed     time.Duration // for how long the rate was not lowered
}

// burst is how many writes may go at once after a pause: those of a tenth of a second.
func (a *pace) burst() float64 { return max(1, a.rate/10) }

func (a *pace) set(most int) {
	a.most = float64(most)
	if a.rate == 0 {
		a.tokens = max(1, a.most/10)
		a.rate = a.most
	}
	a.rate = min(a.rate, a.most)
}

func (a *pace) advance(d time.Duration) {
	a.slowed += d
	a.tokens = min(a.tokens+a.rate*d.Seconds(), a.burst())
}

func (a *pace) spend() { a.tokens-- }

// failed halves the rate, at most once a second: of many that fail together one counts.
func (a *pace) failed() {
	if a.slowed >= time.Second {
		a.slowed = 0
		a.rate = max(a.rate/2, min(leastRate, a.most))
		a.tokens = min(a.tokens, a.burst())
	}
}

// written has the rate grow again: in some hundred writes it doubles.
func (a *pace) written() { a.rate = min(a.rate*1.01+0.01, a.most) }

// wait is how long it takes until the next write may go.
func (a *pace) wait() time.Duration {
	if a.tokens >= 1 {
		return 0
	}
	return max(time.Duration((1-a.tokens)/a.rate*float64(time.Second)), time.Millisecond)
}
