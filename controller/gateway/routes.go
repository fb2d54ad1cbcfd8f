package gateway

import (
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
)

// judged is a route that has a parent of ours.
type judged struct {
	*route
	parents  []*parent
	compiled *compiled
}

// judgeRoutes judges all routes, and counts them at their listeners.
func (j *Judge) judgeRoutes(o *Objects) {
	var all []*judged
	for r := range o.routes {
		if parents := j.parentsOf(o, r); len(parents) > 0 {
			all = append(all, &judged{r, parents, j.compile(o, r)})
		}
	}
	slices.SortFunc(all, func(a, b *judged) int { return older(a.object, b.object) })
	contests(all)
	winners := make(map[*listener]*judged)
	next := make(map[Ref]*Route, len(all))
	for _, r := range all {
		next[r.ref] = j.judgeRoute(r, winners)
	}
	j.replaceRoutes(next)
}

// judgeRoute makes the rules and the status of a route. winners have the listeners that take one route only.
func (j *Judge) judgeRoute(r *judged, winners map[*listener]*judged) *Route {
	var at []attachment
	counted := make(map[*listener]struct{})
	if r.compiled.reason == "" {
		for _, p := range r.parents {
			at = append(at, p.at...)
			for _, a := range p.at {
				if _, twice := counted[a.listener]; !twice {
					counted[a.listener] = struct{}{}
					a.attached++
				}
			}
			if len(p.at) > 0 {
				j.reachAll(p.gateway, r.compiled)
			}
		}
	}
	served := slices.DeleteFunc(at, func(a attachment) bool {
		if a.kind != PortTCP && a.kind != PortUDP {
			return false
		}
		if winners[a.listener] == nil {
			winners[a.listener] = r
		}
		return winners[a.listener] != r
	})
	out := j.expand(r.route, r.compiled, served)
	out.Status = j.routeStatus(r)
	return out
}

// reachAll notes which policies matter to a Gateway because of a route.
func (j *Judge) reachAll(g *gateway, c *compiled) {
	for i := range c.rules {
		for _, b := range c.rules[i].backends {
			j.reach(g, b)
		}
		for _, m := range c.rules[i].mirrors {
			j.reach(g, m.backend)
		}
	}
}

// routeStatus is what the status of a route is to be.
func (j *Judge) routeStatus(r *judged) *gatewayv1.RouteStatus {
	status := &gatewayv1.RouteStatus{}
	accepted, resolved := string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs)
	for _, p := range r.parents {
		list := condition.List{Generation: r.object.GetGeneration()}
		switch {
		case p.reason != "":
			list.False(accepted, string(p.reason), p.message)
		case r.compiled.reason != "":
			list.False(accepted, string(r.compiled.reason), r.compiled.message)
		default:
			list.True(accepted, string(gatewayv1.RouteReasonAccepted), "The route is attached")
			if r.compiled.partly != "" {
				list.True(string(gatewayv1.RouteConditionPartiallyInvalid), string(gatewayv1.RouteReasonUnsupportedValue), r.compiled.partly)
			}
		}
		if r.compiled.refs != "" {
			list.False(resolved, string(r.compiled.refs), r.compiled.refMessage)
		} else {
			list.True(resolved, string(gatewayv1.RouteReasonResolvedRefs), "All references are resolved")
		}
		status.Parents = append(status.Parents, gatewayv1.RouteParentStatus{ParentRef: p.ref, ControllerName: j.cfg.Controller, Conditions: list.Conditions})
	}
	return status
}

// contests settles whose the host names of a listener are that HTTPRoutes and GRPCRoutes have in common: those of the older route. all are in the
// order of age.
func contests(all []*judged) {
	type name struct {
		*listener
		host string
	}
	owner := make(map[name]string)
	both := make(map[*listener]uint8) // which of the two kinds attach
	kinds := map[string]uint8{kindHTTPRoute: 1, kindGRPCRoute: 2}
	for _, r := range all {
		for _, p := range r.parents {
			for _, a := range p.at {
				both[a.listener] |= kinds[r.ref.Kind]
			}
		}
	}
	for _, r := range all {
		if r.compiled.reason != "" {
			continue
		}
		for _, p := range r.parents {
			for _, a := range slices.Clone(p.at) {
				if both[a.listener] != 3 {
					continue
				}
				if slices.ContainsFunc(a.hosts, func(host string) bool { kind := owner[name{a.listener, host}]; return kind != "" && kind != r.ref.Kind }) {
					p.without(a.listener, "An older route of another kind has a host name of this one")
					continue
				}
				for _, host := range a.hosts {
					owner[name{a.listener, host}] = r.ref.Kind
				}
			}
		}
	}
}
