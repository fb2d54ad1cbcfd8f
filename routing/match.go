package routing

import (
	"crypto/tls"
	"strings"
)

// DecisionKind says what becomes of a request. The zero value is NoRoute.
type DecisionKind uint8

// The kinds.
const (
	NoRoute     DecisionKind = iota // no route: the router answers that nothing is here
	Serve                           // the route serves it
	Redirect                        // the route asks for a redirect to https
	Exhausted                       // rules were not decided: too much work, see MatchWork
	Misdirected                     // the connection is not for this host: another one has to be made (RFC 9110 section 15.5.20)
)

// Decision is the outcome of Match. Route is nil with NoRoute, Exhausted and Misdirected.
type Decision struct {
	Kind  DecisionKind
	Route *Route
}

// Match returns what becomes of a request. It keeps nothing of the view but in its Matching, whose
// memory grows to what the largest request needs; beyond that it does not allocate.
func (t *Table) Match(v *View) Decision {
	if v.Arrival != nil || t.guarded {
		return v.settled(t.matchArrived(v))
	}
	name, ok := bare(v.Host)
	if !ok && len(v.Host) > 0 {
		return Decision{}
	}
	if hasUpper(name) {
		return v.settled(t.matchFolded(v, name))
	}
	return v.settled(t.hosts.match(v, name, 0))
}

func (t *Table) matchFolded(v *View, host []byte) Decision {
	var folded [maxHost]byte
	name := folded[:len(host)]
	lower(name, host)
	return t.hosts.match(v, name, 0)
}

// match finds the rule for a bare name in lower case, with a tail of that many bytes.
func (h *hosts) match(v *View, name []byte, tail int) Decision {
	g := h.find(name)
	if v.Secure {
		if d := g.serve(v, inSecure); d.Route != nil {
			return d
		}
		w := h.findWild(name)
		if d := w.serve(v, inSecure); d.Route != nil || !h.goesDeep(g, w, tail) {
			return d
		}
		return h.matchDeep(v, name, tail, true)
	}
	d, found := g.plain(v)
	if d.Route != nil {
		return d
	}
	w := h.findWild(name)
	if found {
		// The exact host has decided that there is no redirect.
		d = w.serve(v, inPlain)
	} else {
		d, found = w.plain(v)
	}
	if d.Route != nil || !h.goesDeep(g, w, tail) {
		return d
	}
	return h.matchDeep(v, name, tail, found)
}

// goesDeep reports whether what covers several labels is asked after the exact and the wildcard group of a host, which may be nil. On the pair
// of ports a host that some rule names belongs to its rules: there namespaces own hosts, and what they do not serve is nobody else's.
func (h *hosts) goesDeep(g, w *group, tail int) bool {
	return h.deep.count > 0 && (tail > 0 || g == nil && w == nil)
}

// matchDeep is match for what covers several labels, the longest domain first. decided says that there is no redirect.
func (h *hosts) matchDeep(v *View, name []byte, tail int, decided bool) Decision {
	table := inPlain
	if v.Secure {
		table = inSecure
	}
	rest, ok := above(name, tail)
	if len(name) == tail {
		rest, ok = name, true // a request without a host
	}
	for ; ok; rest, ok = above(rest, tail) {
		g := h.findDeep(rest)
		var d Decision
		if decided {
			d = g.serve(v, table)
		} else {
			d, decided = g.plain(v)
		}
		if d.Route != nil {
			return d
		}
	}
	return Decision{}
}

// matchArrived is Match where the connection matters: it came in by a listener, or hosts ask clients for something of their own.
func (t *Table) matchArrived(v *View) Decision {
	var at Arrival
	if v.Arrival != nil {
		at = *v.Arrival
	}
	bareName, ok := bare(v.Host)
	if !ok && len(v.Host) > 0 {
		return Decision{}
	}
	var buffer [maxHost + tailSize]byte
	name := buffer[:len(bareName)]
	lower(name, bareName)
	if at.Port == "" {
		return t.hosts.matchAsked(v, name, 0, at.Auth, nil)
	}
	l := t.listener(at.Port, v.Secure, name)
	switch {
	case l == nil:
		return Decision{}
	case v.Secure && l.name != at.Listener:
		return Decision{Kind: Misdirected}
	}
	return t.listened.matchAsked(v, append(name, l.tail...), tailSize, at.Auth, l.auth)
}

// matchAsked is match for a client that was asked for something; usual is what the hosts of the listener ask for if they do not say.
func (h *hosts) matchAsked(v *View, name []byte, tail int, asked, usual *ClientAuth) Decision {
	d := h.match(v, name, tail)
	if d.Kind != Serve || !v.Secure {
		return d
	}
	want := d.Route.auth
	if want == nil {
		want = usual
		if asks := h.tls(name, tail).asks; asks != nil {
			want = asks.auth
		}
	}
	if !want.same(asked) {
		return Decision{Kind: Misdirected}
	}
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
	if i = m.climb(i, v.Path, len(m.entries[i].path), inPlain); i >= 0 {
		return Decision{Serve, m.entries[i].route}, true
	}
	return Decision{}, true
}

