package convert

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
	"turnout/routing"
)

// convert makes the objects of a group.
func (c *conversion) convert(g *group) {
	c.fields(g)
	c.shielded(g)
	if g.passes() {
		c.tlsRoute(g)
	} else {
		c.httpRoute(g)
	}
	if g.redirects() {
		c.redirect(g)
	}
}

// routeName is the name of the route of a group: that of its object, followed by its host if the object has several.
func (c *conversion) routeName(g *group) string {
	for _, o := range c.groups {
		if o != g && o.of.String() == g.of.String() {
			return g.of.Name + "-" + strings.ReplaceAll(spelled(g.host), ".", "-")
		}
	}
	return g.of.Name
}

// meta is the metadata of a route of a group.
func (c *conversion) meta(g *group, kind, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.of.Namespace, Name: c.name(kind, g.of.Namespace, name), Labels: g.of.Labels}
}

// parents are references to listeners.
func (c *conversion) parents(sections ...*section) (list []gatewayv1.ParentReference) {
	for _, s := range sections {
		p := gatewayv1.ParentReference{
			Namespace: ref(gatewayv1.Namespace(c.options.Gateway.Namespace)), Name: gatewayv1.ObjectName(c.options.Gateway.Name), SectionName: &s.name,
		}
		if s.set != "" {
			p.Kind, p.Name = ref(gatewayv1.Kind("ListenerSet")), gatewayv1.ObjectName(s.set)
		}
		list = append(list, p)
	}
	return list
}

// hostnames are those of a group; nil = any.
func (g *group) hostnames() []gatewayv1.Hostname {
	if g.host == "" {
		return nil
	}
	return []gatewayv1.Hostname{gatewayv1.Hostname(g.host)}
}

// tlsRoute makes the route of a group whose pods end TLS.
func (c *conversion) tlsRoute(g *group) {
	r := &gatewayv1.TLSRoute{TypeMeta: gatewayType("TLSRoute"), ObjectMeta: c.meta(g, "TLSRoute", c.routeName(g))}
	r.Spec.ParentRefs = c.parents(slices.DeleteFunc(slices.Clone(c.places[g.first()]), func(s *section) bool { return !s.secure })...)
	r.Spec.Hostnames = g.hostnames()
	r.Spec.Rules = []gatewayv1.TLSRouteRule{{BackendRefs: c.backends(g, g.first())}}
	if len(r.Spec.ParentRefs) == 0 || len(r.Spec.Rules[0].BackendRefs) == 0 {
		return
	}
	c.routes = append(c.routes, r)
	c.add(g.of, r)
}

// httpRoute makes the routes of another group: one, unless its rules are too many for one, or not all at the same listeners.
func (c *conversion) httpRoute(g *group) {
	if g.ends() && len(c.frontend.sections(g)) == 0 {
		c.notef(g.of, Differs, "spec.tls", "another object passes all TLS connections for %s through to pods: no request over TLS comes here, now as before", g.host)
	}
	for _, at := range c.together(g, func(s *section) bool { return s.secure || g.plain() }) {
		var rules []gatewayv1.HTTPRouteRule
		for _, it := range at.items {
			if rule, ok := c.httpRule(g, it); ok {
				rules = append(append(rules, rule), c.canaries(g, it, &rule)...)
			}
		}
		c.httpRoutes(g, c.routeName(g), at.sections, rules)
	}
}

// redirect makes the routes that send plain requests of a group to https. The redirect has the CORS
// fields of the Route, without which a browser does not follow it.
func (c *conversion) redirect(g *group) {
	for _, at := range c.together(g, func(s *section) bool { return !s.secure }) {
		var rules []gatewayv1.HTTPRouteRule
		for _, it := range at.items {
			to := &gatewayv1.HTTPRequestRedirectFilter{Scheme: ref("https"), StatusCode: ref(302)}
			if c.options.Secure != 443 {
				to.Port = ref(gatewayv1.PortNumber(c.options.Secure))
			}
			rules = append(rules, gatewayv1.HTTPRouteRule{
				Matches: []gatewayv1.HTTPRouteMatch{{Path: c.path(g, it)}},
				Filters: append(it.cors(), gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: to}),
			})
		}
		c.httpRoutes(g, c.routeName(g)+"-redirect", at.sections, rules)
	}
}

// httpRoutes makes routes of rules, as many as a route may have in each.
func (c *conversion) httpRoutes(g *group, name string, at []*section, rules []gatewayv1.HTTPRouteRule) {
	for chunk := range slices.Chunk(rules, maxRules) {
		r := &gatewayv1.HTTPRoute{TypeMeta: gatewayType("HTTPRoute"), ObjectMeta: c.meta(g, "HTTPRoute", name)}
		r.Spec.ParentRefs, r.Spec.Hostnames, r.Spec.Rules = c.parents(at...), g.hostnames(), chunk
		c.routes = append(c.routes, r)
		c.add(g.of, r)
	}
}

// attached are items that are attached to the same listeners.
type attached struct {
	sections []*section
	items    []*Item
}

// together puts the items of a group together that are attached to the same ones of some listeners.
func (c *conversion) together(g *group, some func(*section) bool) (list []*attached) {
	for _, it := range g.items {
		at := slices.DeleteFunc(slices.Clone(c.places[it]), func(s *section) bool { return !some(s) })
		if len(at) == 0 {
			continue
		}
		i := slices.IndexFunc(list, func(a *attached) bool { return slices.Equal(a.sections, at) })
		if i < 0 {
			i = len(list)
			list = append(list, &attached{sections: at})
		}
		list[i].items = append(list[i].items, it)
	}
	return list
}

