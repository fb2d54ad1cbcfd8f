package h1

import "time"

// A connection that the endpoint closes at the moment a request is sent on it costs a
// retry, or an error if the request cannot be repeated. So connections are given up
// before the endpoint does: the time is what the endpoint says in Keep-Alive, what it
// showed by closing one, or PoolsConfig.IdleTimeout.
const (
	// shortestLesson is the least time after which an idle connection that is closed says
	// something about all others: servers that stop, or have served enough requests on a
	// connection, close at once.
	shortestLesson = 500 * time.Millisecond
	// lessonKept is how long what an endpoint showed is believed.
	lessonKept = 10 * time.Minute
	// longestIdle bounds what Keep-Alive asks for.
	longestIdle = time.Minute
)

// habit is what is known about an endpoint's idle connections.
type habit struct {
	said    time.Duration // by Keep-Alive; 0 = nothing, below 0 = connections are not kept
	shown   time.Duration // by closing one; 0 = nothing
	shownAt int64         // of the loop's clock
}

// margin makes sure that this side is the first to close.
func margin(d time.Duration) time.Duration { return d - d/4 }

// heard notes the seconds of a Keep-Alive field, see wire.Response.IdleTimeout.
func (h *habit) heard(seconds int) {
	switch {
	case seconds < 0:
		h.said = -1
	case seconds > 0:
		h.said = time.Duration(seconds) * time.Second
	}
}

// saw notes that the endpoint closed a connection that was idle for d.
func (h *habit) saw(d time.Duration, now int64) {
	if d >= shortestLesson && (h.shown == 0 || d < h.shown || now-h.shownAt > int64(lessonKept)) {
		h.shown, h.shownAt = d, now
	}
}

// idleLimit returns the idle time of a connection to the endpoint: limit, or the time that the
// endpoint announces or was observed to use, at most longest.
func (ps *Pools) idleLimit(p *pool, limit, longest time.Duration) time.Duration {
	h := &p.habit
	switch {
	case h.said < 0:
		return 0
	case h.said > 0:
		limit = min(margin(h.said), longest)
	}
	if h.shown > 0 {
		if ps.cfg.Loop.Now()-h.shownAt > int64(lessonKept) {
			h.shown = 0
		} else {
			limit = min(limit, margin(h.shown))
		}
	}
	return limit
}
