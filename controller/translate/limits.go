package translate

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"turnout/internal/ratelimit"
	"turnout/routing"
)

// The annotations that say who may connect, and how often.
const (
	annotationAllow      = "haproxy.router.openshift.io/ip_allowlist"
	annotationWhite      = "haproxy.router.openshift.io/ip_whitelist" // the older name
	annotationRates      = "haproxy.router.openshift.io/rate-limit-connections"
	annotationConcurrent = annotationRates + ".concurrent-tcp"
	annotationRateTCP    = annotationRates + ".rate-tcp"
	annotationRateHTTP   = annotationRates + ".rate-http"

	annotationPodConnections = "haproxy.router.openshift.io/pod-concurrent-connections"
)

// ParseAllowList reads the text of an allow-list: addresses and CIDRs of IPv4 and
// IPv6, separated by blanks, line ends or commas. It returns the valid ones in their
// order and the words that are none.
func ParseAllowList(text string) (valid []netip.Prefix, invalid []string) {
	for _, word := range strings.FieldsFunc(text, separates) {
		if p, err := netip.ParsePrefix(word); err == nil {
			valid = append(valid, p.Masked())
			continue
		}
		a, err := netip.ParseAddr(word)
		if err != nil || a.Zone() != "" {
			invalid = append(invalid, word)
			continue
		}
		valid = append(valid, netip.PrefixFrom(a, a.BitLen()))
	}
	return valid, invalid
}

func separates(r rune) bool { return r == ',' || r == ' ' || '\t' <= r && r <= '\r' }

// allowList returns who may connect, nil for everybody. closed tells that it is
// nobody, because nothing of what was written is an address.
func (t *Translator) allowList(a *annotations) (list *routing.AllowList, closed bool) {
	key := annotationAllow
	if strings.TrimFunc(a.values[key], separates) == "" {
		key = annotationWhite
	}
	text := a.values[key]
	if strings.TrimFunc(text, separates) == "" {
		return nil, false
	}
	valid, invalid := ParseAllowList(text)
	for _, word := range invalid[:min(len(invalid), maxNoted)] {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: %q is not an address or CIDR; it is left out", key, Shown(word)))
	}
	if len(invalid) > maxNoted {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: %d more are left out", key, len(invalid)-maxNoted))
	}
	if len(valid) == 0 {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: no valid entry; nobody may connect", key))
	}
	return t.intern(valid), len(valid) == 0
}

// maxNoted bounds the notes on words of one allow-list.
const maxNoted = 8

// intern returns one and the same AllowList for the same prefixes, so that policies
// can be compared and routes that share a list share its memory.
func (t *Translator) intern(prefixes []netip.Prefix) *routing.AllowList {
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	prefixes = slices.Compact(prefixes)
	var b strings.Builder
	for _, p := range prefixes {
		b.WriteString(p.String())
		b.WriteByte(' ')
	}
	if known, ok := t.allowed.get(b.String()); ok {
		return known
	}
	made := routing.NewAllowList(prefixes)
	t.allowed.put(b.String(), made)
	return made
}

// rates returns the limits per source address.
func (a *annotations) rates(passthrough bool) (l ratelimit.Limits) {
	if !a.bool(annotationRates) {
		return l
	}
	l.Concurrent, l.TCP = a.limit(annotationConcurrent), a.limit(annotationRateTCP)
	if passthrough {
		a.unused("passthrough", annotationRateHTTP)
		return l
	}
	l.HTTP = a.limit(annotationRateHTTP)
	return l
}

// podConnections returns how many requests a server may have at a time, 0 = any number.
func (a *annotations) podConnections() int {
	value, ok := a.values[annotationPodConnections]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		a.invalid(annotationPodConnections, value, "is not a whole number", "no limit")
		return 0
	case n < 0:
		a.invalid(annotationPodConnections, value, "is below 0", "no limit")
		return 0
	}
	return n
}

func (a *annotations) limit(key string) ratelimit.Limit {
	value, ok := a.values[key]
	if !ok {
		return ratelimit.Limit{}
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		a.invalid(key, value, "is not a whole number", "no limit")
		return ratelimit.Limit{}
	}
	if n <= 0 {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: %q refuses everything", key, Shown(value)))
	}
	return ratelimit.Limit{On: true, N: n}
}