// httpRule makes the rule of an item. False: it has nowhere to send requests to.
func (c *conversion) httpRule(g *group, it *Item) (rule gatewayv1.HTTPRouteRule, ok bool) {
	rule.Matches = []gatewayv1.HTTPRouteMatch{{Path: c.path(g, it)}}
	rule.Filters = append(c.filters(g, it), c.mirrors(g, it)...)
	rule.Timeouts = c.timeouts(g, it)
	if c.options.Experimental && it.Spec.CookieName != "" {
		rule.SessionPersistence = &gatewayv1.SessionPersistence{SessionName: ref(it.Spec.CookieName), Type: ref(gatewayv1.CookieBasedSessionPersistence)}
	}
	rule.Retry = c.retry(it)
	if slices.ContainsFunc(rule.Filters, func(f gatewayv1.HTTPRouteFilter) bool { return f.RequestRedirect != nil }) {
		rule.Filters = slices.DeleteFunc(rule.Filters, func(f gatewayv1.HTTPRouteFilter) bool { return f.RequestMirror != nil })
		rule.Timeouts, rule.Retry, rule.SessionPersistence = nil, nil, nil // nothing is sent anywhere
		return rule, true
	}
	for _, b := range c.backends(g, it) {
		rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: b})
	}
	return rule, len(rule.BackendRefs) > 0
}

// path is the match of an item.
func (c *conversion) path(g *group, it *Item) *gatewayv1.HTTPPathMatch {
	m := &gatewayv1.HTTPPathMatch{Type: ref(gatewayv1.PathMatchPathPrefix), Value: ref("/" + strings.TrimPrefix(it.Path.Value, "/"))}
	switch {
	case it.Path.Kind == routing.PathExact:
		m.Type = ref(gatewayv1.PathMatchExact)
	case it.Path.Kind == routing.PathStored && strings.HasSuffix(it.Path.Value, "/") && len(it.Path.Value) > 1:
		c.notef(g.of, Differs, "spec.path", "%s takes %s as well, without the slash: PathPrefix goes by whole segments", it.Path.Value, strings.TrimRight(it.Path.Value, "/"))
	}
	return m
}

// fields says what of the fields of a group has no equal.
func (c *conversion) fields(g *group) {
	o := g.first().Route
	if strings.HasPrefix(g.host, "*.") {
		c.notef(g.of, Differs, "host "+g.host, "takes hosts with several more labels, too, such as a.b.%s: wildcards of the Gateway API span labels", g.host[2:])
	}
	if o.Spec.Host == "" && g.host != "" {
		c.notef(g.of, Differs, "spec.host", "the object leaves its host to each router; what is made has that of this router, %s", g.host)
	}
	if tls := o.Spec.TLS; tls != nil && tls.ExternalCertificate != nil && tls.ExternalCertificate.Name != "" && g.ends() {
		c.notef(g.of, Differs, "certificate", "while Secret %s cannot be used, %s is not served over TLS at all", tls.ExternalCertificate.Name, orAny(g.host))
	}
	if weights := len(o.Spec.AlternateBackends); weights > 0 {
		c.notef(g.of, Differs, "spec.alternateBackends", "the share of a Service without ready pods is answered with 503, and not left to the others")
	}
	if g.host == "" {
		c.notef(g.of, Differs, "any host", "takes what hosts that have routes have no path for, too: they are answered with 404 now")
	}
}

func orAny(host string) string {
	if host == "" {
		return "any host"
	}
	return host
}

// general says what holds for all objects.
func (c *conversion) general() {
	if len(c.out.Made) == 0 {
		c.sort()
		return
	}
	c.notef(nil, Differs, "", "requests that no route takes are answered with 404 and not with 503, and those to a name of TLS that no listener has are refused")
	c.notef(nil, Differs, "", "pods take turns, whatever --load-balance-algorithm says")
	if !c.options.Experimental {
		c.notef(nil, Differs, "", "no cookie keeps clients with their pods, as it does on Routes that say nothing of it: --experimental uses sessionPersistence, for which the cluster needs the experimental channel")
	}
	for _, s := range c.frontend.all {
		if s.secure && s.certificate == (source.Key{Namespace: c.options.Gateway.Namespace, Name: DefaultCertificate}) {
			c.notef(nil, Differs, "", "clients of hosts without a certificate see that of Secret %s, which is not among the objects: kubectl create secret tls %s -n %s --cert FILE --key FILE",
				s.certificate, s.certificate.Name, s.certificate.Namespace)
		}
	}
	c.sort()
}

// sort has notes about all objects first, and others in the order of the objects.
func (c *conversion) sort() {
	at := make(map[string]int)
	for i := range c.in.Items {
		if name := c.in.Items[i].Of.String(); at[name] == 0 {
			at[name] = i + 1
		}
	}
	place := func(n *Note) int {
		if n.Of == nil {
			return 0
		}
		return at[n.Of.String()]
	}
	slices.SortStableFunc(c.out.Notes, func(a, b Note) int { return place(&a) - place(&b) })
	slices.SortStableFunc(c.out.Made, func(a, b Made) int { return at[a.Of.String()] - at[b.Of.String()] })
}
