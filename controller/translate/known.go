package translate

import "strings"

// Reads reports whether an annotation of a route is one that the router reads. Of others nothing is kept or shown.
func Reads(key string) bool {
	switch key {
	case annotationBalance, annotationDisableCookies, annotationTimeout, annotationTunnel, annotationForwarded, annotationHSTS,
		annotationCookieName, annotationSameSite, annotationRewrite, annotationAdjustCase, annotationAllow, annotationWhite,
		annotationRates, annotationConcurrent, annotationRateTCP, annotationRateHTTP, annotationPodConnections,
		annotationCheckInterval, annotationCheckPath, annotationCheckHost, annotationCheckStatus, annotationEjectErrors, annotationSlowStart:
		return true
	}
	return false
}

// mostShown is how much of a value is shown to people, in bytes.
const mostShown = 256

// Shown is a value as people see it: not all of a long one, and no private key that somebody put where none belongs.
func Shown(value string) string {
	if strings.Contains(value, "PRIVATE KEY") {
		return "REDACTED"
	}
	if len(value) > mostShown {
		return strings.ToValidUTF8(value[:mostShown], "") + "..."
	}
	return value
}
