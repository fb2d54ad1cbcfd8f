package routing

import "iter"

// Lost says why a rule does not take a request. The zero value is Won.
type Lost uint8

// The reasons, in the order in which they are found.
const (
	Won            Lost = iota // it takes the request, or asks for the redirect
	LostPath                   // its path does not cover that of the request
	LostConditions             // method, header fields or query parameters are not those it asks for
	LostPort                   // it is not served on the port: plain HTTP, or TLS
	LostRedirect               // on this port it would redirect, and another rule of the host decides about that
	LostWildcard               // a rule of the exact host comes before it
	LostHost                   // it is for hosts that no rule names, and one names this
	LostOrder                  // a rule with a longer path, or one that is older or asks for more, comes before it
)

var lostNames = [...]string{"won", "path", "conditions", "port", "redirects", "wildcard", "host", "order"}

// String is a stable word.
func (l Lost) String() string {
	if int(l) < len(lostNames) {
		return lostNames[l]
	}
	return "unknown"
}

// Candidate is a rule for the host of a request, and what became of it.
type Candidate struct {
	Route *Route
	Lost  Lost
}

// Candidates calls yield for each rule for the host of a request, those that wildcards cover it with included, in the order in which
// Match tries them, until it returns false. It asks each what Match asks; d is what that said of the request. It is for explanations.
func (t *Table) Candidates(v *View, d Decision, yield func(Candidate) bool) {
	name, ok := bare(v.Host)
	if !ok && len(v.Host) > 0 {
		return
	}
	host := make([]byte, len(name))
	lower(host, name)
	table := inPlain
	if v.Secure {
		table = inSecure
	}
	groups := t.hosts.covering(host)
	named := !t.hosts.goesDeep(groups[0], groups[1], 0)
	for i, g := range groups {
		for e := range g.tried() {
			c := Candidate{e.route, e.lost(v, table)}
			switch {
			case e.route == d.Route:
				c.Lost = Won
			case c.Lost != Won:
			case i > 1 && named:
				c.Lost = LostHost
			case i > 0 && d.Route != nil && !d.Route.wildcard:
				c.Lost = LostWildcard
			default:
				c.Lost = LostOrder
			}
			if !yield(c) {
				return
			}
		}
	}
}

// covering are the groups that a host in lower case may be served by, nil ones included, in the order in which they are asked.
func (h *hosts) covering(host []byte) []*group {
	all := []*group{h.find(host), h.findWild(host)}
	rest, ok := above(host, 0)
	if len(host) == 0 {
		rest, ok = host, true
	}
	for ; ok && h.deep.count > 0; rest, ok = above(rest, 0) {
		all = append(all, h.findDeep(rest))
	}
	return all
}

// tried calls yield with the entries of g, which may be nil, in the order in which they are tried.
func (g *group) tried() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		switch {
		case g == nil:
			return
		case g.sole != nil:
			e := newEntry(g.sole, 0)
			yield(&e)
			return
		}
		m := g.more
		for _, wanted := range [...]uint8{exact, expression, 0} {
			list := m.entries
			if wanted == expression {
				list = m.expressions
			}
			for i := range list {
				e := &list[i]
				if wanted != expression {
					e = &list[len(list)-1-i]
				}
				if e.tables&(exact|expression) == wanted && !yield(e) {
					return
				}
			}
		}
	}
}

// lost asks an entry by itself whether it takes a request in a table.
func (e *entry) lost(v *View, table uint8) Lost {
	takes := e.covers(v.Path)
	switch {
	case e.tables&exact != 0:
		takes = e.path == string(v.Path)
	case e.tables&expression != 0:
		takes = e.route.conditions.path.Match(v.Path)
	}
	switch {
	case !takes:
		return LostPath
	case !e.takes(v, inAny):
		return LostConditions
	case e.tables&table != 0:
		return Won
	case table == inPlain && e.tables&redirects != 0:
		return LostRedirect
	}
	return LostPort
}
