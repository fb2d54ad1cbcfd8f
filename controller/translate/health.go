package translate

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// The annotations about servers that fail. Those of the older router keep their names; what
// it did not have is under a name of Turnout's own.
const (
	annotationCheckInterval = "router.openshift.io/haproxy.health.check.interval"
	annotationCheckPath     = "turnout.router/health-check-path"
	annotationCheckHost     = "turnout.router/health-check-host"
	annotationCheckStatus   = "turnout.router/health-check-status"
	annotationEjectErrors   = "turnout.router/eject-after-5xx"
	annotationSlowStart     = "turnout.router/slow-start"
)

// defaultCheckInterval is the time between two health checks of a server unless an option says another.
const defaultCheckInterval = 5 * time.Second

// leastCheckInterval is the least that a route may ask for, unless the router's default is shorter.
const leastCheckInterval = time.Second

// checkInterval returns the time between two health checks of a server.
func (a *annotations) checkInterval(d *Defaults) time.Duration {
	interval, ok := a.timespec(annotationCheckInterval, d.CheckInterval)
	if !ok {
		return d.CheckInterval
	}
	if least := min(leastCheckInterval, d.CheckInterval); interval < least {
		a.invalid(annotationCheckInterval, a.values[annotationCheckInterval], "is too often", least.String())
		return least
	}
	return interval
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

// What bounds a health check's request, in bytes.
const (
	maxCheckPath = 1024
	maxCheckHost = 255
)

// httpCheck returns what servers are asked when they are checked; the zero value is nothing.
func (a *annotations) httpCheck(host string, term routing.Termination) (none balancer.HTTPCheck) {
	if term == routing.TermPassthrough {
		a.unused("passthrough", annotationCheckPath, annotationCheckHost, annotationCheckStatus)
		return none
	}
	path, ok := a.values[annotationCheckPath]
	const instead = "a check without a request"
	switch {
	case !ok:
		for _, key := range []string{annotationCheckHost, annotationCheckStatus} {
			if _, ok := a.values[key]; ok {
				a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect without %s", key, annotationCheckPath))
			}
		}
		return none
	case len(path) > maxCheckPath:
		a.invalid(annotationCheckPath, path, fmt.Sprintf("is longer than %d bytes", maxCheckPath), instead)
		return none
	case !isTarget(path):
		a.invalid(annotationCheckPath, path, "is not a path as in a URL, beginning with / and with everything unusual percent-encoded", instead)
		return none
	}
	r := balancer.Request{Path: path, Host: host, Least: 200, Most: 399}
	if value, ok := a.values[annotationCheckHost]; ok {
		if isAuthority(value) {
			r.Host = strings.ToLower(value)
		} else {
			a.invalid(annotationCheckHost, value, "is not a host, or a host and a port", "the route's host")
		}
	}
	if value, ok := a.values[annotationCheckStatus]; ok {
		if least, most, ok := statusRange(value); ok {
			r.Least, r.Most = least, most
		} else {
			a.invalid(annotationCheckStatus, value, "is not a status from 200 to 599, or two with a - between them", "200-399")
		}
	}
	return balancer.NewHTTPCheck(r)
}

// isTarget reports whether s is a request-target in origin-form: absolute-path [ "?" query ] (RFC 9112 section 3.2.1, RFC 3986
// sections 3.3 and 3.4).
func isTarget(s string) bool {
	if s == "" || s[0] != '/' {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isAlphanumeric(c) || strings.IndexByte("-._~!$&'()*+,;=:@/?", c) >= 0:
		case c == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			i += 2
		default:
			return false
		}
	}
	return true
}

// isAuthority reports whether s is a host, or a host, a colon and a port (RFC 9110 section 7.2).
func isAuthority(s string) bool {
	if len(s) > maxCheckHost {
		return false
	}
	host, port, found := s, "", false
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		host, port, found = s[:i], s[i+1:], true
	}
	if n, err := strconv.ParseUint(port, 10, 16); found && (err != nil || n == 0) {
		return false
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	for i := range len(host) {
		if c := host[i]; !isAlphanumeric(c) && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return host != ""
}

// statusRange reads "200" or "200-299".
func statusRange(s string) (least, most int, ok bool) {
	first, last, two := strings.Cut(s, "-")
	if !two {
		last = first
	}
	least, ok1 := status(first)
	most, ok2 := status(last)
	return least, most, ok1 && ok2 && least <= most
}

// status reads the status of an answer that is the last one.
func status(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && len(s) == len("200") && n >= 200 && n <= 599
}

func isAlphanumeric(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
}

func isHex(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'f' || c >= '0' && c <= '9' }
