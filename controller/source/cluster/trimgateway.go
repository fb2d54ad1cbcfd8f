package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// trimGatewayAPI takes from an object of the Gateway API what nobody reads, and leaves of a route no copies of words that most routes say and no room
// in lists that JSON was decoded into.
func trimGatewayAPI(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetAnnotations(only(object.GetAnnotations(), unlessApplied))
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		leanRoute(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
		o.Spec.Hostnames, o.Spec.Rules = slices.Clone(o.Spec.Hostnames), slices.Clone(o.Spec.Rules)
		for i := range o.Spec.Rules {
			r := &o.Spec.Rules[i]
			r.Matches, r.Filters, r.BackendRefs = slices.Clone(r.Matches), slices.Clone(r.Filters), slices.Clone(r.BackendRefs)
			for k := range r.Matches {
				if p := r.Matches[k].Path; p != nil {
					share(&p.Type, prefix)
					share(&p.Value, root)
				}
			}
			for k := range r.BackendRefs {
				leanBackend(&r.BackendRefs[k].BackendRef)
			}
		}
	case *gatewayv1.GRPCRoute:
		leanRoute(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
		o.Spec.Hostnames, o.Spec.Rules = slices.Clone(o.Spec.Hostnames), slices.Clone(o.Spec.Rules)
		for i := range o.Spec.Rules {
			r := &o.Spec.Rules[i]
			r.Matches, r.Filters, r.BackendRefs = slices.Clone(r.Matches), slices.Clone(r.Filters), slices.Clone(r.BackendRefs)
			for k := range r.BackendRefs {
				leanBackend(&r.BackendRefs[k].BackendRef)
			}
		}
	case *gatewayv1.TLSRoute:
		leanRoute(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
	case *gatewayv1.TCPRoute:
		leanRoute(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
	case *gatewayv1.UDPRoute:
		leanRoute(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
	}
}

// leanRoute does that with what all kinds of routes have.
func leanRoute(spec *gatewayv1.CommonRouteSpec, status *gatewayv1.RouteStatus) {
	spec.ParentRefs, status.Parents = slices.Clone(spec.ParentRefs), slices.Clone(status.Parents)
	for i := range spec.ParentRefs {
		leanParent(&spec.ParentRefs[i])
	}
	for i := range status.Parents {
		p := &status.Parents[i]
		leanParent(&p.ParentRef)
		p.ControllerName, p.Conditions = word(p.ControllerName), slices.Clone(p.Conditions)
		for k := range p.Conditions {
			c := &p.Conditions[k]
			c.Type, c.Status, c.Reason, c.Message = word(c.Type), word(c.Status), word(c.Reason), word(c.Message)
		}
	}
}

func leanParent(p *gatewayv1.ParentReference) {
	share(&p.Group, groupOfGateways)
	share(&p.Kind, kindOfGateways)
	p.Name = word(p.Name)
	if p.Namespace != nil {
		*p.Namespace = word(*p.Namespace)
	}
}

func leanBackend(b *gatewayv1.BackendRef) {
	share(&b.Group, groupOfServices)
	share(&b.Kind, kindOfServices)
	share(&b.Weight, even)
	b.Name = word(b.Name)
}

// The values that most references have. Objects are read-only, so that all of them can have the same ones.
var (
	groupOfGateways, groupOfServices = new(gatewayv1.Group(gatewayv1.GroupName)), new(gatewayv1.Group(""))
	kindOfGateways, kindOfServices   = new(gatewayv1.Kind("Gateway")), new(gatewayv1.Kind("Service"))
	prefix, root, even               = new(gatewayv1.PathMatchPathPrefix), new("/"), new(int32(1))
)

// share puts usual in the place of a value that is equal.
func share[T comparable](p **T, usual *T) {
	if *p != nil && **p == *usual {
		*p = usual
	}
}
