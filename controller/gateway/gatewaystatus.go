package gateway

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
)

// transport is the protocol of the port below what is spoken on it.
func (l *listener) transport() corev1.Protocol {
	if l.kind == PortUDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// status is what a Gateway's is to be.
func (g *gateway) status() *gatewayv1.GatewayStatus {
	list := condition.List{Generation: g.object.Generation}
	g.acceptance(&list)
	g.programming(&list)
	g.resolution(&list)
	status := &gatewayv1.GatewayStatus{}
	attached := int32(0)
	for _, s := range g.sets {
		if s.accepted(g) {
			attached++
		}
	}
	status.AttachedListenerSets = &attached
	if g.assigned != nil {
		status.Addresses = g.assigned.Addresses
	}
	for _, l := range g.listeners {
		status.Listeners = append(status.Listeners, gatewayv1.ListenerStatus{
			Name: l.spec.Name, SupportedKinds: l.supportedKinds(), AttachedRoutes: l.attached, Conditions: l.conditions(g.object.Generation),
		})
		if l.insecure {
			list.True(string(gatewayv1.GatewayConditionInsecureFrontendValidationMode), string(gatewayv1.GatewayReasonConfigurationChanged),
				"Clients with any certificate or none are served: tls.frontend has mode AllowInsecureFallback")
		}
	}
	status.Conditions = list.Conditions
	return status
}

// acceptance says whether the Gateway is valid.
func (g *gateway) acceptance(list *condition.List) {
	kind, invalid := string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayReasonListenersNotValid)
	switch {
	case g.reason != "":
		list.False(kind, string(g.reason), g.message)
	case g.valid == 0:
		list.False(kind, invalid, "No listener is valid")
	case g.valid < len(g.listeners):
		list.True(kind, invalid, fmt.Sprintf("%d of %d listeners are not valid", len(g.listeners)-g.valid, len(g.listeners)))
	default:
		list.True(kind, string(gatewayv1.GatewayReasonAccepted), "The Gateway is valid")
	}
}

// programming says whether the Gateway can be reached.
func (g *gateway) programming(list *condition.List) {
	kind := string(gatewayv1.GatewayConditionProgrammed)
	switch {
	case !g.accepted():
		list.False(kind, string(gatewayv1.GatewayReasonInvalid), "The Gateway is not accepted")
	case g.usable == 0:
		list.False(kind, string(gatewayv1.GatewayReasonInvalid), "No listener can be served")
	case g.assigned != nil && g.assigned.Reason != "":
		list.False(kind, string(g.assigned.Reason), g.assigned.Message)
	case !g.programmed():
		list.False(kind, string(gatewayv1.GatewayReasonAddressNotAssigned), "The Gateway waits for an address")
	default:
		list.True(kind, string(gatewayv1.GatewayReasonProgrammed), cmp.Or(g.assigned.Message, "The Gateway is served"))
	}
}

// resolution says whether all references of the Gateway are resolved.
func (g *gateway) resolution(list *condition.List) {
	kind := string(gatewayv1.GatewayConditionResolvedRefs)
	if g.clientReason != "" {
		list.False(kind, string(g.clientReason), g.clientMessage)
		return
	}
	for _, l := range g.listeners {
		if l.refs != "" {
			list.False(kind, string(gatewayv1.GatewayReasonListenersNotResolved), "Listener "+string(l.spec.Name)+": "+l.refMessage)
			return
		}
	}
	list.True(kind, string(gatewayv1.GatewayReasonResolvedRefs), "All references are resolved")
}

// status is what that of a ListenerSet is to be.
func (s *listenerSet) status(g *gateway) *gatewayv1.ListenerSetStatus {
	list := condition.List{Generation: s.object.Generation}
	accepted, programmed := string(gatewayv1.ListenerSetConditionAccepted), string(gatewayv1.ListenerSetConditionProgrammed)
	no := func(reason gatewayv1.ListenerSetConditionReason, message string) {
		list.False(accepted, string(reason), message)
		list.False(programmed, string(reason), message)
	}
	switch {
	case !s.allowed:
		no(gatewayv1.ListenerSetReasonNotAllowed, "The Gateway takes no ListenerSet of this namespace")
	case !g.accepted():
		list.False(accepted, string(gatewayv1.ListenerSetReasonParentNotAccepted), "The Gateway is not accepted")
		list.False(programmed, reasonParentNotProgrammed, "The Gateway is not accepted")
	case !s.usable():
		no(gatewayv1.ListenerSetReasonListenersNotValid, "No listener is valid")
	default:
		list.True(accepted, string(gatewayv1.ListenerSetReasonAccepted), "The ListenerSet is valid")
		if g.programmed() {
			list.True(programmed, string(gatewayv1.ListenerSetReasonProgrammed), "The ListenerSet is served")
		} else {
			list.False(programmed, reasonParentNotProgrammed, "The Gateway is not programmed")
		}
	}
	status := &gatewayv1.ListenerSetStatus{Conditions: list.Conditions}
	for _, l := range s.listeners {
		status.Listeners = append(status.Listeners, gatewayv1.ListenerEntryStatus{
			Name: l.spec.Name, SupportedKinds: l.supportedKinds(), AttachedRoutes: l.attached, Conditions: l.conditions(s.object.Generation),
		})
	}
	return status
}

// reasonParentNotProgrammed is a reason of Programmed of a ListenerSet that the API names and has no constant for.
const reasonParentNotProgrammed = "ParentNotProgrammed"
