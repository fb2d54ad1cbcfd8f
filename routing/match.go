package routing

import "crypto/tls"

// DecisionKind says what becomes of a request. The zero value is NoRoute.
type DecisionKind uint8

// The kinds.
const (
	NoRoute  DecisionKind = iota // no route: the router answers that nothing is here
	Serve                        // the route serves it
	Redirect                     // the route asks for a redirect to https
)

// Decision is the outcome of Match. Route is nil with NoRoute.
type Decision struct {
	Kind  DecisionKind
	Route *Route
}

// Match returns what becomes of a request. It keeps nothing of the view, and does not allocate unless an
// expression or a long encoded query parameter makes it.
func (t *Table) Match(v *View) Decision {
	name, ok := bare(v.Host)
	if !ok {
		return Decision{}
	}
	if hasUpper(name) {
		return t.matchFolded(v, name)
	}
	return t.match(v, name)
}

func (t *Table) matchFolded(v *View, host []byte) Decision {
	var folded [maxHost]byte
	name := folded[:len(host)]
	lower(name, host)
	return t.match(v, name)
}

// match is Match for a bare name in lower case.
func (t *Table) match(v *View, name []byte) Decision {
	g := t.hosts.find(name)
	if v.Secure {
		if d := g.serve(v, inSecure); d.Route != nil {
			return d
		}
		return t.hosts.findWild(name).serve(v, inSecure)
	}
	if d, found := g.plain(v); d.Route != nil {
		return d
	} else if found {
		// The exact host has decided that there is no redirect.
		return t.hosts.findWild(name).serve(v, inPlain)
	}
	d, _ := t.hosts.findWild(name).plain(v)
	return d
}

// serve returns the route of g, which may be nil, that serves a request in a table.
func (g *group) serve(v *View, table uint8) Decision {
	if g == nil {
		return Decision{}
	}
	if g.sole != nil {
		if g.tables&table == 0 {
			return Decision{}
		}
		return Decision{Serve, g.sole}
	}
	if g.more.special {
		return g.more.servePicked(v, table)
	}
	if i := g.more.search(v.Path, table); i >= 0 {
		return Decision{Serve, g.more.entries[i].route}
	}
	return Decision{}
}

// plain returns what g, which may be nil, makes of a plain request. found says that
// some route of g takes the request, whether it serves plain requests or not.
func (g *group) plain(v *View) (d Decision, found bool) {
	if g == nil {
		return Decision{}, false
	}
	if g.sole != nil {
		if g.tables&redirects != 0 {
			return Decision{Redirect, g.sole}, true
		}
		return g.serve(v, inPlain), true
	}
	m := g.more
	if m.special {
		return m.plainPicked(v)
	}
	i := m.search(v.Path, inAny)
	if i < 0 {
		return Decision{}, false
	}
	if e := &m.entries[i]; e.tables&redirects != 0 {
		return Decision{Redirect, e.route}, true
	}
	// The longest path of all is the longest of the plain ones too, if it is one.
	if i = m.climb(i, v.Path, inPlain); i >= 0 {
		return Decision{Serve, m.entries[i].route}, true
	}
	return Decision{}, true
}

// SNIDecision is what becomes of a TLS connection.
type SNIDecision struct {
	Passthrough *Route           // the connection belongs to this route; nil = TLS ends here
	Certificate *tls.Certificate // to terminate with: of a route, or the default one
	Own         bool             // Certificate is that of a route
}

// SNI returns what becomes of a connection by the server name of its ClientHello
// (RFC 6066 section 3), "" if there was none. Letter case does not matter; a port
// or a trailing dot is not part of a server name and matches nothing.
//
// The exact host decides before wildcards: its passthrough route takes the
// connection; otherwise, if it has an edge or re-encrypt route, TLS ends here, even
// under a wildcard passthrough route. Without any, a wildcard passthrough route
// takes the connection. The certificate is that of the exact host, else of the
// wildcard, else the default one.
func (t *Table) SNI(name string) SNIDecision {
	d := SNIDecision{Certificate: t.options.DefaultCertificate}
	if name == "" || len(name) > maxHost {
		return d
	}
	var folded [maxHost]byte
	host := folded[:copy(folded[:], name)]
	lower(host, host)
	g, w := t.hosts.find(host), t.hosts.findWild(host)
	switch {
	case g.passthrough() != nil:
		return SNIDecision{Passthrough: g.passthrough()}
	case w.passthrough() != nil && !g.terminates():
		return SNIDecision{Passthrough: w.passthrough()}
	case g.certificate() != nil:
		d.Certificate, d.Own = g.certificate().parsed, true
	case w.certificate() != nil:
		d.Certificate, d.Own = w.certificate().parsed, true
	}
	return d
}
