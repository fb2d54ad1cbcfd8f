package convert

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/translate"
	"turnout/routing"
	"turnout/routing/cors"
	"turnout/routing/redirect"
	"turnout/routing/rewrite"
)

// filters are what is done to requests and answers of an item.
func (c *conversion) filters(g *group, it *Item) (list []gatewayv1.HTTPRouteFilter) {
	var request, answer gatewayv1.HTTPHeaderFilter
	if h := it.Route.Spec.HTTPHeaders; h != nil {
		c.headers(g, &request, "spec.httpHeaders.actions.request", h.Actions.Request)
		c.headers(g, &answer, "spec.httpHeaders.actions.response", h.Actions.Response)
	}
	if hsts := it.Spec.Policy.HSTS; hsts != "" {
		answer.Set = append(answer.Set, gatewayv1.HTTPHeader{Name: "Strict-Transport-Security", Value: hsts})
	}
	if len(request.Set)+len(request.Remove) > 0 {
		list = append(list, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: &request})
	}
	if len(answer.Set)+len(answer.Remove) > 0 {
		list = append(list, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: &answer})
	}
	list = append(list, it.cors()...)
	if it.Spec.Policy.Redirect != nil {
		if f := c.redirectTo(g, translate.Redirect(it.Route.Annotations)); f != nil {
			return append(list, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: f})
		}
	}
	if f := c.rewrite(g, it); f != nil {
		list = append(list, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: f})
	}
	return list
}

// cors returns the CORS filter of an item, if it has one.
func (it *Item) cors() []gatewayv1.HTTPRouteFilter {
	if it.Spec.Policy.CORS == nil {
		return nil
	}
	return []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterCORS, CORS: corsOf(translate.CORS(it.Route.Annotations))}}
}

// corsOf is the filter for what pages of other origins may do.
func corsOf(config cors.Config) *gatewayv1.HTTPCORSFilter {
	f := &gatewayv1.HTTPCORSFilter{MaxAge: int32(config.MaxAge)}
	if config.Credentials {
		f.AllowCredentials = ref(true)
	}
	for _, v := range config.Origins {
		f.AllowOrigins = append(f.AllowOrigins, gatewayv1.CORSOrigin(v))
	}
	for _, v := range config.Methods {
		f.AllowMethods = append(f.AllowMethods, gatewayv1.HTTPMethodWithWildcard(v))
	}
	for _, v := range config.Headers {
		f.AllowHeaders = append(f.AllowHeaders, gatewayv1.HTTPHeaderName(v))
	}
	for _, v := range config.Expose {
		f.ExposeHeaders = append(f.ExposeHeaders, gatewayv1.HTTPHeaderName(v))
	}
	return f
}

// redirectTo is the filter that answers requests with another address, nil if the address cannot be said.
func (c *conversion) redirectTo(g *group, to redirect.Target) *gatewayv1.HTTPRequestRedirectFilter {
	if !isHostname(to.URL.Host) {
		c.notef(g.of, LeftOut, "annotation "+ofTurnout+"redirect-to", "the host %q is an address, and a filter has names only: requests go to pods", to.URL.Host)
		return nil
	}
	f := &gatewayv1.HTTPRequestRedirectFilter{Scheme: &to.Scheme, Hostname: ref(gatewayv1.PreciseHostname(to.URL.Host)), StatusCode: ref(cmp.Or(to.Status, 302))}
	if to.Port != 0 {
		f.Port = ref(gatewayv1.PortNumber(to.Port))
	}
	if to.URL.Kind == rewrite.ReplacePath {
		f.Path = &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &to.URL.Path}
	}
	return f
}

// isHostname reports a name that a filter may have: in lower case, and no address.
func isHostname(host string) bool {
	_, err := netip.ParseAddr(host)
	return err != nil && len(validation.IsDNS1123Subdomain(host)) == 0
}

// headers puts actions of a Route into a filter.
func (c *conversion) headers(g *group, to *gatewayv1.HTTPHeaderFilter, place string, actions []routev1.RouteHTTPHeader) {
	for i := range actions {
		a := &actions[i]
		at := fmt.Sprintf("%s[%d]", place, i)
		switch name := gatewayv1.HTTPHeaderName(a.Name); {
		case a.Action.Type == routev1.Delete && len(to.Remove) < maxHeaders:
			to.Remove = append(to.Remove, a.Name)
		case a.Action.Type == routev1.Set && a.Action.Set != nil && len(to.Set) < maxHeaders-1: // one is left for HSTS
			value, ok := literal(a.Action.Set.Value)
			if !ok {
				c.notef(g.of, NoEqual, at, "the value of %s is made of each message, and a filter has fixed ones: left out", a.Name)
				continue
			}
			to.Set = append(to.Set, gatewayv1.HTTPHeader{Name: name, Value: value})
		default:
			c.notef(g.of, NoEqual, at, "%s is too much for one filter, which has at most %d of each kind: left out", a.Name, maxHeaders)
		}
	}
}

