package gateways

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
)

// made returns an empty object of a kind, and the name of the resource.
func made(kind string) (runtime.Object, string) {
	switch kind {
	case "GatewayClass":
		return new(gatewayv1.GatewayClass), "gatewayclasses"
	case "Gateway":
		return new(gatewayv1.Gateway), "gateways"
	case "ListenerSet":
		return new(gatewayv1.ListenerSet), "listenersets"
	case "HTTPRoute":
		return new(gatewayv1.HTTPRoute), "httproutes"
	case "GRPCRoute":
		return new(gatewayv1.GRPCRoute), "grpcroutes"
	case "TLSRoute":
		return new(gatewayv1.TLSRoute), "tlsroutes"
	case "TCPRoute":
		return new(gatewayv1.TCPRoute), "tcproutes"
	case "UDPRoute":
		return new(gatewayv1.UDPRoute), "udproutes"
	case "BackendTLSPolicy":
		return new(gatewayv1.BackendTLSPolicy), "backendtlspolicies"
	}
	return nil, ""
}

// merge returns the status of an object with what is wanted in it, and whether that is a change.
func merge(have runtime.Object, want any, controller gatewayv1.GatewayController, now metav1.Time) (status any, changed bool, err error) {
	switch o := have.(type) {
	case *gatewayv1.GatewayClass:
		if want, ok := want.(*gatewayv1.GatewayClassStatus); ok {
			status, changed = values(condition.Class(o.Status, *want, now))
		}
		return status, changed, nil
	case *gatewayv1.Gateway:
		if want, ok := want.(*gatewayv1.GatewayStatus); ok {
			status, changed = values(condition.Gateway(o.Status, *want, now))
		}
		return status, changed, nil
	case *gatewayv1.ListenerSet:
		if want, ok := want.(*gatewayv1.ListenerSetStatus); ok {
			status, changed = values(condition.ListenerSet(o.Status, *want, now))
		}
		return status, changed, nil
	case *gatewayv1.HTTPRoute:
		return route(&o.Status.RouteStatus, want, controller, now)
	case *gatewayv1.GRPCRoute:
		return route(&o.Status.RouteStatus, want, controller, now)
	case *gatewayv1.TLSRoute:
		return route(&o.Status.RouteStatus, want, controller, now)
	case *gatewayv1.TCPRoute:
		return route(&o.Status.RouteStatus, want, controller, now)
	case *gatewayv1.UDPRoute:
		return route(&o.Status.RouteStatus, want, controller, now)
	case *gatewayv1.BackendTLSPolicy:
		var entries []gatewayv1.PolicyAncestorStatus
		if want, ok := want.(*gatewayv1.PolicyStatus); ok {
			entries = want.Ancestors
		}
		merged, changed, err := condition.Policy(o.Status.Ancestors, entries, controller, now)
		return gatewayv1.PolicyStatus{Ancestors: merged}, changed, err
	}
	return nil, false, errKind
}

// values has a result as one of any type.
func values[T any](status T, changed bool) (any, bool) { return status, changed }

func route(have *gatewayv1.RouteStatus, want any, controller gatewayv1.GatewayController, now metav1.Time) (any, bool, error) {
	var entries []gatewayv1.RouteParentStatus
	if want, ok := want.(*gatewayv1.RouteStatus); ok {
		entries = want.Parents
	}
	merged, changed, err := condition.Route(have.Parents, entries, controller, now)
	if merged == nil {
		merged = []gatewayv1.RouteParentStatus{} // the field is required
	}
	return gatewayv1.RouteStatus{Parents: merged}, changed, err
}
