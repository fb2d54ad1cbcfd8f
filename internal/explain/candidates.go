package explain

import (
	"strings"

	"turnout/routing"
)

// mostCandidates is how many routes of a host an Answer has.
const mostCandidates = 50

// explainOthers lists the routes that could have got the request: those of the table that cover the host, then those that admission knows
// and the table has not.
func (i *inquiry) explainOthers() {
	claimants := map[[2]string]*Claimant{}
	var order []*Claimant
	if i.x.cfg.Claimants != nil && i.host != "" {
		list := i.x.cfg.Claimants(i.host)
		for k := range list {
			c := &list[k]
			claimants[[2]string{c.Namespace, c.Name}] = c
			order = append(order, c)
		}
	}
	listed := map[[2]string]bool{}
	view := i.view
	if view.Host == nil { // there is no request: TLS does not end here
		view = routing.View{Secure: true, Host: []byte(i.host), Path: []byte("/")}
	}
	won := i.found
	if i.route != nil {
		won.Route = i.route
	}
	i.table.Candidates(&view, won, func(c routing.Candidate) bool {
		one := i.candidate(c)
		key := [2]string{one.Namespace, one.Name}
		if known := claimants[key]; known != nil {
			one.Created, one.Origin, one.DNS = known.Created, known.Origin, known.DNS
			if one.Won {
				i.notes(known)
			}
		}
		listed[key] = true
		i.addCandidate(one)
		return true
	})
	for _, c := range order {
		if !listed[[2]string{c.Namespace, c.Name}] {
			i.addCandidate(c.Candidate)
		}
	}
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
	if one.Won {
		return one
	}
	one.Reason, one.Text = lostWords(c.Lost, i.a.Listener.Scheme, r)
	return one
}

// lostWords says why a route of the table does not get a request.
func lostWords(l routing.Lost, scheme string, r *routing.Route) (reason, text string) {
	switch l {
	case routing.LostPath:
		return l.String(), "its path " + r.Path() + " does not cover that of the request"
	case routing.LostConditions:
		return l.String(), "the request is not one that its conditions on method, header fields or parameters let in"
	case routing.LostPort:
		if r.Termination() == routing.TermPassthrough {
			return l.String(), "it passes TLS through, and has no part in requests that end here"
		}
		if scheme == "https" {
			return l.String(), "it has no TLS: it is served at http only"
		}
		return l.String(), "insecureEdgeTerminationPolicy is " + r.Insecure().String() + ": it is served at https only"
	case routing.LostRedirect:
		return l.String(), "it would redirect to https, but another route of the host comes before it"
	case routing.LostWildcard:
		return l.String(), "it is a wildcard, and a route of the host itself takes the request"
	case routing.LostHost:
		return l.String(), "it is for hosts that no route or Ingress names, and one names this host"
	}
	return routing.LostOrder.String(), "another route with a longer path, or an older one, takes the request"
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
