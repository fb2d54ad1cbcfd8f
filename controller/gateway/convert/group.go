package convert

import (
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"

	"turnout/controller/source"
	"turnout/routing"
)

// group is the items of one object and one host that one HTTPRoute, or one TLSRoute, is made of.
type group struct {
	of    *Source
	host  string // "" = any, "*.example.com" = any of the domain
	items []*Item
	out   bool // it is not converted
}

// first is what the group is in all respects but its paths and backends.
func (g *group) first() *Item { return g.items[0] }

// plain reports that requests without TLS are served.
func (g *group) plain() bool {
	return g.first().Spec.Termination == routing.TermNone && g.first().Spec.Insecure != routing.InsecureRedirect || g.first().Spec.Insecure == routing.InsecureAllow
}

// redirects reports that they are sent to https.
func (g *group) redirects() bool { return g.first().Spec.Insecure == routing.InsecureRedirect }

// passes reports that TLS ends at the pods.
func (g *group) passes() bool { return g.first().Spec.Termination == routing.TermPassthrough }

// ends reports that TLS ends at the Gateway.
func (g *group) ends() bool {
	return g.first().Spec.Termination == routing.TermEdge || g.first().Spec.Termination == routing.TermReencrypt
}

// hostOf is the host of an item as the Gateway API has it.
func hostOf(it *Item) string {
	if it.Route.Spec.WildcardPolicy != routev1.WildcardPolicySubdomain || it.Host == "" {
		return it.Host
	}
	_, domain, _ := strings.Cut(it.Host, ".")
	return "*." + domain
}

// collect puts the items into groups, and says of them what does not depend on others.
func (c *conversion) collect() {
	at := make(map[string]*group)
	for i := range c.in.Items {
		it := &c.in.Items[i]
		host := hostOf(it)
		key := it.Of.String() + " " + host
		g := at[key]
		if g == nil {
			g = &group{of: &it.Of, host: host}
			at[key] = g
			c.groups = append(c.groups, g)
		}
		g.items = append(g.items, it)
	}
	for _, g := range c.groups {
		c.settle(g)
	}
	c.groups = slices.DeleteFunc(c.groups, func(g *group) bool { return g.out })
}

// settle decides which items of a group are converted.
func (c *conversion) settle(g *group) {
	c.annotations(g.of, g.first())
	if guards := c.guards(g.of, g.first()); len(guards) > 0 {
		if !c.options.Unguarded {
			g.out = true
			for _, guard := range guards {
				c.notef(g.of, LeftOut, "annotation "+guard, "keeps clients out, which the Gateway API cannot: the object is not converted; --unguarded converts it for everybody")
			}
			return
		}
		for _, guard := range guards {
			c.notef(g.of, NoEqual, "annotation "+guard, "keeps clients out, which the Gateway API cannot: what is made is for everybody")
		}
	}
	g.items = slices.DeleteFunc(g.items, func(it *Item) bool {
		if it.Problem != "" {
			c.notef(g.of, LeftOut, placeOf(it), "%s", it.Problem)
		}
		return it.Problem != ""
	})
	c.dropDefault(g)
	g.out = len(g.items) == 0
}

// dropDefault takes a default backend out that a rule for all paths of the host stands before.
func (c *conversion) dropDefault(g *group) {
	all := slices.ContainsFunc(g.items, func(it *Item) bool { return !it.Default && takesAll(it.Path) })
	g.items = slices.DeleteFunc(g.items, func(it *Item) bool { return all && it.Default })
}

// takesAll reports whether a path is that of all requests.
func takesAll(p routing.PathMatch) bool {
	return p.Kind != routing.PathExact && p.Kind != routing.PathExpression && strings.Trim(p.Value, "/") == ""
}

// placeOf is a rule of an Ingress for people; a Route has one only.
func placeOf(it *Item) string {
	switch {
	case it.Of.Kind == source.Route:
		return ""
	case it.Default:
		return "spec.defaultBackend"
	}
	host := hostOf(it)
	if host == "" {
		host = "any host"
	}
	return host + it.Path.Value
}
