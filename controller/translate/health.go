package translate

import (
	"strconv"
	"time"
)

// The annotations about servers that fail. Those of the older router keep their names; what
// it did not have is under a name of Turnout's own.
const (
	annotationCheckInterval = "router.openshift.io/haproxy.health.check.interval"
	annotationEjectErrors   = "turnout.router/eject-after-5xx"
	annotationSlowStart     = "turnout.router/slow-start"
)

// defaultCheckInterval is the time between two health checks of a server unless the router is told another.
const defaultCheckInterval = 5 * time.Second

// checkInterval returns the time between two health checks of a server.
func (a *annotations) checkInterval(d *Defaults) time.Duration {
	if interval, ok := a.timespec(annotationCheckInterval, d.CheckInterval); ok {
		return interval
	}
	return d.CheckInterval
}

// ejectAfterErrors returns how many 5xx answers in a row eject a server, 0 = none do.
func (a *annotations) ejectAfterErrors() int {
	value, ok := a.values[annotationEjectErrors]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > 1000 {
		a.invalid(annotationEjectErrors, value, "is not a number from 0 to 1000", "0, which is never,")
		return 0
	}
	return n
}

// slowStart returns how long a server that comes to others takes to its full share.
func (a *annotations) slowStart() time.Duration {
	d, _ := a.timespec(annotationSlowStart, 0)
	return d
}
