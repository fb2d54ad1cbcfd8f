package translate

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"turnout/balancer"
	"turnout/routing"
)

// The annotations of a route that are read.
const (
	annotationBalance        = "haproxy.router.openshift.io/balance"
	annotationDisableCookies = "haproxy.router.openshift.io/disable_cookies"
	annotationTimeout        = "haproxy.router.openshift.io/timeout"
	annotationTunnel         = "haproxy.router.openshift.io/timeout-tunnel"
	annotationForwarded      = "haproxy.router.openshift.io/set-forwarded-headers"
	annotationHSTS           = "haproxy.router.openshift.io/hsts_header"
	annotationCookieName     = "router.openshift.io/cookie_name"
	annotationSameSite       = "router.openshift.io/cookie-same-site"
)

// Defaults is what applies to routes without an annotation. Texts are as in the
// environment of the router; an invalid text counts as none. The zero value is the
// router's own defaults.
type Defaults struct {
	ServerTimeout  time.Duration // 0 = 30 s
	TunnelTimeout  time.Duration // 0 = 1 h
	ConnectTimeout time.Duration // 0 = 5 s
	CheckInterval  time.Duration // between two health checks of a server; 0 = 5 s
	Forwarded      string        // append, replace, if-none, never; "" = append
	LoadBalance    string        // algorithm; "" = random, for passthrough source
	TCPBalance     string        // algorithm of passthrough routes; "" = LoadBalance
	CookieName     string        // "" = a name of its own for each route
}

// Policy returns how requests are treated where nothing else is said of them.
func (d Defaults) Policy() routing.Policy {
	d = d.complete()
	forwarded, _ := parseForwarded(d.Forwarded) // complete has looked at it
	return routing.Policy{ServerTimeout: d.ServerTimeout, TunnelTimeout: d.TunnelTimeout, ConnectTimeout: d.ConnectTimeout, Forwarded: forwarded}
}

func (d Defaults) complete() Defaults {
	if d.ServerTimeout <= 0 {
		d.ServerTimeout = 30 * time.Second
	}
	if d.TunnelTimeout <= 0 {
		d.TunnelTimeout = time.Hour
	}
	if d.ConnectTimeout <= 0 {
		d.ConnectTimeout = 5 * time.Second
	}
	if d.CheckInterval <= 0 {
		d.CheckInterval = defaultCheckInterval
	}
	if _, ok := parseForwarded(d.Forwarded); !ok {
		d.Forwarded = "append"
	}
	if !isCookieName(d.CookieName) {
		d.CookieName = ""
	}
	return d
}

// CookieName returns the name of the sticky cookie of a route that sets none: the MD5 of
// " namespace:name" in lower-case hex. MD5 is not used for security: cookies of the
// HAProxy router carry this name.
func CookieName(namespace, name string) string {
	sum := md5.Sum([]byte(" " + namespace + ":" + name))
	return hex.EncodeToString(sum[:])
}

// annotations reads the annotations of one route and notes the ones it cannot use.
type annotations struct {
	values map[string]string
	notes  []string
}

// invalid notes that an annotation has no effect.
func (a *annotations) invalid(key, value, why, instead string) {
	a.notes = append(a.notes, fmt.Sprintf("annotation %s: %q %s; %s is used", key, Shown(value), why, instead))
}

// once notes something that may have been noted before.
func (a *annotations) once(note string) {
	if !slices.Contains(a.notes, note) {
		a.notes = append(a.notes, note)
	}
}

// unused notes annotations that mean nothing for the kind of route.
func (a *annotations) unused(kind string, keys ...string) {
	for _, key := range keys {
		if _, ok := a.values[key]; ok {
			a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect on %s routes", key, kind))
		}
	}
}

// timespec returns the time of an annotation. The bool is false when it sets none.
func (a *annotations) timespec(key string, fallback time.Duration) (time.Duration, bool) {
	value, ok := a.values[key]
	if !ok {
		return 0, false
	}
	d, ok := ClipTimespec(value)
	if !ok {
		a.invalid(key, value, ErrTimespecSyntax.Error(), fallback.String())
		return 0, false
	}
	if full, err := ParseTimespec(value); err != nil || full > d {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: %q is clipped to %s", key, Shown(value), d))
	}
	return d, true
}

func (a *annotations) bool(key string) bool {
	value, ok := a.values[key]
	if !ok {
		return false
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		a.invalid(key, value, "is not true or false", "false")
	}
	return err == nil && b
}

