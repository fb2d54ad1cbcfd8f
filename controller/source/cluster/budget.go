package cluster

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"turnout/internal/bound"
)

// What the API server is asked about visitors of the admin port: reviews per second, and at once. Sources that are not known and those whose token was let in
// before have as much each, so that a flood of tokens that are made up, or may do nothing here, keeps nobody out who was. Both together are at most 10 in any second.
const (
	visitRate  = 3
	visitBurst = 2
	// shareRate and shareBurst are what one source may have of what those have that are not known.
	shareRate  = 1
	shareBurst = 2
)

// budget is how often the API server is asked. It is made by newBudget.
type budget struct {
	bounds         *bound.Counts
	known, unknown *rate.Limiter

	mu      sync.Mutex
	sources map[string]*rate.Limiter // of those that are not known
}

func newBudget(bounds *bound.Counts) budget {
	return budget{
		bounds: bounds, known: rate.NewLimiter(visitRate, visitBurst), unknown: rate.NewLimiter(visitRate, visitBurst),
		sources: make(map[string]*rate.Limiter),
	}
}

// allow takes a review out of the budget, if there is one left for somebody from a source.
func (b *budget) allow(known bool, source string, now time.Time) bool {
	var allowed bool
	if known {
		allowed = b.known.AllowN(now, 1)
	} else {
		allowed = b.share(source).AllowN(now, 1) && b.unknown.AllowN(now, 1)
	}
	if !allowed {
		b.bounds.Reached(bound.Reviews)
	}
	return allowed
}

// share returns what a source may have. Of many sources that are silent again nothing is kept.
func (b *budget) share(source string) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.sources[source]
	if l == nil {
		if len(b.sources) >= maxVisitors {
			clear(b.sources)
		}
		l = rate.NewLimiter(shareRate, shareBurst)
		b.sources[source] = l
	}
	return l
}
