package controller

import (
	"turnout/controller/source"
)

// Summary is what a list says of a route that the controller knows. Its texts are those of the object.
type Summary struct {
	Kind                 string // "Route", also of a rule of an Ingress, or that of an object of the Gateway API
	Namespace, Name, UID string
	Host                 string   // that it asks for or was given
	Hosts                []string // all of them; nil = Host alone
	Path                 string
	Termination          string // as RouteReport has it
	Admitted             bool
	Reason, Message      string // why it is not admitted
	Notes                int
	Servers              int // endpoints it can be served from
}

// Summaries returns all routes, and the Gateways, ListenerSets and routes of the Gateway API that are ours, in no order. Any goroutine may call it.
func (c *Controller) Summaries() []Summary {
	now := c.cfg.Clock()
	all := make([]Summary, 0, 64)
	for v := range c.views.each(c.views.keys(source.Key{})) {
		r := routeLine(&v)
		if r.Host == "" {
			r.Host = v.kept.object().Spec.Host
		}
		all = append(all, Summary{
			Kind: source.Route.String(), Namespace: r.Namespace, Name: r.Name, UID: string(v.kept.uid), Host: r.Host, Path: r.Path, Termination: r.Termination,
			Admitted: r.Admitted, Reason: r.Reason, Message: r.Message, Notes: len(v.explain(now)), Servers: r.Servers,
		})
	}
	for _, v := range c.views.gateways.ours() {
		if v.listed() {
			all = append(all, v.summary())
		}
	}
	return all
}
