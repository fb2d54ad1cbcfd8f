package traffic

import (
	"sync/atomic"
	"time"
)

// Classes is how many classes of answers are distinguished, see Class.
const Classes = 6

// Class returns the class of a status: 1 to 5, and 0 for none and for what is no status.
func Class(status int) int {
	if status < 100 || status >= 100*Classes {
		return 0
	}
	return status / 100
}

// Counts is what a route, or one server of a route, has done.
type Counts struct {
	Answers           [Classes]atomic.Uint64 // of HTTP, by Class; 0 = requests that ended without one
	BytesIn, BytesOut atomic.Uint64          // from and to clients, heads included
	Response, Total   Average                // request sent to the head of the answer; first byte of the request to the end
	Connect           Average                // choosing and connecting; 0 for a pooled connection
	Fresh             atomic.Uint64          // attempts for which a connection was made
	ConnectErrors     atomic.Uint64          // attempts that could not be connected
	ResponseErrors    atomic.Uint64          // answers that broke off, broke the grammar or did not come in time
	Retries           atomic.Uint64          // attempts that followed another one at the same server
	Redispatches      atomic.Uint64          // attempts that followed another one elsewhere
}

// CountBytes counts bytes from and to the client.
func (c *Counts) CountBytes(in, out uint64) {
	if in != 0 {
		c.BytesIn.Add(in)
	}
	if out != 0 {
		c.BytesOut.Add(out)
	}
}

// averaged is over how many requests an Average is, about: as many as in the HAProxy router.
const averaged = 512

// Average is a sliding mean of the last requests. Of two that end at the same moment on different loops one may be left out.
type Average struct{ sum atomic.Uint64 } // of averaged requests, in microseconds

// AddDuration takes that of one request in. What is negative was not reached, and counts for nothing.
func (a *Average) AddDuration(d time.Duration) {
	was := a.sum.Load()
	if d < 0 || d == 0 && was == 0 {
		return
	}
	a.sum.Store(was - (was+averaged-1)/averaged + uint64(d/time.Microsecond))
}

// Mean returns the mean when there were so many requests.
func (a *Average) Mean(requests uint64) time.Duration {
	n := min(max(requests, 1), averaged)
	return time.Duration(a.sum.Load()) * time.Microsecond / time.Duration(n)
}
