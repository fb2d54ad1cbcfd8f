package routing

import (
	"bytes"
	"iter"

	"turnout/internal/expression"
)

// Lost says why a rule does not take a request. The zero value is Won.
type Lost uint8

// The reasons, in the order in which they are found.
const (
	Won            Lost = iota // it takes the request, or asks for the redirect
	LostPath                   // its path does not cover that of the request
	LostMethod                 // it asks for another method
	LostHeader                 // it asks for a header field that the request has not, or not with this value
	LostQuery                  // it asks for a query parameter that the request has not, or not with this value
	LostPort                   // it is not served on the port: plain HTTP, or TLS
	LostRedirect               // on this port it would redirect, and another rule of the host decides about that
	LostWildcard               // a rule of the exact host comes before it
	LostHost                   // it is for hosts that no rule names, and one names this
	LostListener               // it is of a listener that is less specific than another one of the port, which has the host to itself
	LostConnection             // it takes requests of connections that began for its host only
	LostOrder                  // a rule with a longer path, or one that is older or asks for more, comes before it
	LostWork                   // not decided: its namespace had used up its work
)

var lostNames = [...]string{"won", "path", "method", "header", "query", "port", "redirects", "wildcard", "host", "listener", "connection", "order", "work"}

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
	Asks  string // the condition that does not hold, for people, with LostMethod, LostHeader and LostQuery
}

// Candidates calls yield for each rule for the host of a request until yield returns false. The
// rules come in the order in which Match tries them, and include wildcards that cover the host. On
// a port with listeners they include the rules of all listeners for the host; the listener that
// decides comes first. It evaluates the conditions of each rule, within the work of one request for
// all. d is the decision of Match. Use it for explanations.
func (t *Table) Candidates(v *View, d Decision, yield func(Candidate) bool) {
	v.begun = false
	name, ok := bare(v.Host)
	if !ok && len(v.Host) > 0 {
		return
	}
	host := make([]byte, len(name), len(name)+tailSize)
	lower(host, name)
	if v.Arrival != nil && v.Arrival.Port != "" {
		t.candidatesAt(v, d, host, yield)
		return
	}
	table := inPlain
	if v.Secure {
		table = inSecure
	}
	groups := t.hosts.covering(host, 0)
	named := !t.hosts.goesDeep(groups[0], groups[1], 0)
	for i, g := range groups {
		for e := range g.tried() {
			c := e.candidate(v, table, d, i)
			if c.Lost >= LostWildcard && i > 1 && named {
				c.Lost = LostHost
			}
			if !yield(c) {
				return
			}
		}
	}
}

// candidatesAt is Candidates for a port with listeners.
func (t *Table) candidatesAt(v *View, d Decision, host []byte, yield func(Candidate) bool) {
	for n, l := range t.ports[v.Arrival.Port].covering(host) {
		if l.secure != v.Secure {
			continue
		}
		table := inPlain
		switch {
		case l.stream:
			table = inSwitch
		case l.secure:
			table = inSecure
		}
		for i, g := range t.listened.covering(append(host, l.tail...), tailSize) {
			for e := range g.tried() {
				c := e.candidate(v, table, d, i)
				if n > 0 && c.Lost != Won {
					c.Lost, c.Asks = LostListener, ""
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// covering are the listeners whose host names cover a host in lower case, the most specific one first.
func (p port) covering(host []byte) (list []*listener) {
	add := func(key string) {
		if l := p[key]; l != nil {
			list = append(list, l)
		}
	}
	add(string(host))
	for rest := host; ; rest = rest[1:] {
		i := bytes.IndexByte(rest, '.')
		if i < 0 {
			break
		}
		rest = rest[i:]
		add(string(rest))
	}
	if len(host) > 0 {
		add("")
	}
	return list
}

// candidate says what became of an entry of the group with a number.
func (e *entry) candidate(v *View, table uint8, d Decision, group int) Candidate {
	c := Candidate{Route: e.route}
	if e.route == d.Route {
		return c
	}
	if c.Lost, c.Asks = e.lost(v, table); c.Lost != Won {
		return c
	}
	switch {
	case d.Kind == Misdirected:
		c.Lost = LostConnection
	case group > 0 && d.Route != nil && !d.Route.wildcard:
		c.Lost = LostWildcard
	default:
		c.Lost = LostOrder
	}
	return c
}

// covering are the groups that a host in lower case with a tail may be served by, nil ones included, in the order in which they are asked.
func (h *hosts) covering(host []byte, tail int) []*group {
	all := []*group{h.find(host), h.findWild(host)}
	rest, ok := above(host, tail)
	if len(host) == tail {
		rest, ok = host, true
	}
	for ; ok && h.deep.count > 0; rest, ok = above(rest, tail) {
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
		for _, wanted := range [...]uint8{exact, expressed, 0} {
			list := m.entries
			if wanted == expressed {
				list = m.expressions
			}
			for i := range list {
				e := &list[i]
				if wanted != expressed {
					e = &list[len(list)-1-i]
				}
				if e.tables&(exact|expressed) == wanted && !yield(e) {
					return
				}
			}
		}
	}
}

// asked evaluates all conditions of an entry except a path that is not an expression.
func (e *entry) asked(v *View, m *Matching) (result expression.Result, l Lost, which *valueCondition) {
	c := e.route.conditions
	if !m.spend(ruleWork) {
		return expression.Undecided, LostWork, nil
	}
	if e.tables&expressed != 0 {
		if r := m.matches(c.path, v.Path); r != expression.Yes {
			return r, LostPath, nil
		}
	}
	if e.tables&asks == 0 {
		return expression.Yes, Won, nil
	}
	return c.failing(v, m)
}

// lost asks an entry by itself whether it takes a request in a table, and which condition does not hold.
func (e *entry) lost(v *View, table uint8) (l Lost, asks string) {
	takes := e.covers(v.Path)
	switch {
	case table == inSwitch:
		takes = true // nobody sees a path
	case e.tables&exact != 0:
		takes = e.path == string(v.Path)
	}
	if !takes && e.tables&expressed == 0 {
		return LostPath, ""
	}
	m := v.begin()
	m.turn(e.route.key.Namespace, 0)
	result, condition, which := e.asked(v, m)
	switch {
	case result == expression.Undecided:
		return LostWork, ""
	case condition == LostMethod:
		return LostMethod, e.route.conditions.method
	case which != nil:
		return condition, which.String()
	case result == expression.No:
		return LostPath, ""
	case e.tables&table != 0:
		return Won, ""
	case table == inPlain && e.tables&redirects != 0:
		return LostRedirect, ""
	}
	return LostPort, ""
}
