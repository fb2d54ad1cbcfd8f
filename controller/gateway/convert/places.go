package convert

import (
	"slices"
	"strings"

	"turnout/controller/source"
	"turnout/routing"
)

// place is what one rule of a listener takes: of several routes that say the same there, the API has the oldest served, and what is made is of one age.
type place struct {
	section *section
	host    string
	path    string // without slashes at the end
	exact   bool
}

// placed is an item that wants a place.
type placed struct {
	group *group
	item  *Item
	exact bool // it names the host of the place, and does not only cover it
}

// settlePlaces decides which item has which place: one for the host itself before one of a wildcard, then the one with the longer text of a path, as the table of
// Routes has it. The others are not attached there: nothing would come to them.
func (c *conversion) settlePlaces() {
	won := make(map[place]placed)
	for _, g := range c.groups {
		for _, s := range c.wanted(g) {
			for _, it := range g.items {
				at := placeFor(g, s, it)
				if at.host != g.host && c.takenByHost(at) {
					continue
				}
				next := placed{group: g, item: it, exact: at.host == g.host}
				if before, taken := won[at]; !taken || next.precedes(&before) {
					won[at] = next
				}
			}
		}
	}
	for _, g := range c.groups {
		for _, s := range c.wanted(g) {
			for _, it := range g.items {
				switch winner := won[placeFor(g, s, it)]; {
				case winner.item == it:
					c.places[it] = append(c.places[it], s)
				case winner.item != nil && winner.item.Path.Value != it.Path.Value && !takesAll(it.Path):
					c.notef(g.of, Differs, "spec.path", "%s of %s is the same path to a PathPrefix: requests to %s come there", winner.item.Path.Value, winner.group.of, orRoot(it.Path.Value))
				}
			}
		}
	}
}

// takenByHost reports whether all requests of a place, which an object for a wildcard wants, are those of an object for the host itself.
func (c *conversion) takenByHost(at place) bool {
	for _, g := range c.groups {
		if g.host != at.host || !g.ends() {
			continue
		}
		for _, it := range g.items {
			if it.Path.Kind == routing.PathExact && at.exact && it.Path.Value == at.path || it.Path.Kind != routing.PathExact && below(at.path, it.Path.Value) {
				return true
			}
		}
	}
	return false
}

// below reports whether a path is another one, or below it.
func below(path, other string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimRight(other, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// shielded says of a group that is not served without TLS which plain requests come to others now: those that are redirected where a shorter path is.
func (c *conversion) shielded(g *group) {
	if g.plain() || g.redirects() {
		return
	}
	for _, o := range c.groups {
		if o == g || !o.redirects() || o.host != g.host && !(strings.HasPrefix(o.host, "*.") && strings.HasSuffix(g.host, o.host[1:])) {
			continue
		}
		for _, it := range g.items {
			if slices.ContainsFunc(o.items, func(other *Item) bool { return below(it.Path.Value, other.Path.Value) }) {
				c.notef(g.of, Differs, "spec.tls.insecureEdgeTerminationPolicy", "plain requests to %s, which were not redirected, are redirected as %s says", orRoot(it.Path.Value), o.of)
			}
		}
	}
}

// placeFor is the place that an item of a group wants at a listener.
func placeFor(g *group, s *section, it *Item) place {
	at := place{section: s, host: g.host, path: strings.TrimRight(it.Path.Value, "/"), exact: it.Path.Kind == routing.PathExact}
	if at.exact {
		at.path = it.Path.Value
	}
	if s.secure && s.host != "" && strings.HasPrefix(g.host, "*") && !strings.HasPrefix(s.host, "*") {
		at.host = s.host
	}
	return at
}

// precedes reports whether p has a place rather than o.
func (p *placed) precedes(o *placed) bool {
	if p.exact != o.exact {
		return p.exact
	}
	if p.item.Default != o.item.Default {
		return o.item.Default
	}
	if takesAll(p.item.Path) && takesAll(o.item.Path) { // "" and "/" are one: Routes come first, in the order of their names, which is that of the items
		return p.group.of.Kind == source.Route && o.group.of.Kind != source.Route
	}
	return len(p.item.Path.Value) > len(o.item.Path.Value)
}

// wanted are the listeners that a group would attach to if it were alone.
func (c *conversion) wanted(g *group) (list []*section) {
	if g.plain() || g.redirects() {
		list = append(list, c.frontend.plain)
	}
	return append(list, c.frontend.sections(g)...)
}

// orRoot is a path for people.
func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