// policy sets how requests of a route are treated, and the name of its cookie.
func (a *annotations) policy(in *Input, d *Defaults, spec *routing.RouteSpec) {
	term := spec.Termination
	p := &spec.Policy
	*p = routing.Policy{ServerTimeout: d.ServerTimeout, TunnelTimeout: d.TunnelTimeout, ConnectTimeout: d.ConnectTimeout}
	server, isServer := a.timespec(annotationTimeout, d.ServerTimeout)
	if isServer {
		p.ServerTimeout = server
		if term == routing.TermPassthrough {
			p.ServerTimeout, p.TunnelTimeout = d.ServerTimeout, server
		}
	}
	if tunnel, ok := a.timespec(annotationTunnel, p.TunnelTimeout); ok {
		p.TunnelTimeout = tunnel
	}
	p.Forwarded, _ = parseForwarded(d.Forwarded)
	if term == routing.TermPassthrough {
		a.unused("passthrough", annotationForwarded, annotationDisableCookies, annotationCookieName, annotationSameSite, annotationHSTS)
		return
	}
	if value, ok := a.values[annotationForwarded]; ok {
		if f, ok := parseForwarded(value); ok {
			p.Forwarded = f
		} else {
			a.invalid(annotationForwarded, value, "is not append, replace, if-none or never", p.Forwarded.String())
		}
	}
	a.cookie(in, d, spec, term != routing.TermNone && spec.Insecure != routing.InsecureAllow)
	switch value, ok := a.values[annotationHSTS]; {
	case term == routing.TermNone:
		a.unused("plain HTTP", annotationHSTS)
	case ok && isHSTS(value):
		p.HSTS = value
	case ok && value != "":
		a.invalid(annotationHSTS, value, "is not a Strict-Transport-Security value", "no header")
	}
}

// cookie sets name and attributes of the sticky cookie. secure is true when the cookie
// never travels over plain HTTP.
func (a *annotations) cookie(in *Input, d *Defaults, spec *routing.RouteSpec, secure bool) {
	sameSite := "None"
	switch value, ok := a.values[annotationSameSite]; {
	case !ok:
	case !secure:
		a.notes = append(a.notes, "annotation "+annotationSameSite+": has no effect on routes served over plain HTTP")
	case value == "Lax" || value == "Strict" || value == "None":
		sameSite = value
	default:
		a.invalid(annotationSameSite, value, "is not Lax, Strict or None", sameSite)
	}
	fallback := d.CookieName
	if fallback == "" {
		fallback = CookieName(in.Route.Namespace, in.Route.Name)
	}
	name := fallback
	if value, ok := a.values[annotationCookieName]; ok {
		if isCookieName(value) {
			name = value
		} else {
			a.invalid(annotationCookieName, value, "is not made of up to 1024 letters, digits, _ and -", fallback)
		}
	}
	if a.bool(annotationDisableCookies) {
		return
	}
	spec.CookieName, spec.Policy.CookieAttributes = name, "; path=/; HttpOnly"
	if secure {
		spec.Policy.CookieAttributes += "; Secure; SameSite=" + sameSite
	}
}

// balance returns the algorithm of a route with a number of services of weight > 0.
func (a *annotations) balance(d *Defaults, passthrough bool, active int) balancer.Algorithm {
	choice := balancer.Choice{
		Passthrough: passthrough, Annotation: a.values[annotationBalance], Active: active,
		Default: d.LoadBalance, TCPDefault: d.TCPBalance,
	}
	algorithm := choice.Algorithm()
	if value, ok := a.values[annotationBalance]; ok {
		if _, ok := balancer.ParseAlgorithm(value); !ok {
			a.invalid(annotationBalance, value, "is not roundrobin, leastconn, source or random", algorithm.String())
		}
	}
	return algorithm
}

func parseForwarded(s string) (routing.ForwardedPolicy, bool) {
	for _, p := range [...]routing.ForwardedPolicy{
		routing.ForwardedAppend, routing.ForwardedReplace, routing.ForwardedIfNone, routing.ForwardedNever,
	} {
		if p.String() == s {
			return p, true
		}
	}
	return 0, false
}

// maxFieldAnnotation bounds, in bytes, what an annotation adds to each answer of its route.
const maxFieldAnnotation = 1024

func isCookieName(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '_' && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= maxFieldAnnotation
}
