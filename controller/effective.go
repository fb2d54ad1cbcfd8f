package controller

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/ingress"
	"turnout/controller/translate"
	"turnout/internal/ratelimit"
	"turnout/routing"
)

// Setting is how a route is treated in one respect, and what decided so.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // an annotation, a field of the route, or an option of the router
}

// effective lists the settings of a route as they are served, nil when it is not.
func (c *Controller) effective(v *view) []Setting {
	r := c.served(v)
	if r == nil {
		return nil
	}
	object := v.kept.object()
	from := func(otherwise string, names ...string) string {
		for _, name := range names {
			if key := translate.Key(name); v.takes(object, key) {
				return "annotation " + key
			}
		}
		return otherwise
	}
	p, pool := r.Policy(), r.Pool().Config()
	tunnelNames := []string{"timeout-tunnel"}
	passthrough := r.Termination() == routing.TermPassthrough
	if passthrough {
		tunnelNames = append(tunnelNames, "timeout")
	}
	o := c.views.options.Load().origin
	list := []Setting{
		{"host", r.Host(), hostFrom(v, object)},
		{"termination", r.Termination().String(), "spec.tls"},
		{"balance", pool.Algorithm.String(), from(o("--load-balance-algorithm")+" and the number of services", "balance")},
		{"tunnel timeout", p.TunnelTimeout.String(), from(o("--default-tunnel-timeout"), tunnelNames...)},
		{"connect timeout", p.ConnectTimeout.String(), o("--default-connect-timeout")},
		{"health check interval", pool.Check.String(), from(o("--backend-check-interval"), "haproxy.health.check.interval")},
		{"requests per pod at a time", countOr(pool.Limit, "no limit"), from("default", "pod-concurrent-connections")},
		{"slow start", pool.SlowStart.String(), from("default", "slow-start")},
		{"allow-list", allowed(p), from("default", "ip_allowlist", "ip_whitelist")},
		{"rate limits", limits(p), from("default", "rate-limit-connections")},
	}
	if passthrough {
		return list
	}
	insecure := "spec.tls.insecureEdgeTerminationPolicy"
	if v.rule != nil {
		insecure = "default of Ingresses, or annotation " + ingress.AnnotationInsecure
	}
	list = append(list,
		Setting{"plain HTTP", r.Insecure().String(), insecure},
		Setting{"server timeout", p.ServerTimeout.String(), from(o("--default-server-timeout"), "timeout")},
		Setting{"forwarded headers", p.Forwarded.String(), from(o("--set-forwarded-headers"), "set-forwarded-headers")},
		Setting{"sticky cookie", word(r.CookieName(), "none"), from(o("--cookie-name")+", or a hash of the name", "disable_cookies", "cookie_name")},
		Setting{"Strict-Transport-Security", word(p.HSTS, "none"), from("default", "hsts_header")},
		Setting{"path rewriting", rewriting(p), from("default", "rewrite-target")},
		Setting{"5xx answers in a row that eject a pod", countOr(pool.EjectAfterErrors, "never"), from("default", "eject-after-5xx")},
		Setting{"health check path", word(pool.HTTPCheck.Request().Path, "none: a connect"), from("default", "health-check-path")},
	)
	return append(list, requestSettings(v, object, r, from)...)
}

