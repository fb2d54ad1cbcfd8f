package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/internal/wire/field"
	"turnout/routing"
)

// Longest is the longest time that a rule may say, and what it has that says that there is no limit.
const Longest = 2147483647 * time.Millisecond

// durationForm is what GEP-2257 allows.
var durationForm = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)

// duration reads a time; ok is false if there is none.
func duration(d *gatewayv1.Duration) (t time.Duration, ok bool, wrong *Error) {
	if d == nil {
		return 0, false, nil
	}
	if !durationForm.MatchString(string(*d)) {
		return 0, false, unsupportedf("duration %q is not of the form 1h2m3s4ms", *d)
	}
	t, err := time.ParseDuration(string(*d))
	if err != nil {
		return 0, false, unsupportedf("duration %q: %v", *d, err)
	}
	return min(t, Longest), true, nil
}

// Timeouts sets those of a policy. What an endpoint may take by default is no limit for what a route allows: a time of 0 takes it away, a longer
// one moves it.
func Timeouts(p *routing.Policy, t *gatewayv1.HTTPRouteTimeouts) *Error {
	if t == nil {
		return nil
	}
	request, ofRequest, wrong := duration(t.Request)
	if wrong != nil {
		return wrong
	}
	attempt, ofAttempt, wrong := duration(t.BackendRequest)
	if wrong != nil {
		return wrong
	}
	if request > 0 && attempt > request {
		return unsupportedf("timeouts.backendRequest %s is longer than timeouts.request %s", *t.BackendRequest, *t.Request)
	}
	p.RequestTimeout, p.AttemptTimeout = request, attempt
	if ofRequest && request == 0 || ofAttempt && request == 0 && attempt == 0 {
		p.ServerTimeout = Longest
	}
	p.ServerTimeout = max(p.ServerTimeout, request, attempt)
	return nil
}

// defaultAttempts is how often a request is sent again when nobody says it.
const defaultAttempts = 1

// Retry translates a retry stanza; nil = none.
func (c *Compiler) Retry(r *gatewayv1.HTTPRouteRetry) (*routing.RetrySpec, *Error) {
	if r == nil {
		return nil, nil
	}
	backoff, _, wrong := duration(r.Backoff)
	if wrong != nil {
		return nil, wrong
	}
	spec := routing.RetrySpec{Attempts: value(r.Attempts, defaultAttempts), Backoff: backoff}
	for _, code := range r.Codes {
		spec.Codes = append(spec.Codes, int(code))
	}
	made, _ := c.retries.Of(fmt.Sprint(spec), func() (*routing.RetrySpec, error) { return &spec, nil })
	return made, nil
}

// Session sets session persistence of a policy and returns the name of its cookie or header, "" = there is none. seed makes the name of one that has none.
func Session(p *routing.Policy, s *gatewayv1.SessionPersistence, seed string, secure bool) (string, *Error) {
	if s == nil {
		return "", nil
	}
	timeout, limited, wrong := duration(s.AbsoluteTimeout)
	if wrong != nil {
		return "", wrong
	}
	name := value(s.SessionName, "")
	if name == "" {
		sum := sha256.Sum256([]byte(seed))
		name = "session-" + hex.EncodeToString(sum[:8])
	}
	if !field.IsToken(name) {
		return "", unsupportedf("session name %q is no token", name)
	}
	p.SessionTimeout = timeout
	switch kind := value(s.Type, gatewayv1.CookieBasedSessionPersistence); kind {
	case gatewayv1.HeaderBasedSessionPersistence:
		carried, err := field.NewCarriedName(name)
		if err != nil {
			return "", unsupportedf("session name: %v", err)
		}
		p.CookieAttributes, p.SessionHeader = "", carried
		return carried.String(), nil
	case gatewayv1.CookieBasedSessionPersistence:
	default:
		return "", unsupportedf("session persistence of type %q is unknown", kind)
	}
	p.SessionHeader, p.CookieAttributes = field.CarriedName{}, "; path=/; HttpOnly"
	if secure {
		p.CookieAttributes += "; Secure"
	}
	if s.CookieConfig == nil || value(s.CookieConfig.LifetimeType, gatewayv1.SessionCookieLifetimeType) == gatewayv1.SessionCookieLifetimeType {
		return name, nil
	}
	if !limited || timeout <= 0 {
		return "", unsupportedf("a permanent session cookie needs absoluteTimeout")
	}
	p.CookieAttributes += "; Max-Age=" + strconv.Itoa(int(timeout/time.Second))
	return name, nil
}
