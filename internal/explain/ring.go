package explain

import (
	"encoding/hex"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"turnout/internal/bound"
	"turnout/internal/shared"
	"turnout/internal/wire/protocol"
	"turnout/internal/wire/tracecontext"
	"turnout/proxy"
)

// Bounds of a Ring. A route that fails again and again pushes out its own stories and nobody else's.
const (
	ringRoutes  = 128             // routes of which stories are remembered, those that had one last
	ringStories = 8               // of each; of requests that no route got, together, as many
	ringPause   = int64(2e6)      // ns between two stories, longer than it takes to note one
	ringText    = 512             // bytes of a text that a client chose
	ringSlow    = 5 * time.Second // a request that takes longer is remembered
	ringEvery   = 1024            // so is one of so many of an event loop
)

// Ring remembers stories of past requests: of those that failed, were slow or are samples, the last few of each of the routes that had such lately.
// It is the Log of a proxy.Recent. Any goroutine may use it.
type Ring struct {
	generation func() uint64 // of the table
	bounds     *bound.Counts
	last       atomic.Int64 // when the last one was noted, ns since 1970

	mu     shared.Mutex
	number uint64 // of stories so far
	routes map[[2]string]*ofRoute
	newest *ofRoute
	oldest *ofRoute
}

// ofRoute are the stories of one route.
type ofRoute struct {
	key          [2]string // namespace and name
	older, newer *ofRoute
	stories      [ringStories]Story
	n            uint64 // so far
}

// NewRing makes an empty ring. generation tells which table is served; bounds counts what is not remembered, nil: nobody does.
func NewRing(generation func() uint64, bounds *bound.Counts) *Ring {
	return &Ring{generation: generation, bounds: bounds, routes: make(map[[2]string]*ofRoute)}
}

// Recent is what has a worker fill the ring.
func (r *Ring) Recent() *proxy.Recent {
	return &proxy.Recent{Log: r, Slow: ringSlow, Every: ringEvery}
}

// Log implements proxy.AccessLog. It is called on event loops: where more is to be remembered than there is time for, it is not.
func (r *Ring) Log(rec *proxy.Record) {
	now := time.Now()
	last := r.last.Load()
	if now.UnixNano()-last < ringPause || !r.last.CompareAndSwap(last, now.UnixNano()) {
		r.bounds.Reached(bound.RecentRequests)
		return
	}
	s := storyOf(rec, now)
	s.Generation = r.generation()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	s.ID = strconv.FormatUint(r.number, 10)
	o := r.of([2]string{rec.Namespace, rec.Route})
	o.stories[o.n%ringStories] = s
	o.n++
}

// of finds or makes the place of a route, the newest from now on. r.mu is held.
func (r *Ring) of(key [2]string) *ofRoute {
	o := r.routes[key]
	switch {
	case o != nil:
		r.unlink(o)
	case len(r.routes) < ringRoutes:
		o = &ofRoute{key: key}
		r.routes[key] = o
	default:
		o = r.oldest
		r.unlink(o)
		delete(r.routes, o.key)
		*o = ofRoute{key: key}
		r.routes[key] = o
	}
	if o.older = r.newest; o.older != nil {
		o.older.newer = o
	} else {
		r.oldest = o
	}
	r.newest = o
	return o
}

func (r *Ring) unlink(o *ofRoute) {
	if o.newer != nil {
		o.newer.older = o.older
	} else {
		r.newest = o.older
	}
	if o.older != nil {
		o.older.newer = o.newer
	} else {
		r.oldest = o.newer
	}
	o.older, o.newer = nil, nil
}

// all calls yield with the stories, the last one of each route first. r.mu is held.
func (o *ofRoute) all(yield func(*Story) bool) {
	for k := range min(o.n, ringStories) {
		if !yield(&o.stories[(o.n-1-k)%ringStories]) {
			return
		}
	}
}

// Find returns the story with an ID, a unique id or a trace id. The bool is false when there is none.
func (r *Ring) Find(id string) (Story, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for o := r.newest; o != nil; o = o.older {
		for s := range o.all {
			if s.ID == id || id != "" && (s.UniqueID == id || s.TraceID == id) {
				return *s, true
			}
		}
	}
	return Story{}, false
}

// All returns all stories, the last one first.
func (r *Ring) All() []Story {
	r.mu.Lock()
	all := []Story{}
	for o := r.newest; o != nil; o = o.older {
		for s := range o.all {
			all = append(all, *s)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Story) int { return b.Start.Compare(a.Start) })
	return all
}

// Failed returns the stories of a route that tell of failures, the last one first.
func (r *Ring) Failed(namespace, route string) []Story {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Story
	if o := r.routes[[2]string{namespace, route}]; o != nil {
		for s := range o.all {
			if s.Why == WhyFailed {
				all = append(all, *s)
			}
		}
	}
	return all
}

// Why stories are remembered.
const (
	WhyFailed  = "failed"
	WhySlow    = "slow"
	WhySampled = "sampled"
)

// storyOf copies what an explanation says of a record.
func storyOf(rec *proxy.Record, now time.Time) Story {
	s := Story{
		UniqueID: text(rec.UniqueID), Why: WhySampled, Start: now.Add(-rec.Total).UTC(), Client: rec.Client.Addr().Unmap().String(),
		Method: text(rec.Method), Host: text(rec.Host), Target: redacted(text(rec.Target)), Secure: rec.Secure, Namespace: rec.Namespace, Route: rec.Route,
		Status: rec.Status, Reason: rec.Reason.String(), Detail: rec.Detail, Meaning: meaning(rec.Reason.String()), Retries: rec.Retries,
		Queue: Duration(rec.Queue), Connect: Duration(rec.Connect), Response: Duration(rec.Response), Total: Duration(rec.Total),
		BytesIn: rec.BytesIn, BytesOut: rec.BytesOut, Tunnel: rec.Tunnel,
	}
	switch {
	case proxy.Failed(rec.Reason, rec.Status):
		s.Why = WhyFailed
	case rec.Total >= ringSlow && !rec.Tunnel:
		s.Why = WhySlow
	}
	if len(rec.Method) > 0 {
		s.Protocol = "HTTP/1." + strconv.Itoa(rec.Minor)
		if rec.Spoken == protocol.HTTP2 {
			s.Protocol = "HTTP/2"
		}
	}
	if trace := rec.Trace.Trace; trace != (tracecontext.TraceID{}) {
		s.TraceID = hex.EncodeToString(trace[:])
	}
	if rec.Endpoint.IsValid() {
		s.Endpoint = rec.Endpoint.String()
	}
	if rec.Via != nil {
		s.Pod = rec.Via.Pod()
	}
	return s
}

// text copies what a client chose, as much of it as is kept.
func text(b []byte) string { return string(b[:min(len(b), ringText)]) }