// requestSettings lists the settings that only annotations of the router's own bring about.
func requestSettings(v *view, object *routev1.Route, r *routing.Route, from func(string, ...string) string) []Setting {
	p := r.Policy()
	cross, to := "what pods say", "none"
	if p.CORS != nil {
		cross = "as its annotations say"
	}
	if p.Redirect != nil {
		to = fmt.Sprintf("%d to %s", p.Redirect.Status(), translate.Shown(object.Annotations[translate.Key("redirect-to")]))
	}
	host := "that of the request"
	if p.Rewrite != nil && p.Rewrite.Host() != nil {
		host = string(p.Rewrite.Host())
	}
	return []Setting{
		{"request timeout", timeOr(p.RequestTimeout), from("default", "request-timeout")},
		{"timeout of an attempt", timeOr(p.AttemptTimeout), from("default", "attempt-timeout")},
		{"retries besides those of the router", retries(p.Retry), from("default", "retry-on", "retry-attempts")},
		{"requests of other origins", cross, from("default", "cors-allow-origin")},
		{"redirect", to, from("default", "redirect-to")},
		{"host that pods get", host, from("default", "upstream-host")},
		{"copies of requests", copies(r), from("default", "mirror")},
		{"canary", v.said(object, "canary", "service ", "none"), from("default", "canary")},
		{"client certificates", v.said(object, "client-ca", word(v.said(object, "client-auth", "", ""), "required")+", judged by Secret ", "as the router asks of all"), from("default", "client-ca")},
		{"certificate shown to pods", v.said(object, "backend-client-certificate", "that of Secret ", "none"), from("default", "backend-client-certificate")},
		{"names in certificates of pods", v.said(object, "backend-names", "one of ", "any, or that of the service"), from("default", "backend-names")},
	}
}

// copies tells where copies of requests go.
func copies(r *routing.Route) string {
	var services []string
	for _, m := range r.Mirrors() {
		services = append(services, m.Key())
	}
	return word(strings.Join(services, ", "), "none")
}

// said is the value of an annotation that is in effect, after some words, and otherwise what there is without.
func (v *view) said(object *routev1.Route, name, words, otherwise string) string {
	key := translate.Key(name)
	if value := object.Annotations[key]; value != "" && v.takes(object, key) {
		return words + translate.Shown(value)
	}
	return otherwise
}

func timeOr(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return d.String()
}

// retries tells how often, for what and after which time requests are sent again.
func retries(r *routing.RetrySpec) string {
	if r == nil {
		return "none"
	}
	text := fmt.Sprintf("%d, after a failure", r.Attempts)
	for _, code := range r.Codes {
		text += " or " + strconv.Itoa(code)
	}
	if r.Backoff > 0 {
		text += ", " + r.Backoff.String() + " later"
	}
	return text
}

// takes reports that the route has an annotation, and that there is no note that it has no effect.
func (v *view) takes(object *routev1.Route, key string) bool {
	if _, ok := object.Annotations[key]; !ok {
		return false
	}
	for _, note := range v.notes {
		if rest, ok := strings.CutPrefix(note, "annotation "+key+": "); ok && (strings.HasSuffix(rest, " is used") || strings.Contains(rest, "has no effect")) {
			return false
		}
	}
	return true
}

func hostFrom(v *view, object *routev1.Route) string {
	switch {
	case v.rule != nil:
		return "the Ingress"
	case object.Spec.Host != "" && v.status != nil && v.status.Host == object.Spec.Host:
		return "spec.host"
	case object.Spec.Subdomain != "":
		return "spec.subdomain and --router-domain"
	}
	return "--hostname-template"
}

func word(value, none string) string {
	if value == "" {
		return none
	}
	return value
}

func countOr(n int, none string) string {
	if n <= 0 {
		return none
	}
	return strconv.Itoa(n)
}

func allowed(p *routing.Policy) string {
	if p.Allow == nil {
		return "everybody"
	}
	return "only the addresses of the annotation"
}

func rewriting(p *routing.Policy) string {
	if p.Rewrite == nil || p.Rewrite.KeepsPath() {
		return "none"
	}
	return "yes"
}

func limits(p *routing.Policy) string {
	var parts []string
	for _, l := range []struct {
		ratelimit.Limit
		what string
	}{{p.Rates.Concurrent, "at a time"}, {p.Rates.TCP, "connections in 3 s"}, {p.Rates.HTTP, "requests in 10 s"}} {
		if l.On {
			parts = append(parts, "fewer than "+strconv.Itoa(l.N)+" "+l.what)
		}
	}
	return word(strings.Join(parts, ", "), "none")
}
