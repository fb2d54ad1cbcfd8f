package explain

import (
	"fmt"
	"strings"

	"turnout/controller"
	"turnout/controller/source"
	"turnout/routing"
)

// mostCandidates is how many routes of a host an Answer has.
const mostCandidates = 50

// explainOthers lists the routes that could have got the request: those of the table that cover the host, then those that admission knows
// and the table has not.
func (i *inquiry) explainOthers() {
	var known claimants
	var order []*Claimant
	switch gateway := i.gateway(); {
	case gateway != (source.Key{}):
		known = i.gatewayClaimants(gateway)
	case i.x.cfg.Claimants != nil && i.host != "":
		list := i.x.cfg.Claimants(i.host)
		known = make(claimants)
		for k := range list {
			c := &list[k]
			known[claimantKey{c.Kind, c.Namespace, c.Name}] = c
			order = append(order, c)
		}
	}
	if known == nil {
		known = make(claimants)
	}
	for _, c := range known {
		if c.Kind != "" {
			order = append(order, c)
		}
	}
	sortClaimants(order)
	listed := map[claimantKey]bool{}
	if i.nowhere == "" {
		i.tableCandidates(known, listed)
	}
	for _, c := range order {
		if !listed[claimantKey{c.Kind, c.Namespace, c.Name}] && (c.Kind == "" || c.Reason != "") {
			i.addCandidate(c.Candidate)
		}
	}
}

// tableCandidates lists those of the table.
func (i *inquiry) tableCandidates(known claimants, listed map[claimantKey]bool) {
	view := i.view
	if view.Host == nil { // there is no request
		view = routing.View{Secure: i.in.secure, Host: []byte(i.host), Path: []byte("/")}
		if i.port != nil {
			view.Secure, view.Arrival = i.port.Protocol == protocolTLS, &routing.Arrival{Port: i.port.Name}
		}
	}
	won := i.found
	if i.route != nil {
		won.Route = i.route
	}
	i.table.Candidates(&view, won, func(c routing.Candidate) bool {
		one := i.candidate(c)
		key := claimantKey{one.Kind, one.Namespace, one.Name}
		if claimant := known[key]; claimant != nil {
			one.Created, one.Origin, one.DNS = claimant.Created, claimant.Origin, claimant.DNS
			if one.Won {
				i.notes(claimant)
			}
		}
		listed[key] = true
		i.addCandidate(one)
		return true
	})
}

// gateway is the Gateway that the client connects to, if it is one.
func (i *inquiry) gateway() source.Key {
	if i.port != nil {
		return i.port.Gateway
	}
	return i.in.gateway
}

// gatewayClaimants are the routes that want the host at a Gateway, with what keeps them from it. What is wrong with the Gateway itself is noted.
func (i *inquiry) gatewayClaimants(gateway source.Key) claimants {
	all := make(claimants)
	if i.x.cfg.Gateways == nil {
		return all
	}
	for _, r := range i.x.cfg.Gateways.GatewayClaims(gateway, i.host) {
		if r.Kind == source.Gateway.String() || r.Kind == source.ListenerSet.String() {
			for k := range r.Conditions {
				i.trouble = append(i.trouble, fmt.Sprintf("%s %s/%s: %s", r.Kind, r.Namespace, r.Name, &r.Conditions[k]))
			}
			continue
		}
		c := i.gatewayClaimant(&r)
		all[claimantKey{c.Kind, c.Namespace, c.Name}] = c
	}
	return all
}

// gatewayClaimant is a route of the Gateway API as explanations have it.
func (i *inquiry) gatewayClaimant(r *controller.GatewayReport) *Claimant {
	c := &Claimant{Candidate: Candidate{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Host: strings.Join(r.Hosts, ", "), Origin: r.Origin}}
	if !r.Created.IsZero() {
		c.Created = &r.Created
	}
	for k := range r.Conditions {
		condition := &r.Conditions[k]
		if condition.Refuses() && c.Reason == "" {
			c.Reason, c.Text = ReasonRejected, condition.String()
			continue
		}
		c.Notes = append(c.Notes, condition.String())
	}
	return c
}

