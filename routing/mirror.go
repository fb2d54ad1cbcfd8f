package routing

import (
	"math/bits"

	"turnout/balancer"
)

// Mirror is where copies of requests go, see MirrorSpec. It is immutable but for what its pool leads to.
type Mirror struct {
	copying
	pool *balancer.Pool
}

// copying is what makes another mirror of a MirrorSpec.
type copying struct {
	key   string
	share uint64 // a request is copied if its random number is less, or this is all
}

const allCopied = 1<<64 - 1

// Key returns what tells the mirror from the others of the route.
func (m *Mirror) Key() string { return m.key }

// Pool returns the servers.
func (m *Mirror) Pool() *balancer.Pool { return m.pool }

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
