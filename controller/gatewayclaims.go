package controller

import (
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway"
	"turnout/controller/source"
)

// GatewayClaims returns what has to do with a host, in lower case, at a Gateway of ours: the Gateway and its ListenerSets, then the routes that name one of
// these and the host, or none; each with the conditions that say what is not as it should be, and with none if all of it is. Any goroutine may call it.
func (c *Controller) GatewayClaims(of source.Key, host string) (list []GatewayReport) {
	all := c.views.gateways.ours()
	parents := map[gateway.Ref]bool{{Kind: source.Gateway.String(), Key: of}: true}
	for i := range all {
		if set, ok := all[i].object.(*gatewayv1.ListenerSet); ok && parents[parentRef(set.Namespace, nil, set.Spec.ParentRef.Namespace, set.Spec.ParentRef.Name)] {
			parents[all[i].ref] = true
		}
	}
	add := func(v *gatewayView) {
		r := v.report()
		r.Conditions = v.wrong()
		list = append(list, r)
	}
	for i := range all {
		if parents[all[i].ref] {
			add(&all[i])
		}
	}
	for i := range all {
		if status, ok := all[i].status.(*gatewayv1.RouteStatus); ok && all[i].wants(host) && names(status, all[i].ref.Namespace, parents) {
			add(&all[i])
		}
	}
	return list
}

// parentRef is what a reference of an object of a namespace names.
func parentRef(of string, kind *gatewayv1.Kind, namespace *gatewayv1.Namespace, name gatewayv1.ObjectName) gateway.Ref {
	ref := gateway.Ref{Kind: source.Gateway.String(), Key: source.Key{Namespace: of, Name: string(name)}}
	if kind != nil {
		ref.Kind = string(*kind)
	}
	if namespace != nil {
		ref.Namespace = string(*namespace)
	}
	return ref
}

// names reports whether a route of a namespace names one of parents.
func names(status *gatewayv1.RouteStatus, namespace string, parents map[gateway.Ref]bool) bool {
	for i := range status.Parents {
		p := &status.Parents[i].ParentRef
		if parents[parentRef(namespace, p.Kind, p.Namespace, p.Name)] {
			return true
		}
	}
	return false
}

// wants reports whether a route is for a host, or for all.
func (v *gatewayView) wants(host string) bool {
	var list []gatewayv1.Hostname
	switch o := v.object.(type) {
	case *gatewayv1.HTTPRoute:
		list = o.Spec.Hostnames
	case *gatewayv1.GRPCRoute:
		list = o.Spec.Hostnames
	case *gatewayv1.TLSRoute:
		list = o.Spec.Hostnames
	}
	for _, h := range list {
		name := strings.ToLower(string(h))
		if suffix, wild := strings.CutPrefix(name, "*"); name == host || wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return len(list) == 0
}
