package proxy

import (
	"errors"
	"time"
)

// Recent is which exchanges and connections are remembered for a while, and by whom: those that failed, were slow, or are samples. It
// is immutable and shared by all workers.
type Recent struct {
	Log   AccessLog     // is given them, whether or not there is an access log; required
	Slow  time.Duration // they took at least so long, tunnels not counted; 0 = none is there for that
	Every uint64        // one of so many of a worker is a sample; 0 = none is
}

// Failed says that a reason and a status are those of something that went wrong, for the client or the route. A client that leaves is
// nobody's fault.
func Failed(reason Reason, status int) bool {
	switch reason {
	case ReasonOK, ReasonRedirect, ReasonTunnelClosed, ReasonClientGone, ReasonMonitor:
		return status >= 500
	}
	return true
}

// remembered reports whether it is one of those.
func (a *attempts) remembered(reason Reason) bool {
	r := a.cfg.Recent
	switch {
	case r == nil || reason == ReasonMonitor || a.client.Own:
		return false
	case Failed(reason, a.status):
		return true
	case r.Slow > 0 && !a.tunnelled && a.cfg.Clock.Now()-a.start >= int64(r.Slow):
		return true
	}
	return r.Every > 0 && a.w.counts.requests%r.Every == 0
}

func (r *Recent) validate() error {
	if r != nil && r.Log == nil {
		return errors.New("cannot remember requests: Log is required")
	}
	return nil
}
