package controller

import (
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// soonExpired is how long before its end a certificate is warned of. Who renews them by
// program has done so long before.
const soonExpired = 7 * 24 * time.Hour

// Certificates are looked at this often; a state that stays the same is logged once a day.
const (
	expiryEvery  = time.Hour
	expiryRepeat = 24 * time.Hour
)

// validity is from when until when a certificate is valid. The zero value is that of no
// certificate.
type validity struct{ from, until time.Time }

func validityOf(c *tls.Certificate) validity {
	if c == nil || c.Leaf == nil {
		return validity{}
	}
	return validity{c.Leaf.NotBefore, c.Leaf.NotAfter}
}

// note says what is wrong at a time, "" if nothing is.
func (v validity) note(now time.Time) string {
	day := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case v.until.IsZero():
		return ""
	case now.After(v.until):
		return "certificate expired on " + day(v.until)
	case now.Before(v.from):
		return "certificate is not valid before " + day(v.from)
	case v.until.Sub(now) < soonExpired:
		return "certificate expires on " + day(v.until)
	}
	return ""
}

// expiryWatch is when certificates were looked at, and what was logged of them.
type expiryWatch struct {
	look, log time.Time // next times
	logged    [2]int    // expired, soon expired
}

// warnExpiry logs how many certificates of routes have expired or will soon, and a few of
// them: one that many routes have would be as many lines otherwise.
func (s *state) warnExpiry(now time.Time) {
	w := &s.expiry
	if !s.published || now.Before(w.look) {
		return
	}
	w.look = now.Add(expiryEvery)
	var counts [2]int
	var names []string
	for _, r := range s.routes {
		switch {
		case !r.served || r.valid.until.IsZero() || r.valid.until.Sub(now) >= soonExpired:
			continue
		case now.After(r.valid.until):
			counts[0]++
		default:
			counts[1]++
		}
		names = append(names, fmt.Sprintf("%s: %s", r.key, r.valid.note(now)))
	}
	if counts == ([2]int{}) || counts == w.logged && now.Before(w.log) {
		w.logged = counts
		return
	}
	w.logged, w.log = counts, now.Add(expiryRepeat)
	slices.Sort(names)
	s.cfg.Log.Warn("certificates of routes have expired or expire soon", zap.Int("expired", counts[0]), zap.Int("soon", counts[1]),
		zap.Strings("routes", names[:min(len(names), 10)]))
}
