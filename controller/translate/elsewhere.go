package translate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"turnout/routing"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
)

// The annotations that have requests answered with another address, or sent on under another host.
const (
	annotationRedirect       = "turnout.router/redirect-to"
	annotationRedirectStatus = "turnout.router/redirect-status"
	annotationUpstreamHost   = "turnout.router/upstream-host"
)

var elsewhereKeys = []string{annotationRedirect, annotationRedirectStatus, annotationUpstreamHost}

// upstreamHost returns the host that endpoints get instead of that of the request, "" = that stays.
func (a *annotations) upstreamHost() string {
	host, ok := a.values[annotationUpstreamHost]
	if ok && !isAuthority(host) {
		a.invalid(annotationUpstreamHost, host, "is not a host, or a host and a port", "the host of the request")
		return ""
	}
	return host
}

// redirect adds to p that requests are answered with another address.
func (a *annotations) redirect(c *compiled, p *routing.Policy) {
	text, ok := a.values[annotationRedirect]
	if !ok {
		a.without(annotationRedirect, annotationRedirectStatus)
		return
	}
	to, err := a.target()
	if err != nil {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect: %q %v", annotationRedirect, Shown(text), err))
		return
	}
	p.Redirect = c.redirects.of(fmt.Sprintf("%#v", to), func() (*redirect.Rule, error) { return redirect.New(to) })
}

// Redirect returns what the annotations of a route that is redirected say.
func Redirect(all map[string]string) redirect.Target {
	a := annotations{values: all}
	to, _ := a.target()
	return to
}

// target reads the annotations about redirects.
func (a *annotations) target() (redirect.Target, error) {
	to, err := redirectTarget(a.values[annotationRedirect])
	if err != nil {
		return to, err
	}
	if value, ok := a.values[annotationRedirectStatus]; ok {
		switch value {
		case "301", "302", "303", "307", "308":
			to.Status, _ = strconv.Atoi(value)
		default:
			a.invalid(annotationRedirectStatus, value, "is not 301, 302, 303, 307 or 308", "302")
		}
	}
	return to, nil
}

// maxRedirect bounds an address in bytes.
const maxRedirect = 2048

// errRedirect says what an address looks like.
var errRedirect = errors.New("is not http:// or https://, a host, perhaps a port and a path without a query")

// redirectTarget reads an address. Without a path that of the request stays.
func redirectTarget(text string) (to redirect.Target, err error) {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexByte(rest, '/')
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	if scheme != "http" && scheme != "https" || len(text) > maxRedirect || !isAuthority(authority) {
		return to, errRedirect
	}
	to = redirect.Target{Scheme: scheme, URL: rewrite.URL{Host: authority}}
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		to.URL.Host = authority[:i]
		to.Port, _ = strconv.Atoi(authority[i+1:])
	}
	if path == "" {
		return to, nil
	}
	if !isTarget(path) || strings.Contains(path, "?") {
		return to, errRedirect
	}
	to.URL.Kind, to.URL.Path = rewrite.ReplacePath, path
	return to, nil
}
