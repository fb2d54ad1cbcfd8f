package admin

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync"
)

// answers is how many large answers of a kind may be under way, in all and for one source.
type answers struct {
	total, share int

	mu      sync.Mutex
	running int
	sources map[netip.Prefix]int
}

func newAnswers(total, share int) *answers {
	return &answers{total: total, share: share, sources: make(map[netip.Prefix]int)}
}

// begin takes a place, which end gives back. The bool is false when there is none.
func (a *answers) begin(source netip.Prefix) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running >= a.total || a.sources[source] >= a.share {
		return false
	}
	a.running++
	a.sources[source]++
	return true
}

func (a *answers) end(source netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	if a.sources[source]--; a.sources[source] == 0 {
		delete(a.sources, source)
	}
}

// retryAfter is what a 503 says when all places are taken, in seconds.
const retryAfter = 5

// busy answers a visitor for whom there is no place.
func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	say(w, http.StatusServiceUnavailable, "too many answers of this kind are under way; try again later\n")
}
