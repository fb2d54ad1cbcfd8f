package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fault is something that goes wrong, and what of it clients may notice.
type fault struct {
	name    string // also the host of its route, with hyphens
	pods    int    // of its route; the first of them is the one that fails
	root    bool   // it takes namespaces of its own
	clock   bool   // it sets the clock of the machine
	http2   bool   // its pods speak HTTP/2
	lasts   time.Duration
	asks    asking
	timeout time.Duration // of the route; 0 = otherTimeout
	begin   func(s *stage)
	end     func(s *stage)
	// present says by what one can see that the fault took place; false if it did not.
	present func(s *stage) (string, bool)
	want    bounds
}

// asking is how the clients of the route ask. Zero is GET over connections that are kept, 8 clients 50 times a second.
type asking struct {
	method  string
	fresh   bool
	clients int
}

// bounds are what must hold. Zero means: clients notice nothing.
type bounds struct {
	allowed  []string      // outcomes of requests during the fault, besides 200
	served   float64       // at least so much of them is answered with 200; 0 = no bound if something is allowed, else all
	slowest  time.Duration // request during the fault; 0 = usual
	neighbor time.Duration // slowest request of the other route; 0 = usual
	recovers time.Duration // after its end no request fails, or is as slow as this; 0 = a second
	returns  time.Duration // after its end the pod that failed gets requests again; 0 = no matter
	changes  bool          // routes need not change while it lasts
	check    func(s *stage) error
}

// usual is how slow a request may be that has nothing to wait for, on a machine that does other things too.
const usual = time.Second

// result is what came of one fault.
type result struct {
	fault       *fault
	evidence    string
	victims     summary // of requests that began while it lasted
	neighbors   summary // from its beginning to the end of everything
	reasons     map[string]float64
	recovered   time.Duration
	returned    time.Duration // -1 = it did not
	changed     time.Duration // until a change of routes was served while the fault lasted; -1 = not asked for
	changedNext time.Duration // the same after it
	before      vitals
	after       vitals
	complaints  []string
}

func (r *result) complainf(format string, args ...any) {
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}

// vitals is what the router's process holds.
type vitals struct {
	goroutines, descriptors int
	resident                int64 // bytes
	upstream                int   // connections to pods
}

// What may be more after a fault than before it: connections of the admin port and of neighbours come and go, and the
// collector gives memory back when it has time.
const (
	moreGoroutines  = 8
	moreDescriptors = 8
	moreUpstream    = 4
	moreResident    = 24 << 20
)

// near says that v has come back to what it was.
func (v vitals) near(before vitals) bool {
	return v.goroutines <= before.goroutines+moreGoroutines && v.descriptors <= before.descriptors+moreDescriptors &&
		v.upstream <= before.upstream+moreUpstream && v.resident <= before.resident+moreResident
}

// changeBound is how long a change of routes may take to be served.
const changeBound = 2 * time.Second

// judge compares what came of a fault with what is wanted. Times may be slack times as long.
func (r *result) judge(present bool, slack int) {
	f, want := r.fault, r.fault.want
	if !present {
		r.complainf("the fault did not take place: %s", r.evidence)
	}
	if r.victims.asked == 0 || r.neighbors.asked == 0 {
		r.complainf("nobody asked")
	}
	for kind, n := range r.victims.outcomes {
		if kind != fine && !slices.Contains(want.allowed, kind) {
			r.complainf("%d requests: %s", n, kind)
		}
	}
	if share := float64(r.victims.outcomes[fine]) / float64(max(r.victims.asked, 1)); share < want.served {
		r.complainf("%.0f %% of the requests were served, at least %.0f %% are wanted", 100*share, 100*want.served)
	}
	if bound := time.Duration(slack) * orElse(want.slowest, usual); r.victims.Max > bound {
		r.complainf("the slowest request took %s, more than %s", short(r.victims.Max), bound)
	}
	if n := r.neighbors.failed(); n > 0 {
		r.complainf("%d requests of the other route failed: %s", n, r.neighbors.String())
	}
	if bound := time.Duration(slack) * orElse(want.neighbor, usual); r.neighbors.Max > bound {
		r.complainf("the slowest request of the other route took %s, more than %s", short(r.neighbors.Max), bound)
	}
	if bound := time.Duration(slack) * orElse(want.recovers, usual); r.recovered > bound {
		r.complainf("recovered %s after the end, later than %s", short(r.recovered), bound)
	}
	if want.returns > 0 && (r.returned < 0 || r.returned > time.Duration(slack)*want.returns) {
		r.complainf("the pod that had failed got no request within %s", want.returns)
	}
	if !want.changes && (r.changed < 0 || r.changed > time.Duration(slack)*changeBound) {
		r.complainf("a change of routes was not served within %s while %s", changeBound, f.name)
	}
	if r.changedNext < 0 || r.changedNext > time.Duration(slack)*changeBound {
		r.complainf("a change of routes was not served within %s afterwards", changeBound)
	}
	if !r.after.near(r.before) {
		r.complainf("not given back: %+v before, %+v after", r.before, r.after)
	}
}

func orElse(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}

// host is the host of a fault's route.
func (f *fault) host() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(f.name)) + ".example"
}
