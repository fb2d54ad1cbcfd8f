package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnout/internal/keypair"
	"turnout/internal/problem"
)

// soonExpired is how long before its end a certificate is warned of. Who renews them by
// program has done so long before.
const soonExpired = 7 * 24 * time.Hour

// Certificates are looked at this often; a state that stays the same is logged once a day.
const (
	expiryEvery  = time.Hour
	expiryRepeat = 24 * time.Hour
)

// validity is from when until when a certificate is valid, and whether it is for the host. nil is that of no certificate.
type validity struct {
	from, until time.Time
	foreign     bool // clients that verify it for the host refuse it
	short       int  // bits of an RSA key that many clients refuse, 0 = the key is long enough
}

// shortRSA is from how many bits on clients take RSA keys: OpenSSL as distributions configure it, and browsers.
const shortRSA = 2048

// validityOf is that of the certificate of a route with a host, which with wildcard stands for all beside it.
func validityOf(leaf *keypair.Leaf, host string, wildcard bool) *validity {
	if leaf == nil {
		return nil
	}
	v := &validity{from: leaf.NotBefore, until: leaf.NotAfter, foreign: !covers(leaf, host, wildcard)}
	if leaf.RSABits < shortRSA {
		v.short = leaf.RSABits
	}
	return v
}

// covers reports whether a certificate is valid for a host, or for all beside it. The common name does not count: clients
// have stopped to look at it (RFC 9525 section 2).
func covers(leaf *keypair.Leaf, host string, wildcard bool) bool {
	if !wildcard {
		return leaf.Covers(host)
	}
	_, domain, _ := strings.Cut(host, ".")
	return slices.ContainsFunc(leaf.DNSNames, func(name string) bool { return strings.EqualFold(name, "*."+domain) })
}

// notes say what is wrong at a time.
func (v *validity) notes(now time.Time) (notes []string) {
	if v == nil {
		return nil
	}
	if note := v.note(now); note != "" {
		notes = append(notes, note)
	}
	if v.foreign {
		notes = append(notes, "certificate is not valid for the host of the route")
	}
	if v.short != 0 {
		notes = append(notes, fmt.Sprintf("certificate has an RSA key of %d bits, and many clients refuse less than %d", v.short, shortRSA))
	}
	return notes
}

// note says what is wrong with the time, "" if nothing is.
func (v *validity) note(now time.Time) string {
	day := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case v == nil:
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

// tellDefaultCertificate says what is wrong with the time of the default certificate, "" if nothing is.
func (s *state) tellDefaultCertificate(now time.Time) (text string) {
	const owner = "certificate/default"
	c := s.cfg.Routing.DefaultCertificate
	if c == nil || c.Leaf == nil {
		return ""
	}
	v := validity{from: c.Leaf.NotBefore, until: c.Leaf.NotAfter}
	note := v.note(now)
	if note == "" {
		s.cfg.Problems.Set(owner)
		return ""
	}
	text = "default " + note
	s.cfg.Problems.Set(owner, problem.Problem{Kind: problem.Certificate, Text: text})
	return text
}

// warnExpiry logs how many certificates, of routes and the default one, have expired or will soon, and a few of
// them: one that many routes have would be as many lines otherwise.
func (s *state) warnExpiry(now time.Time) {
	w := &s.expiry
	if !s.published || now.Before(w.look) {
		return
	}
	w.look = now.Add(expiryEvery)
	var counts [2]int
	var names []string
	for r := range s.routes.All() {
		if r.valid != nil {
			s.tellProblems(r, now)
		}
		switch {
		case !r.served || r.valid == nil || r.valid.until.Sub(now) >= soonExpired:
			continue
		case now.After(r.valid.until):
			counts[0]++
		default:
			counts[1]++
		}
		names = append(names, fmt.Sprintf("%s: %s", r.key, r.valid.note(now)))
	}
	if text := s.tellDefaultCertificate(now); text != "" {
		if now.After(s.cfg.Routing.DefaultCertificate.Leaf.NotAfter) {
			counts[0]++
		} else {
			counts[1]++
		}
		names = append(names, text)
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
