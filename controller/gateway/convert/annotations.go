package convert

import (
	"maps"
	"slices"
	"strings"

	"turnout/balancer"
	"turnout/controller/ingress"
	"turnout/controller/translate"
	"turnout/routing"
)

// Prefixes of annotations.
const (
	ofRoutes   = "haproxy.router.openshift.io/"
	ofCookies  = "router.openshift.io/"
	ofTurnout  = "turnout.router/"
	ofNginx    = "nginx.ingress.kubernetes.io/"
	allowList  = ofRoutes + "ip_allowlist"
	olderAllow = ofRoutes + "ip_whitelist"
)

// lost says of an annotation of Routes, for an item, what of it has no equal; "" = all of it has one.
type lost func(c *conversion, it *Item) string

// always is what is said whenever the annotation is there and does something.
func always(text string) lost { return func(*conversion, *Item) string { return text } }

// annotated are the annotations of Routes that are read. Nobody changes it.
var annotated = map[string]lost{
	ofRoutes + "balance": func(_ *conversion, it *Item) string {
		if it.Spec.Balance == balancer.RoundRobin {
			return ""
		}
		return "pods take turns"
	},
	ofRoutes + "disable_cookies": always(""),
	ofRoutes + "h1-adjust-case": func(_ *conversion, it *Item) string {
		if !it.Spec.Policy.AdjustCase {
			return ""
		}
		return "names of headers are not respelled"
	},
	ofRoutes + "hsts_header":                always(""), // ResponseHeaderModifier
	allowList:                               always(""), // see guards
	olderAllow:                              always(""),
	ofRoutes + "pod-concurrent-connections": always("pods get as many requests at a time as come"),
	ofRoutes + "rate-limit-connections": func(_ *conversion, it *Item) string {
		if !it.Spec.Policy.Rates.Any() {
			return ""
		}
		return "no address is limited, neither in its connections nor in its requests"
	},
	ofRoutes + "rate-limit-connections.concurrent-tcp": always(""), // said above
	ofRoutes + "rate-limit-connections.rate-tcp":       always(""),
	ofRoutes + "rate-limit-connections.rate-http":      always(""),
	annotationRewrite: always(""), // URLRewrite
	ofRoutes + "set-forwarded-headers": func(_ *conversion, it *Item) string {
		if it.Spec.Policy.Forwarded == routing.ForwardedAppend {
			return ""
		}
		return "Forwarded and X-Forwarded-* are as the router has them for all, --set-forwarded-headers"
	},
	annotationTimeout: func(_ *conversion, it *Item) string {
		if it.Spec.Termination != routing.TermPassthrough {
			return "" // timeouts.backendRequest
		}
		return "connections are ended by --default-tunnel-timeout alone"
	},
	ofRoutes + "timeout-tunnel": always("connections are ended by --default-tunnel-timeout alone"),
	ofCookies + "cookie-same-site": func(_ *conversion, it *Item) string {
		if it.Spec.CookieName == "" {
			return ""
		}
		return "session persistence says nothing of SameSite"
	},
	ofCookies + "cookie_name": func(c *conversion, it *Item) string {
		if c.options.Experimental || it.Spec.CookieName == "" {
			return ""
		}
		return "no cookie is set; --experimental makes sessionPersistence of it, for which the cluster needs the experimental channel"
	},
	ofCookies + "haproxy.health.check.interval": always("pods are not checked"),
	ofTurnout + "health-check-path":             always("pods are not checked"),
	ofTurnout + "health-check-host":             always("pods are not checked"),
	ofTurnout + "health-check-status":           always("pods are not checked"),
	ofTurnout + "eject-after-5xx":               always("pods that answer 5xx get requests as before"),
	// CORS, RequestRedirect, URLRewrite, and timeouts of the rule
	ofTurnout + "cors-allow-origin":          always(""),
	ofTurnout + "cors-allow-methods":         always(""),
	ofTurnout + "cors-allow-headers":         always(""),
	ofTurnout + "cors-expose-headers":        always(""),
	ofTurnout + "cors-allow-credentials":     always(""),
	ofTurnout + "cors-max-age":               always(""),
	ofTurnout + "redirect-to":                always(""),
	ofTurnout + "redirect-status":            always(""),
	ofTurnout + "upstream-host":              always(""),
	ofTurnout + "request-timeout":            always(""),
	ofTurnout + "attempt-timeout":            always(""),
	ofTurnout + "mirror":                     always(""), // RequestMirror
	ofTurnout + "mirror-percent":             always(""),
	ofTurnout + "canary":                     always(""), // matches of headers, and weights
	ofTurnout + "canary-by-header":           always(""),
	ofTurnout + "canary-by-header-value":     always(""),
	ofTurnout + "canary-by-cookie":           always(""),
	ofTurnout + "canary-weight":              always(""),
	ofTurnout + "client-ca":                  always(""), // see guards
	ofTurnout + "client-auth":                always(""),
	ofTurnout + "backend-client-certificate": always("pods are shown no certificate; tls.backend.clientCertificateRef of the Gateway is for all routes"),
	ofTurnout + "backend-names":              always("the name is that of the Service; subjectAltNames of the BackendTLSPolicy may do it"),
	ofTurnout + "retry-on":                   retried,
	ofTurnout + "retry-attempts":             retried,
	ofTurnout + "retry-backoff":              always(""), // said above
	ofTurnout + "slow-start":                 always("new pods get their whole share at once"),
}

