package translate

import (
	"fmt"
	"slices"
	"strings"

	shards "turnout/controller/shard/api"
	"turnout/internal/nearest"
)

// known are the annotations of routes that are read. Nobody changes it.
var known = []string{
	annotationBalance, annotationDisableCookies, annotationTimeout, annotationTunnel, annotationForwarded, annotationHSTS,
	annotationCookieName, annotationSameSite, annotationRewrite, annotationAdjustCase, annotationAllow, annotationWhite,
	annotationRates, annotationConcurrent, annotationRateTCP, annotationRateHTTP, annotationPodConnections,
	annotationCheckInterval, annotationCheckPath, annotationCheckHost, annotationCheckStatus, annotationEjectErrors, annotationSlowStart,
	annotationOrigins, annotationMethods, annotationHeaders, annotationExpose, annotationCredentials, annotationMaxAge,
	annotationRequestTimeout, annotationAttemptTimeout, annotationRetryOn, annotationRetryAttempts, annotationRetryBackoff,
	annotationRedirect, annotationRedirectStatus, annotationUpstreamHost,
	annotationMirror, annotationMirrorPercent, annotationCanary, annotationCanaryHeader, annotationCanaryValue, annotationCanaryCookie, annotationCanaryWeight,
	annotationClientCA, annotationClientAuth, annotationPodCert, annotationPodNames,
}

// Reads reports whether an annotation of a route is one that the router reads.
func Reads(key string) bool {
	return isOurs(key) && slices.Contains(known, key)
}

// Annotations are the annotations of a route that the router reads.
func Annotations() []string { return slices.Clone(known) }

// Key returns the annotation that the router reads whose name, behind the prefix, is this; "" without one.
func Key(name string) string {
	for _, key := range known {
		if _, is, _ := strings.Cut(key, "/"); is == name {
			return key
		}
	}
	return ""
}

// isOurs reports whether a key has a prefix of routers' annotations: the HAProxy router's two, and Turnout's.
func isOurs(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "haproxy.router.openshift.io" || prefix == "router.openshift.io" || prefix == "turnout.router"
}

// Kept returns what is kept of the annotations of a route: those that the router reads, and a few keys, without their values, that look as if it
// should, so that there can be a note about them. It is the map itself if that is all of it, and nil for nothing.
func Kept(all map[string]string) map[string]string {
	n := 0
	for key, value := range all {
		if Reads(key) || isOurs(key) && value == "" && !slices.Contains(shards.Annotations(), key) {
			n++
		}
	}
	unread := unreadKeys(all)
	if n == len(all) && len(unread) <= maxNoted+1 {
		if n == 0 {
			return nil
		}
		return all
	}
	var kept map[string]string
	put := func(key, value string) {
		if kept == nil {
			kept = make(map[string]string, n)
		}
		kept[key] = value
	}
	for key, value := range all {
		if Reads(key) {
			put(key, value)
		}
	}
	for _, key := range unread[:min(len(unread), maxNoted+1)] {
		put(key, "")
	}
	return kept
}

// unreadKeys are keys that look as if the router should read them, in order. Those of the scheduler are for others.
func unreadKeys(all map[string]string) (keys []string) {
	for key := range all {
		if isOurs(key) && !Reads(key) && !slices.Contains(shards.Annotations(), key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// unread notes keys that look as if the router should read them.
func (a *annotations) unread() {
	keys := unreadKeys(a.values)
	for _, key := range keys[:min(len(keys), maxNoted)] {
		note := fmt.Sprintf("annotation %s: is not one that this router reads; it has no effect", Shown(key))
		if near := nearestKey(key); near != "" {
			note += "; did you mean " + near + "?"
		}
		a.notes = append(a.notes, note)
	}
	if len(keys) > maxNoted {
		a.notes = append(a.notes, "there are more annotations that this router does not read")
	}
}

// nearestKey is the known key that a key was most likely meant to be, "" if none is near. Another prefix counts as one letter: two of them are easily
// taken for each other.
func nearestKey(key string) (best string) {
	prefix, name, _ := strings.Cut(key, "/")
	if len(name) > nearest.Longest {
		return ""
	}
	least := max(len(name)/3, 1) + 1
	for _, candidate := range known {
		p, n, _ := strings.Cut(candidate, "/")
		d := nearest.Distance(strings.ToLower(name), n)
		if p != prefix {
			d++
		}
		if d < least {
			least, best = d, candidate
		}
	}
	return best
}

// mostShown is how much of a value is shown to people, in bytes.
const mostShown = 256

// secretSigns are parts of values that are secrets, whatever the annotation: keys, and what goes into Authorization (RFC 7617, RFC 6750).
var secretSigns = [...]string{"private key", "basic ", "bearer "}

// Shown is a value as people see it: not all of a long one, and no secret that somebody put where none belongs.
func Shown(value string) string {
	lower := strings.ToLower(value)
	for _, sign := range secretSigns {
		if strings.Contains(lower, sign) {
			return "REDACTED"
		}
	}
	if scheme := strings.Index(lower, "://"); scheme >= 0 && strings.Contains(lower[scheme:], "@") {
		return "REDACTED" // an address with user and password (RFC 3986 section 3.2.1)
	}
	if len(value) > mostShown {
		return strings.ToValidUTF8(value[:mostShown], "") + "..."
	}
	return value
}
