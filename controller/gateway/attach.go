package gateway

import (
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// parent is one of the parents of a route that are ours, and what came of it.
type parent struct {
	ref     gatewayv1.ParentReference
	gateway *gateway
	at      []attachment
	reason  gatewayv1.RouteConditionReason // why nothing came of it
	message string
	lost    map[*listener]struct{} // of at, those where an older route is in the way
}

// attached are the listeners that the route is attached to.
func (p *parent) attached(yield func(attachment) bool) {
	for _, a := range p.at {
		if _, lost := p.lost[a.listener]; !lost && !yield(a) {
			return
		}
	}
}

// why says why the route is attached to no listener; "" = it is.
func (p *parent) why() (gatewayv1.RouteConditionReason, string) {
	if p.reason == "" && len(p.lost) == len(p.at) {
		return gatewayv1.RouteReasonNotAllowedByListeners, "An older route of another kind has a host name of this one"
	}
	return p.reason, p.message
}

// attachment is a listener that a route attaches to, with the host names that they have in common.
type attachment struct {
	*listener
	hosts []string
}

// parentsOf says which listeners a route attaches to, per parent of ours.
func (j *Judge) parentsOf(o *Objects, r *route) []*parent {
	var list []*parent
	for _, ref := range r.parents {
		if p, listeners := j.parent(r, ref); p != nil {
			p.attach(o, r, listeners)
			list = append(list, p)
		}
	}
	return list
}

// parentKey names what a parentRef of a route may mean: the kind is that of a Gateway or a ListenerSet, or another that is none of ours.
func (r *route) parentKey(ref *gatewayv1.ParentReference) Ref {
	kind := string(value(ref.Kind, kindGateway))
	if value(ref.Group, groupName) != groupName {
		kind = ""
	}
	return Ref{kind, source.Key{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(r.ref.Namespace))), Name: string(ref.Name)}}
}

// parent finds what a parentRef names, with the listeners that it has; nil if it is none of ours.
func (j *Judge) parent(r *route, ref gatewayv1.ParentReference) (*parent, []*listener) {
	named := r.parentKey(&ref)
	key := named.Key
	switch named.Kind {
	case kindGateway:
		if g := j.gateways[key]; g != nil {
			return &parent{ref: ref, gateway: g}, g.listeners
		}
	case kindListenerSet:
		if s := j.sets[key]; s.set != nil {
			return &parent{ref: ref, gateway: s.gateway}, s.set.listeners
		}
	}
	return nil, nil
}

// attach looks for the listeners that a parentRef means and that take the route.
func (p *parent) attach(o *Objects, r *route, listeners []*listener) {
	named := slices.DeleteFunc(slices.Clone(listeners), func(l *listener) bool {
		return p.ref.SectionName != nil && *p.ref.SectionName != "" && *p.ref.SectionName != l.spec.Name || p.ref.Port != nil && *p.ref.Port != l.spec.Port
	})
	if len(named) == 0 {
		p.reason, p.message = gatewayv1.RouteReasonNoMatchingParent, "The parent has no listener with this sectionName and port"
		return
	}
	allowed := slices.DeleteFunc(named, func(l *listener) bool {
		return !slices.Contains(l.kinds, r.ref.Kind) || !l.selector.has(o, r.ref.Namespace)
	})
	if len(allowed) == 0 {
		p.reason = gatewayv1.RouteReasonNotAllowedByListeners
		p.message = fmt.Sprintf("No listener takes %ss of namespace %s", r.ref.Kind, r.ref.Namespace)
		return
	}
	for _, l := range allowed {
		if hosts := intersection(l.host, r.hostnames); len(hosts) > 0 {
			p.at = append(p.at, attachment{l, hosts})
		}
	}
	if len(p.at) == 0 {
		p.reason, p.message = gatewayv1.RouteReasonNoMatchingListenerHostname, "No listener has a host name in common with the route"
	}
}
