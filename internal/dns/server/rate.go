package server

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"turnout/internal/bound"
)

// verdict is what becomes of an answer.
type verdict uint8

const (
	send verdict = iota
	slip         // it is sent as truncated
	drop
)

// The table of prefixes: MaxPrefixes at most are remembered.
const (
	limiterShards = 64
	limiterSets   = 256
	limiterWays   = 4
	// MaxPrefixes is how many prefixes of clients are remembered. Of more, those that were silent for longest are forgotten.
	MaxPrefixes = limiterShards * limiterSets * limiterWays
)

// limiter bounds answers per second and prefix of clients, because the addresses of queries over UDP may be forged. Any goroutine may use
// it. A nil limiter has no bound.
type limiter struct {
	rate   float64 // answers per second, and at once
	slip   uint32
	seed   maphash.Seed
	shards [limiterShards]struct {
		mu   sync.Mutex
		sets [limiterSets][limiterWays]bucket
	}
}

// bucket is what a prefix has left.
type bucket struct {
	prefix uint64 // 0 = nobody's
	at     int64  // when it was used last, in ns
	tokens float64
	over   uint32 // answers beyond the rate since the last that was not
}

func newLimiter(rate, slip int) *limiter {
	if rate == 0 {
		return nil
	}
	return &limiter{rate: float64(rate), slip: uint32(slip), seed: maphash.MakeSeed()}
}

// prefixOf is the /24 of an IPv4 address or the /56 of an IPv6 address, as a number that is not 0.
func prefixOf(a netip.Addr) uint64 {
	if a.Is4() || a.Is4In6() {
		b := a.As4()
		return 1<<62 | uint64(binary.BigEndian.Uint32(b[:])>>8)
	}
	b := a.As16()
	return 1<<63 | binary.BigEndian.Uint64(b[:])>>8
}

// decide says what becomes of an answer to an address.
func (l *limiter) decide(a netip.Addr, now time.Time) verdict {
	if l == nil {
		return send
	}
	prefix, at := prefixOf(a), now.UnixNano()
	hash := maphash.Comparable(l.seed, prefix)
	shard := &l.shards[hash%limiterShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	b := l.bucket(&shard.sets[hash/limiterShards%limiterSets], prefix, at)
	if passed := at - b.at; passed > 0 {
		b.tokens, b.at = min(b.tokens+float64(passed)*l.rate/1e9, l.rate), at
	}
	if b.tokens >= 1 {
		b.tokens--
		b.over = 0
		return send
	}
	b.over++
	if l.slip > 0 && b.over%l.slip == 0 {
		return slip
	}
	return drop
}

// bucket returns that of a prefix, or makes the one that was not used for longest its own.
func (l *limiter) bucket(set *[limiterWays]bucket, prefix uint64, at int64) *bucket {
	oldest := &set[0]
	for i := range set {
		if b := &set[i]; b.prefix == prefix {
			return b
		} else if b.at < oldest.at {
			oldest = b
		}
	}
	*oldest = bucket{prefix: prefix, at: at, tokens: l.rate}
	return oldest
}

// overRate counts that the bound of a prefix was reached.
func (s *Server) overRate() { s.cfg.Bounds.Reached(bound.NameAnswers) }
