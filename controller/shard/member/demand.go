package member

import (
	"slices"
	"time"

	"turnout/controller"
	"turnout/controller/shard"
	"turnout/controller/source"
)

// askedAgain is how long after its last request, and the time for which a client may keep its connection, a route that leaves counts as asked for.
const askedAgain = 5 * time.Second

// demand is which routes that leave are still asked for.
type demand struct {
	within time.Duration        // of the last request: the client may come again on its connection
	of     map[source.Key]asked // by binding
}

// asked is when a route was last asked for.
type asked struct {
	requests uint64
	at       time.Time
}

// look returns the bindings, as NAMESPACE/NAME, of routes that were asked for lately, in order.
func (d *demand) look(routes []controller.LeavingRoute, now time.Time) (list []string) {
	next := make(map[source.Key]asked, len(routes))
	for i := range routes {
		r := &routes[i]
		a, seen := d.of[r.Binding]
		if !seen || a.requests != r.Requests || r.Open > 0 {
			a = asked{r.Requests, now}
		}
		next[r.Binding] = a
		if now.Sub(a.at) < d.within {
			list = append(list, r.Binding.String())
		}
	}
	d.of = next
	slices.Sort(list)
	return list[:min(len(list), shard.MostLeaving)]
}

// rateSpan is over how many seconds requests per second are a mean.
const rateSpan = 60

// rate is requests per second, of the last minute.
type rate struct {
	samples [rateSpan + 1]sample // a ring
	next    int
	filled  int
	mean    int32
}

type sample struct {
	at       time.Time
	requests uint64
}

// add takes how many requests there have been, once a second at most, and returns the mean since the oldest sample.
func (r *rate) add(requests uint64, now time.Time) int32 {
	last := r.samples[(r.next+rateSpan)%len(r.samples)]
	if r.filled > 0 && now.Sub(last.at) < time.Second {
		return r.mean
	}
	r.samples[r.next] = sample{now, requests}
	r.next = (r.next + 1) % len(r.samples)
	r.filled = min(r.filled+1, len(r.samples))
	oldest := r.samples[0]
	if r.filled == len(r.samples) {
		oldest = r.samples[r.next]
	}
	if seconds := now.Sub(oldest.at).Seconds(); seconds >= 1 && requests >= oldest.requests {
		r.mean = int32(min(float64(requests-oldest.requests)/seconds, 1<<30))
	}
	return r.mean
}
