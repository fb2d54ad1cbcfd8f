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

// Match returns what becomes of a request. host is the Host header or :authority as
// received: upper case, a port in digits and one trailing dot are allowed for. path
// is the request path without the query, as received; it is not decoded. secure is
// true for requests over terminated TLS. Match keeps neither slice and does not
// allocate.
func (t *Table) Match(secure bool, host, path []byte) Decision {
	name, ok := bare(host)
	if !ok {
		return Decision{}
	}
	if hasUpper(name) {
		return t.matchFolded(secure, name, path)
	}
	return t.match(secure, name, path)
}

func (t *Table) matchFolded(secure bool, host, path []byte) Decision {
	var folded [maxHost]byte
	name := folded[:len(host)]
	lower(name, host)
	return t.match(secure, name, path)
}

// match is Match for a bare name in lower case.
func (t *Table) match(secure bool, name, path []byte) Decision {
	g := t.hosts.find(name)
	if secure {
		if d := g.serve(path, inSecure); d.Route != nil {
			return d
		}
		return t.hosts.findWild(name).serve(path, inSecure)
	}
	if d, found := g.plain(path); d.Route != nil {
		return d
	} else if found {
		// The exact host has decided that there is no redirect.
		return t.hosts.findWild(name).serve(path, inPlain)
	}
	d, _ := t.hosts.findWild(name).plain(path)
	return d
}

// serve returns the route of g, which may be nil, that serves a path in a table.
func (g *group) serve(path []byte, table uint8) Decision {
	if g == nil {
		return Decision{}
	}
	if g.sole != nil {
		if g.tables&table == 0 {
			return Decision{}
		}
		return Decision{Serve, g.sole}
	}
	if i := g.more.search(path, table); i >= 0 {
		return Decision{Serve, g.more.entries[i].route}
	}
	return Decision{}
}

// plain returns what g, which may be nil, makes of a plain request. found says that
// some route of g covers the path, whether it serves plain requests or not.
func (g *group) plain(path []byte) (d Decision, found bool) {
	if g == nil {
		return Decision{}, false
	}
	if g.sole != nil {
		if g.tables&redirects != 0 {
			return Decision{Redirect, g.sole}, true
		}
		return g.serve(path, inPlain), true
	}
	m := g.more
	i := m.search(path, inAny)
	if i < 0 {
		return Decision{}, false
	}
	if e := &m.entries[i]; e.tables&redirects != 0 {
		return Decision{Redirect, e.route}, true
	}
	// The longest path of all is the longest of the plain ones too, if it is one.
	if i = m.climb(i, path, inPlain); i >= 0 {
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