// literal is the text of a value without expressions. False: it has some.
func literal(value string) (string, bool) {
	text := strings.ReplaceAll(value, "%%", "\x00")
	if strings.Contains(text, "%") || value == "" {
		return "", false
	}
	return strings.ReplaceAll(text, "\x00", "%"), true
}

// annotationRewrite is what Routes say rewrites by.
const annotationRewrite = "haproxy.router.openshift.io/rewrite-target"

// mostReplaced is how long a path of a rewrite may be.
const mostReplaced = 1024

// rewrite is the filter of an item whose path is rewritten, nil without one. What requests become by it is compared with what they were.
func (c *conversion) rewrite(g *group, it *Item) *gatewayv1.HTTPURLRewriteFilter {
	before := it.Spec.Policy.Rewrite
	if before == nil {
		return nil
	}
	f := &gatewayv1.HTTPURLRewriteFilter{}
	if host := string(before.Host()); isHostname(host) {
		f.Hostname = ref(gatewayv1.PreciseHostname(host))
	} else if host != "" {
		c.notef(g.of, NoEqual, "annotation "+ofTurnout+"upstream-host", "%q has a port, or is an address, and a filter has names only: pods get the host of the request", host)
	}
	if !before.KeepsPath() {
		f.Path = c.rewritePath(g, it, before)
	}
	if *f == (gatewayv1.HTTPURLRewriteFilter{}) {
		return nil
	}
	return f
}

// rewritePath is what a filter makes of paths, nil if it cannot be said.
func (c *conversion) rewritePath(g *group, it *Item, before *rewrite.Rule) *gatewayv1.HTTPPathModifier {
	target := it.Route.Annotations[annotationRewrite]
	path := strings.TrimRight(it.Path.Value, "/")
	if it.Path.Kind == routing.PathExact {
		full := before.Example(it.Path.Value)
		return &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &full}
	}
	after, err := rewrite.New(rewrite.URL{Kind: rewrite.ReplacePrefix, Prefix: "/" + strings.TrimLeft(path, "/"), Path: target})
	var differing []string
	for _, request := range []string{path + "/x", path + "/", path, path + "/x/y", path + "//x"} {
		if request == "" || err != nil {
			continue
		}
		if was, is := before.Example(request), after.Example(request); was != is {
			differing = append(differing, fmt.Sprintf("%s becomes %s and was %s", request, is, was))
		}
	}
	switch {
	case err != nil || len(target) > mostReplaced || len(differing) > 0 && strings.ContainsAny(target, `\"'#%`): // it has signs that mean something
		c.notef(g.of, NoEqual, "annotation "+annotationRewrite, "%q cannot be said by URLRewrite: paths stay as they come", target)
		return nil
	case len(differing) > 0:
		c.notef(g.of, Differs, "annotation "+annotationRewrite, "%s", strings.Join(differing, ", "))
	}
	return &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &target}
}

// annotationTimeout is the time that pods may be silent.
const annotationTimeout = "haproxy.router.openshift.io/timeout"

// timeouts are those of an item that says some.
func (c *conversion) timeouts(g *group, it *Item) *gatewayv1.HTTPRouteTimeouts {
	p := &it.Spec.Policy
	attempt := p.AttemptTimeout
	if it.Route.Annotations[annotationTimeout] != "" {
		c.notef(g.of, Differs, "annotation "+annotationTimeout, "is timeouts.backendRequest: how long the answer of a pod may take to begin, with other implementations to end; "+
			"silence in the midst of an answer is ended by --default-server-timeout")
		if attempt == 0 || p.ServerTimeout < attempt {
			attempt = p.ServerTimeout
		}
	}
	if p.RequestTimeout > 0 && attempt > p.RequestTimeout {
		attempt = p.RequestTimeout // a longer one is refused by the API
	}
	out := &gatewayv1.HTTPRouteTimeouts{}
	if p.RequestTimeout > 0 {
		out.Request = ref(duration(p.RequestTimeout))
	}
	if attempt > 0 {
		out.BackendRequest = ref(duration(attempt))
	}
	if *out == (gatewayv1.HTTPRouteTimeouts{}) {
		return nil
	}
	return out
}

// retry says which requests of an item are sent again; nil = none.
func (c *conversion) retry(it *Item) *gatewayv1.HTTPRouteRetry {
	spec := it.Spec.Policy.Retry
	if spec == nil || !c.options.Experimental {
		return nil
	}
	r := &gatewayv1.HTTPRouteRetry{Attempts: ref(spec.Attempts)}
	for _, code := range spec.Codes {
		r.Codes = append(r.Codes, gatewayv1.HTTPRouteRetryStatusCode(code))
	}
	if spec.Backoff > 0 {
		r.Backoff = ref(duration(spec.Backoff))
	}
	return r
}

// duration writes a time as GEP-2257 has it.
func duration(d time.Duration) gatewayv1.Duration {
	var b strings.Builder
	for _, unit := range []struct {
		name string
		is   time.Duration
	}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := d / unit.is; n > 0 {
			b.WriteString(strconv.Itoa(int(n)) + unit.name)
			d %= unit.is
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return gatewayv1.Duration(b.String())
}