// notes remembers what of the route that won has no effect.
func (i *inquiry) notes(c *Claimant) { i.a.Route = &Route{Origin: c.Origin, Notes: c.Notes} }

func (i *inquiry) addCandidate(c Candidate) {
	if len(i.a.Candidates) < mostCandidates || c.Won {
		i.a.Candidates = append(i.a.Candidates, c)
		return
	}
	i.a.More++
}

// candidate is a route of the table.
func (i *inquiry) candidate(c routing.Candidate) Candidate {
	r := c.Route
	one := Candidate{
		Namespace: r.Namespace(), Name: r.Name(), Host: r.Host(), Path: r.Path(), Wildcard: r.Wildcard(), Termination: r.Termination().String(),
		Won: r == i.route || c.Lost == routing.Won && i.route == nil,
	}
	if one.Listener = r.Listener(); one.Listener != "" {
		one.Kind, one.Asks, one.Wildcard = i.kind(r), r.Asks(), false
	}
	if one.Won {
		return one
	}
	one.Reason, one.Text = i.lostWords(&c)
	return one
}

// kind is what a route of the table is made of; "" = a Route, or it is not known.
func (i *inquiry) kind(r *routing.Route) string {
	if r.Listener() == "" || i.x.cfg.Gateways == nil {
		return ""
	}
	if of, ok := i.x.cfg.Gateways.GatewayOf(r.Key().UID); ok {
		return of.Kind
	}
	return ""
}

// lostWords says why a route of the table does not get a request.
func (i *inquiry) lostWords(c *routing.Candidate) (reason, text string) {
	l, r := c.Lost, c.Route
	switch l {
	case routing.LostPath:
		return l.String(), "its path " + r.Path() + " does not cover that of the request"
	case routing.LostMethod:
		return l.String(), "it is for the method " + c.Asks
	case routing.LostHeader:
		return l.String(), "it asks for the header " + c.Asks
	case routing.LostQuery:
		return l.String(), "it asks for the query parameter " + c.Asks
	case routing.LostPort:
		return l.String(), i.portWords(r)
	case routing.LostRedirect:
		return l.String(), "it would redirect to https, but another route of the host comes before it"
	case routing.LostWildcard:
		return l.String(), "it is a wildcard, and a route of the host itself takes the request"
	case routing.LostHost:
		return l.String(), "it is for hosts that no route or Ingress names, and one names this host"
	case routing.LostListener:
		return l.String(), "its listener is less specific than " + i.a.Listener.Name + ", which has the host to itself"
	case routing.LostWork:
		return l.String(), "it was not decided: the rules of namespace " + r.Namespace() + " take more work for this request than they may"
	case routing.LostConnection:
		return l.String(), "the connection was made for another host: clients come again on one of their own"
	}
	if winner := i.winner(); winner != nil && r.Listener() != "" {
		return routing.LostOrder.String(), fmt.Sprintf("%s/%s comes before it: %s", winner.Namespace(), winner.Name(), winner.Before(r))
	}
	return routing.LostOrder.String(), "another route with a longer path, or an older one, takes the request"
}

// winner is the route that the request goes to, nil if there is none.
func (i *inquiry) winner() *routing.Route {
	if i.route != nil {
		return i.route
	}
	return i.found.Route
}

// portWords says why a route is not served at the port.
func (i *inquiry) portWords(r *routing.Route) string {
	switch {
	case r.Termination() == routing.TermPassthrough:
		return "it passes TLS through, and has no part in requests that end here"
	case i.in.secure:
		return "it has no TLS: it is served at http only"
	}
	return "insecureEdgeTerminationPolicy is " + r.Insecure().String() + ": it is served at https only"
}

// bareHost is an authority without port and trailing dot, in lower case.
func bareHost(authority []byte) string {
	host := strings.ToLower(string(authority))
	if k := strings.LastIndexByte(host, ':'); k >= 0 && k > strings.LastIndexByte(host, ']') && strings.IndexFunc(host[k+1:], notDigit) < 0 {
		host = host[:k]
	}
	return strings.TrimSuffix(host, ".")
}

func notDigit(c rune) bool { return c < '0' || c > '9' }