// SNIDecision is what becomes of a TLS connection.
type SNIDecision struct {
	Passthrough *Route           // the connection belongs to this route; nil = TLS ends here
	Stream      *Route           // when TLS has ended here the connection belongs to this route; nil = there are requests on it
	Silent      bool             // without a Certificate: the connection is closed without a byte, as those are that no listener of a port is for
	Certificate *tls.Certificate // to terminate with: of a route or listener, or the default one; nil = there is none
	Own         bool             // Certificate is that of a route or a listener
	Arrival     *Arrival         // for requests that come by the connection, see View; with its Auth the client is to be asked

	// AuthNamespace is the namespace of the rule or listener that sets Arrival.Auth; "" = the
	// router's own requirement, or none.
	AuthNamespace string
}

// SNI returns what becomes of a connection to the TLS port of OpenShift Routes by the server name of its ClientHello
// (RFC 6066 section 3), "" if there was none. Letter case does not matter; a port
// or a trailing dot is not part of a server name and matches nothing.
//
// The exact host decides before wildcards: its passthrough route takes the
// connection; otherwise, if it has an edge or re-encrypt route, TLS ends here, even
// under a wildcard passthrough route. Without any, a wildcard passthrough route
// takes the connection. The certificate is that of the exact host, else of the
// wildcard, else the default one. So is what clients have to show. Rules for all hosts decide about names that no
// rule is for, and where there is none.
func (t *Table) SNI(name string) SNIDecision {
	d := SNIDecision{Certificate: t.options.DefaultCertificate}
	if name == "" && t.hosts.deep.count == 0 || len(name) > maxHost {
		return d
	}
	var folded [maxHost]byte
	host := folded[:copy(folded[:], name)]
	lower(host, host)
	found := t.hosts.tls(host, 0)
	if d.terminate(&found); found.asks != nil {
		d.Arrival, d.AuthNamespace = &Arrival{Auth: found.asks.auth}, found.asks.key.Namespace
	}
	return d
}

// terminate makes the decision that the records of the hosts lead to.
func (d *SNIDecision) terminate(found *hostTLS) {
	switch {
	case found.taker != nil && found.taker.termination == TermPassthrough:
		*d = SNIDecision{Passthrough: found.taker}
	case found.taker != nil:
		d.Stream = found.taker
	case found.certified != nil:
		d.Certificate, d.Own = found.certified.certificate.get(), true
	}
}

// SNIAt is SNI for a connection to a port of listeners; "" is the TLS port of OpenShift Routes. The listener with the most specific host
// name for the server name has the connection, and none means that there is no certificate.
func (t *Table) SNIAt(port, name string) (d SNIDecision) {
	if port == "" {
		return t.SNI(name)
	}
	if len(name) > maxHost {
		return d
	}
	var buffer [maxHost + tailSize]byte
	host := buffer[:copy(buffer[:], name)]
	lower(host, host)
	l := t.listener(port, true, host)
	if l == nil {
		d.Silent = t.ports[port].silent()
		return d
	}
	d.Arrival, d.Silent = l.arrival, l.stream
	if c := l.certificate(host); c != nil {
		d.Certificate, d.Own = c.get(), true
	}
	found := t.listened.tls(append(host, l.tail...), tailSize)
	if l.stream && found.taker == nil {
		return SNIDecision{Silent: true}
	}
	if d.terminate(&found); d.Passthrough != nil {
		return d
	}
	if l.auth != nil {
		d.AuthNamespace, _, _ = strings.Cut(l.name, "/")
	}
	if found.asks != nil {
		d.Arrival, d.AuthNamespace = &Arrival{Port: port, Listener: l.name, Auth: found.asks.auth}, found.asks.key.Namespace
	}
	return d
}

// Stream returns the route that takes all connections to a port without TLS, nil if there is none: its listener has no host name, and is a Stream.
func (t *Table) Stream(port string) *Route {
	l := t.listener(port, false, nil)
	if l == nil || !l.stream {
		return nil
	}
	var buffer [tailSize]byte
	found := t.listened.tls(append(buffer[:0], l.tail...), tailSize)
	return found.taker
}

// tls merges the records of all groups for a lower-case name, the most specific one first. A host
// belongs to the namespaces of its most specific group. Less specific rules of these namespaces
// supply the missing properties. Rules of other namespaces have no effect on the TLS of the host.
func (h *hosts) tls(name []byte, tail int) (found hostTLS) {
	var owners *group
	add := func(g *group) {
		if g == nil {
			return
		}
		if owners == nil {
			owners = g
		}
		found.add(g.tls(), owners)
	}
	g := h.find(name)
	if add(g); found.taker != nil {
		return found
	}
	w := h.findWild(name)
	if add(w); !h.goesDeep(g, w, tail) {
		return found
	}
	rest, ok := above(name, tail)
	if len(name) == tail {
		rest, ok = name, true // a client that names no server
	}
	for ; ok && found.taker == nil; rest, ok = above(rest, tail) {
		add(h.findDeep(rest))
	}
	return found
}

// add adds the record of a group that is less specific than those before. owners is the most
// specific group.
func (r *hostTLS) add(o hostTLS, owners *group) {
	own := func(route *Route) bool { return route != nil && owners.has(route.key.Namespace) }
	if !r.terminates && own(o.taker) {
		r.taker = o.taker
	}
	r.terminates = r.terminates || o.terminates
	if r.certified == nil && own(o.certified) {
		r.certified = o.certified
	}
	if r.asks == nil && own(o.asks) {
		r.asks = o.asks
	}
}
