package convert

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/routing"
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
	if f := c.rewrite(g, it); f != nil {
		list = append(list, gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: f})
	}
	return list
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
				c.note(g.of, NoEqual, at, "the value of %s is made of each message, and a filter has fixed ones: left out", a.Name)
				continue
			}
			to.Set = append(to.Set, gatewayv1.HTTPHeader{Name: name, Value: value})
		default:
			c.note(g.of, NoEqual, at, "%s is too much for one filter, which has at most %d of each kind: left out", a.Name, maxHeaders)
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
	target := it.Route.Annotations[annotationRewrite]
	path := strings.TrimRight(it.Path.Value, "/")
	if it.Path.Kind == routing.PathExact {
		full := before.Example(it.Path.Value)
		return &gatewayv1.HTTPURLRewriteFilter{Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: &full}}
	}
	after, err := rewrite.New(rewrite.URL{Kind: rewrite.ReplacePrefix, Prefix: "/" + strings.TrimLeft(path, "/"), Path: target})
	var differing []string
	same := 0
	for _, request := range []string{path + "/x", path + "/", path, path + "/x/y"} {
		if request == "" || err != nil {
			continue
		}
		if was, is := before.Example(request), after.Example(request); was != is {
			differing = append(differing, fmt.Sprintf("%s becomes %s and was %s", request, is, was))
		} else {
			same++
		}
	}
	switch {
	case err != nil || same == 0 || len(target) > mostReplaced:
		c.note(g.of, NoEqual, "annotation "+annotationRewrite, "%q cannot be said by URLRewrite: paths stay as they come", target)
		return nil
	case len(differing) > 0:
		c.note(g.of, Differs, "annotation "+annotationRewrite, "%s", strings.Join(differing, ", "))
	}
	return &gatewayv1.HTTPURLRewriteFilter{Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: &target}}
}

// annotationTimeout is the time that pods may be silent.
const annotationTimeout = "haproxy.router.openshift.io/timeout"

// timeouts are those of an item that says some.
func (c *conversion) timeouts(g *group, it *Item) *gatewayv1.HTTPRouteTimeouts {
	if it.Route.Annotations[annotationTimeout] == "" {
		return nil
	}
	c.note(g.of, Differs, "annotation "+annotationTimeout, "is timeouts.backendRequest now, within which the answer of a pod has to begin, for some implementations to end; silence within an answer is the router's --default-server-timeout")
	return &gatewayv1.HTTPRouteTimeouts{BackendRequest: ref(duration(it.Spec.Policy.ServerTimeout))}
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
			d -= n * unit.is
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return gatewayv1.Duration(b.String())
}
