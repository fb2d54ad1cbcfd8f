package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// trimManagedObject takes from an object of the Gateway API what nobody reads.
func trimManagedObject(object metav1.Object) {
	object.SetManagedFields(nil)
	object.SetAnnotations(only(object.GetAnnotations(), unlessApplied))
}

// usual is the values that most references of routes have. Objects are read-only, so that all of them can have the same ones.
type usual struct {
	groupOfGateways, groupOfServices *gatewayv1.Group
	kindOfGateways, kindOfServices   *gatewayv1.Kind
	prefix                           *gatewayv1.PathMatchType
	root                             *string
	even                             *int32
}

func newUsual() *usual {
	return &usual{
		groupOfGateways: new(gatewayv1.Group(gatewayv1.GroupName)), groupOfServices: new(gatewayv1.Group("")),
		kindOfGateways: new(gatewayv1.Kind("Gateway")), kindOfServices: new(gatewayv1.Kind("Service")),
		prefix: new(gatewayv1.PathMatchPathPrefix), root: new("/"), even: new(int32(1)),
	}
}

// lean leaves of a route no copies of what most routes say, and no room in lists that JSON was decoded into.
func (u *usual) lean(object runtime.Object) {
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		u.route(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
		o.Spec.Hostnames, o.Spec.Rules = slices.Clone(o.Spec.Hostnames), slices.Clone(o.Spec.Rules)
		for i := range o.Spec.Rules {
			r := &o.Spec.Rules[i]
			r.Matches, r.Filters, r.BackendRefs = slices.Clone(r.Matches), slices.Clone(r.Filters), slices.Clone(r.BackendRefs)
			for k := range r.Matches {
				if p := r.Matches[k].Path; p != nil {
					share(&p.Type, u.prefix)
					share(&p.Value, u.root)
				}
			}
			for k := range r.BackendRefs {
				u.backend(&r.BackendRefs[k].BackendRef)
			}
		}
	case *gatewayv1.GRPCRoute:
		u.route(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
		o.Spec.Hostnames, o.Spec.Rules = slices.Clone(o.Spec.Hostnames), slices.Clone(o.Spec.Rules)
		for i := range o.Spec.Rules {
			r := &o.Spec.Rules[i]
			r.Matches, r.Filters, r.BackendRefs = slices.Clone(r.Matches), slices.Clone(r.Filters), slices.Clone(r.BackendRefs)
			for k := range r.BackendRefs {
				u.backend(&r.BackendRefs[k].BackendRef)
			}
		}
	case *gatewayv1.TLSRoute:
		u.route(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
	case *gatewayv1.TCPRoute:
		u.route(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
	case *gatewayv1.UDPRoute:
		u.route(&o.Spec.CommonRouteSpec, &o.Status.RouteStatus)
	}
}

// route does that with what all kinds of routes have.
func (u *usual) route(spec *gatewayv1.CommonRouteSpec, status *gatewayv1.RouteStatus) {
	spec.ParentRefs, status.Parents = slices.Clone(spec.ParentRefs), slices.Clone(status.Parents)
	for i := range spec.ParentRefs {
		u.parent(&spec.ParentRefs[i])
	}
	for i := range status.Parents {
		p := &status.Parents[i]
		u.parent(&p.ParentRef)
		p.ControllerName, p.Conditions = word(p.ControllerName), slices.Clone(p.Conditions)
		for k := range p.Conditions {
			c := &p.Conditions[k]
			c.Type, c.Status, c.Reason, c.Message = word(c.Type), word(c.Status), word(c.Reason), word(c.Message)
		}
	}
}

func (u *usual) parent(p *gatewayv1.ParentReference) {
	share(&p.Group, u.groupOfGateways)
	share(&p.Kind, u.kindOfGateways)
	p.Name = word(p.Name)
	if p.Namespace != nil {
		*p.Namespace = word(*p.Namespace)
	}
}

func (u *usual) backend(b *gatewayv1.BackendRef) {
	share(&b.Group, u.groupOfServices)
	share(&b.Kind, u.kindOfServices)
	share(&b.Weight, u.even)
	b.Name = word(b.Name)
}

// share puts a usual value in the place of one that is equal.
func share[T comparable](p **T, usual *T) {
	if *p != nil && **p == *usual {
		*p = usual
	}
}
