package routing

import (
	"math/bits"
	"time"

	"turnout/balancer"
)

// Mirror is where copies of requests go, see MirrorSpec. It is immutable but for what its pool leads to.
type Mirror struct {
	copying
	route *Route
}

// MirrorTimeout is for how long a copy may go on, whatever the rule says of its requests.
const MirrorTimeout = 30 * time.Second

// copying is what makes another mirror of a MirrorSpec.
type copying struct {
	key   string
	share uint64 // a request is copied if its random number is less, or this is all
}

const allCopied = 1<<64 - 1

// Key returns what tells the mirror from the others of the route.
func (m *Mirror) Key() string { return m.key }

// Pool returns the servers.
func (m *Mirror) Pool() *balancer.Pool { return m.route.pool }

// Route returns a route that no table has: copies are sent as requests of it are, by its pool and timeouts. Its counters are its own.
func (m *Mirror) Route() *Route { return m.route }

// mirrored makes the route of a mirror of spec.
func mirrored(spec *RuleSpec, p *balancer.Pool) *Route {
	from := &spec.Policy
	policy := Policy{ServerTimeout: MirrorTimeout, ConnectTimeout: from.ConnectTimeout, RequestTimeout: MirrorTimeout, AdjustCase: from.AdjustCase}
	if from.RequestTimeout > 0 {
		policy.RequestTimeout = min(policy.RequestTimeout, from.RequestTimeout)
	}
	return &Route{served: served{key: spec.RouteKey, host: spec.Host}, policy: &policy, pool: p, stats: new(counted)}
}

// Share is the part of requests that are copied: 1 = all.
func (m *Mirror) Share() float64 {
	if m.share == allCopied {
		return 1
	}
	return float64(m.share) / (1 << 64)
}

// Takes reports whether a request is to be copied, going by a fresh random number.
func (m *Mirror) Takes(random uint64) bool { return random < m.share || m.share == allCopied }

func (s *MirrorSpec) copying() copying {
	c := copying{key: s.Key, share: allCopied}
	if s.Denominator > 0 && s.Numerator < s.Denominator {
		c.share, _ = bits.Div64(uint64(max(s.Numerator, 0)), 0, uint64(s.Denominator))
	}
	return c
}

// Mirrors are where copies of requests go; nil = nowhere.
func (r *Route) Mirrors() []Mirror {
	if r.shares == nil {
		return nil
	}
	return r.shares.mirrors
}