// retried says whether requests are sent again.
func retried(c *conversion, it *Item) string {
	if c.options.Experimental || it.Spec.Policy.Retry == nil {
		return ""
	}
	return "requests are sent again as the router does by itself; --experimental makes retry of it, for which the cluster needs the experimental channel"
}

// beyondHTTP are the annotations that do something on passthrough routes; the others do nothing there.
var beyondHTTP = []string{
	ofRoutes + "balance", ofRoutes + "pod-concurrent-connections", ofRoutes + "rate-limit-connections", annotationTimeout, ofRoutes + "timeout-tunnel",
	ofCookies + "haproxy.health.check.interval", ofTurnout + "slow-start",
}

// foreign are annotations that other programs read, by the beginnings of their keys, and where they are to be instead.
var foreign = []struct{ begin, text string }{
	{"cert-manager.io/", "is for cert-manager, which reads it of the Gateway: put it there"},
	{"acme.cert-manager.io/", "is for cert-manager, which reads it of the Gateway: put it there"},
	{"external-dns.alpha.kubernetes.io/", "is for external-dns, which reads it of HTTPRoutes and TLSRoutes, or, what is about targets, of the Gateway: put it there"},
}

// annotations says what of the annotations of an object has no equal.
func (c *conversion) annotations(of *Source, it *Item) {
	for _, key := range slices.Sorted(maps.Keys(of.Annotations)) {
		if say, ok := annotated[key]; ok {
			if it.Spec.Termination == routing.TermPassthrough && !slices.Contains(beyondHTTP, key) {
				continue
			}
			if text := say(c, it); text != "" {
				c.notef(of, NoEqual, "annotation "+key, "%s", text)
			}
			continue
		}
		for _, f := range foreign {
			if strings.HasPrefix(key, f.begin) {
				c.notef(of, NoEqual, "annotation "+key, "%s", f.text)
			}
		}
		if name, ok := strings.CutPrefix(key, ofNginx); ok && !ingress.Guards(key) {
			c.notef(of, NoEqual, "annotation "+key, "is one of ingress-nginx, which this router does not read, and is not converted: %s", ofNginxInstead(name))
		}
	}
}

// guards are the annotations of an object that keep clients out, in order.
func (c *conversion) guards(of *Source, it *Item) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(of.Annotations)) {
		switch {
		case ingress.Guards(key) && of.Kind.String() == "Ingress":
		case key == ofTurnout+"client-ca" && (it.Spec.Termination == routing.TermEdge || it.Spec.Termination == routing.TermReencrypt):
		case it.Spec.Policy.Allow != nil && (key == allowList || key == olderAllow) && translate.Reads(key):
		default:
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

// instead are the places of the Gateway API for annotations of ingress-nginx, by how their names begin; the first that fits counts.
var instead = []struct{ begin, place string }{
	{"rewrite-target", "a filter URLRewrite"},
	{"use-regex", "a match of type RegularExpression"},
	{"app-root", "a rule for the exact path / with a filter RequestRedirect"},
	{"ssl-redirect", "turnout.router/insecure-edge-termination-policy: Redirect on the Ingress makes the redirect"},
	{"force-ssl-redirect", "turnout.router/insecure-edge-termination-policy: Redirect on the Ingress makes the redirect"},
	{"permanent-redirect", "a filter RequestRedirect with statusCode 301"},
	{"temporal-redirect", "a filter RequestRedirect with statusCode 302"},
	{"from-to-www-redirect", "an HTTPRoute for the other name with a filter RequestRedirect"},
	{"server-alias", "more names in hostnames"},
	{"backend-protocol", "appProtocol of the Service's port, a GRPCRoute, or a BackendTLSPolicy"},
	{"proxy-ssl-", "a BackendTLSPolicy, and tls.backend.clientCertificateRef of the Gateway"},
	{"proxy-read-timeout", "timeouts of the rule"},
	{"proxy-send-timeout", "timeouts of the rule"},
	{"proxy-next-upstream", "retry of the rule (experimental channel)"},
	{"affinity", "sessionPersistence of the rule (experimental channel)"},
	{"session-cookie-", "sessionPersistence of the rule (experimental channel)"},
	{"canary-by-header", "a second rule with a match of the header"},
	{"canary-by-cookie", "a second rule with a match of the header Cookie, of type RegularExpression"},
	{"canary", "a second backendRef with its weight"},
	{"enable-cors", "a filter CORS"},
	{"cors-", "a filter CORS"},
	{"mirror-", "a filter RequestMirror"},
	{"upstream-vhost", "a filter URLRewrite with hostname"},
	{"custom-headers", "a filter ResponseHeaderModifier"},
	{"x-forwarded-prefix", "a filter RequestHeaderModifier"},
	{"ssl-passthrough", "route.openshift.io/termination: passthrough on the Ingress makes a TLSRoute"},
	{"configuration-snippet", "header modifiers, redirects and CORS, for what of it they can do"},
	{"server-snippet", "header modifiers, redirects and CORS, for what of it they can do"},
}

// ofNginxInstead is where the Gateway API has what an annotation of ingress-nginx says.
func ofNginxInstead(name string) string {
	for _, i := range instead {
		if strings.HasPrefix(name, i.begin) {
			return i.place + " may do it"
		}
	}
	return "the Gateway API has nothing for it"
}
