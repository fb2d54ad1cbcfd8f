package explain

import (
	"fmt"
	"slices"

	"turnout/balancer"
	"turnout/proxy"
	"turnout/routing"
)

// mostEndpoints is how many endpoints an Answer has.
const mostEndpoints = 100

// explainRoute says all that is known of the route that gets the request.
func (i *inquiry) explainRoute() {
	r := i.route
	if r == nil {
		i.a.Route = nil
		i.heads()
		return
	}
	if i.a.Route == nil {
		i.a.Route = &Route{}
	}
	p, out := r.Policy(), i.a.Route
	out.Namespace, out.Name, out.Host, out.Path, out.Wildcard = r.Namespace(), r.Name(), r.Host(), r.Path(), r.Wildcard()
	out.Termination, out.HSTS, out.Forwarded = r.Termination().String(), p.HSTS, p.Forwarded.String()
	if r.Termination() != routing.TermNone {
		out.Insecure = r.Insecure().String()
	}
	out.Timeouts = Timeouts{Server: Duration(p.ServerTimeout), Tunnel: Duration(p.TunnelTimeout), Connect: Duration(p.ConnectTimeout), Request: Duration(p.RequestTimeout), Attempt: Duration(p.AttemptTimeout)}
	if f := i.run.forwarded; f != nil && string(f.Path) != string(i.view.Path) {
		out.Rewrite = redacted(string(f.Path) + string(f.Query))
	}
	if r.Listener() != "" {
		i.explainRule(r)
	} else if i.x.cfg.Settings != nil {
		out.Settings = i.x.cfg.Settings(out.Namespace, out.Name)
	}
	i.access(r)
	i.heads()
	i.endpoints(r)
	if r.CookieName() != "" && !r.Termination().Relays() {
		i.a.Cookie = &Cookie{Name: r.CookieName(), Header: p.SessionHeader.IsSet(), Lasts: Duration(p.SessionTimeout), Used: i.run.record.Sticky == proxy.StickyUsed, Sent: i.run.record.Inserted}
	}
	if i.x.cfg.Recent != nil {
		i.a.Recent = i.x.cfg.Recent(r.Namespace(), r.Name())
	}
}

// access says what allow-list and limits make of the client's address.
func (i *inquiry) access(r *routing.Route) {
	p := r.Policy()
	if p.Allow == nil && !p.Rates.Any() {
		return
	}
	addr := i.in.client.Addr()
	a := &Access{AllowList: p.Allow != nil, Allowed: p.Allow == nil || p.Allow.Contains(addr), Limited: p.Rates.Any()}
	if rates := r.Rates(); rates != nil {
		counted, ok := rates.Peek(addr, i.run.now(), p.Rates, !r.Termination().Relays())
		a.Exceeded = !ok
		if p.Rates.Concurrent.On {
			a.Open, a.OpenLimit = counted.Open, p.Rates.Concurrent.N
		}
		if p.Rates.TCP.On {
			a.Connections, a.ConnLimit = counted.Connections, p.Rates.TCP.N
		}
		if p.Rates.HTTP.On {
			a.Requests, a.ReqLimit = counted.Requests, p.Rates.HTTP.N
		}
	}
	i.a.Access = a
}

// endpoints lists the servers of the route.
func (i *inquiry) endpoints(r *routing.Route) {
	if r.Pool() != nil {
		i.a.Algorithm = r.Pool().Algorithm().String()
	}
	if !r.Divided() {
		i.endpointsOf(r.Pool(), 1, "")
		return
	}
	total := 0
	for b := range r.Backends {
		total += b.Weight()
	}
	for b := range r.Backends {
		if p := b.Pool(); p != nil {
			i.endpointsOf(p, float64(b.Weight())/float64(max(total, 1)), b.Key())
		}
	}
}

// endpointsOf lists the servers of a pool that gets a share of the requests; of a backend, "" if there is but one.
func (i *inquiry) endpointsOf(pool *balancer.Pool, share float64, backend string) {
	servers := pool.Servers()
	total := 0
	for _, s := range servers {
		total += s.Weight()
	}
	for _, s := range servers {
		e := endpointOf(s)
		e.Backend = backend
		e.Picked = i.run.endpoint != nil && s.Endpoint() == i.run.endpoint
		if total > 0 && e.Weight > 0 {
			e.Share = fmt.Sprintf("%.3g%%", 100*share*float64(e.Weight)/float64(total))
		}
		if len(i.a.Endpoints) >= mostEndpoints && !e.Picked {
			i.a.MoreOf++
			continue
		}
		i.a.Endpoints = append(i.a.Endpoints, e)
	}
}

// endpointOf is what is known of a server.
func endpointOf(s *balancer.Server) Endpoint {
	e := Endpoint{
		Address: s.Endpoint().Addr().String(), Pod: s.Pod(), Service: s.Service(), Weight: s.Weight(), State: StateUp, Checked: s.Check() != nil,
		Sessions: s.InFlight(), Private: s.Private(), Requests: s.Requests(), Failures: s.Failures(), Protocol: s.Endpoint().Protocol().String(),
	}
	if t := s.Endpoint().TLS(); t != nil {
		e.TLS = verification(t)
	}
	switch {
	case s.Ejected():
		e.State = StateEjected
	case s.Check() != nil && s.Check().Down():
		e.State = StateDown
	case e.Weight == 0:
		e.State = StateIdle
	}
	return e
}

// verification says how the certificate of an endpoint is verified.
func verification(t *balancer.TLS) string {
	if !t.Verify {
		return "not verified"
	}
	if t.ServerName == "" {
		return "verified by the destination CA"
	}
	return "verified by the destination CA for the name " + t.ServerName
}

// heads compares what came in with what goes out.
func (i *inquiry) heads() {
	if f := i.run.forwarded; f != nil {
		c := compare(i.sent, fieldsOf(f))
		line := func(path, query []byte) string { return redacted(string(path) + string(query)) }
		c.Line = string(f.Method) + " " + line(f.Path, f.Query)
		if was := string(i.view.Method) + " " + line(i.view.Path, i.view.Query); was != c.Line {
			c.Was = was
		}
		i.a.Forwarded = c
	}
	if h := i.run.answered; h != nil {
		c := compare(nil, fieldsOf(h))
		c.Line = fmt.Sprint(h.Status)
		if i.a.Outcome.By == ByEndpoint {
			c.Line = "the status of the pod"
			if len(c.Added) == 0 {
				return
			}
		}
		i.a.Answered = c
	}
}

// compare says what makes one list of fields another one.
func compare(before, after []string) *HeadChange {
	c := &HeadChange{}
	left := slices.Clone(before)
	for _, f := range after {
		if k := slices.Index(left, f); k >= 0 {
			left = slices.Delete(left, k, k+1)
			c.Kept = append(c.Kept, f)
		} else {
			c.Added = append(c.Added, f)
		}
	}
	c.Removed = left
	return c
}
