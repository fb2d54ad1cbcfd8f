package controller

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/expose"
	"turnout/controller/gateway"
	"turnout/controller/source"
)

// gatewayViews is what other goroutines may see of the Gateway API.
type gatewayViews struct {
	mu      sync.RWMutex
	objects map[gateway.Ref]gatewayView // those that may have a status
	kinds   map[types.UID]gateway.Ref
	ports   []GatewayPort
}

// gatewayView is what others may know of one object. It is immutable.
type gatewayView struct {
	ref    gateway.Ref
	object metav1.Object
	status any // as gateways.wanted returns it; nil = it is none of ours
	origin string
}

// GatewayPort is a port of a Gateway of ours.
type GatewayPort struct {
	Name      string     // of routing.ListenerSpec.Port
	Gateway   source.Key //
	Number    int32      // as listeners and clients have it
	Protocol  string     // HTTP, TLS, TCP or UDP
	Addresses []string   // of the Gateway
	Local     string     // host:port of this machine that it is opened at, no host for all; "" = it is not
	Closed    string     // why it is not open; "" = it is, or its Service is not there yet
}

// gatewayProtocols are the words of GatewayPort.Protocol.
var gatewayProtocols = map[gateway.PortKind]string{gateway.PortHTTP: "HTTP", gateway.PortTLS: "TLS", gateway.PortTCP: "TCP", gateway.PortUDP: "UDP"}

// GatewayPorts returns the ports of all Gateways that are served, by Gateway and number. It is shared and read-only. Any goroutine may call it.
func (c *Controller) GatewayPorts() []GatewayPort {
	c.views.gateways.mu.RLock()
	defer c.views.gateways.mu.RUnlock()
	return c.views.gateways.ports
}

// setPorts says which ports there are now.
func (v *gatewayViews) setPorts(list []expose.Gateway, places *expose.Places) {
	local := make(map[string]string, len(places.Sockets))
	for _, s := range places.Sockets {
		local[s.Name] = s.Addr
	}
	var all []GatewayPort
	for i := range list {
		key := source.Key{Namespace: list[i].Object.Namespace, Name: list[i].Object.Name}
		a := places.Assigned[key]
		var addresses []string
		if a != nil {
			for _, at := range a.Addresses {
				addresses = append(addresses, at.Value)
			}
		}
		for _, p := range list[i].Ports {
			one := GatewayPort{Name: p.Name, Gateway: key, Number: p.Number, Protocol: gatewayProtocols[p.Kind], Addresses: addresses, Local: local[p.Name]}
			if a != nil && a.Unavailable[p.Name] != "" {
				one.Local, one.Closed = "", a.Unavailable[p.Name]
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b GatewayPort) int {
		return cmp.Or(order(a.Gateway, b.Gateway), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Protocol, b.Protocol))
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ports = all
}

// set says what an object is now; without an object it is gone.
func (v *gatewayViews) set(ref gateway.Ref, object runtime.Object, status any, origin string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if before, ok := v.objects[ref]; ok && v.kinds[before.object.GetUID()] == ref {
		delete(v.kinds, before.object.GetUID())
	}
	about, err := meta.Accessor(object)
	if object == nil || err != nil {
		delete(v.objects, ref)
		return
	}
	if v.objects == nil {
		v.objects, v.kinds = make(map[gateway.Ref]gatewayView), make(map[types.UID]gateway.Ref)
	}
	v.objects[ref] = gatewayView{ref, about, status, origin}
	v.kinds[about.GetUID()] = ref
}

// GatewayOf is GatewayReport for the object of a UID.
func (c *Controller) GatewayOf(uid string) (*GatewayReport, bool) {
	v := &c.views.gateways
	v.mu.RLock()
	ref, ok := v.kinds[types.UID(uid)]
	v.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return c.GatewayReport(ref.Kind, ref.Namespace, ref.Name)
}

func (v *gatewayViews) view(ref gateway.Ref) (gatewayView, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	of, ok := v.objects[ref]
	return of, ok
}

// ours are the objects that this router says something of, or that are Gateways and routes at all, by kind, namespace and name.
func (v *gatewayViews) ours() []gatewayView {
	v.mu.RLock()
	all := slices.Collect(maps.Values(v.objects))
	v.mu.RUnlock()
	all = slices.DeleteFunc(all, func(of gatewayView) bool { return of.status == nil })
	slices.SortFunc(all, func(a, b gatewayView) int {
		return cmp.Or(order(a.ref.Key, b.ref.Key), cmp.Compare(a.ref.Kind, b.ref.Kind))
	})
	return all
}

// GatewayCondition is a condition of an object, or of a part of it, as this router says it.
type GatewayCondition struct {
	Of      string `json:"of,omitempty"` // the part: a parent of a route, a listener; "" = the whole object
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Bad reports that the condition says that something is not as it should be.
func (c *GatewayCondition) Bad() bool {
	switch gatewayv1.ListenerConditionType(c.Type) {
	case gatewayv1.ListenerConditionConflicted, gatewayv1.ListenerConditionType(gatewayv1.RouteConditionPartiallyInvalid):
		return c.Status == string(metav1.ConditionTrue)
	case gatewayv1.ListenerConditionOverlappingTLSConfig, gatewayv1.ListenerConditionType(gatewayv1.GatewayConditionInsecureFrontendValidationMode):
		return false
	}
	return c.Status == string(metav1.ConditionFalse)
}

// Refuses reports that the condition says that the object, or the part, is not served.
func (c *GatewayCondition) Refuses() bool {
	return c.Status == string(metav1.ConditionFalse) && (c.Type == string(gatewayv1.GatewayConditionAccepted) || c.Type == string(gatewayv1.GatewayConditionProgrammed))
}

// String is the condition for people.
func (c *GatewayCondition) String() string {
	text := c.Type + " is " + c.Status + ", " + c.Reason + ": " + c.Message
	if c.Of != "" {
		return c.Of + ": " + text
	}
	return text
}

// conditions are those of the object and of its parts.
func (v *gatewayView) conditions() (list []GatewayCondition) {
	add := func(of string, conditions []metav1.Condition) {
		for _, c := range conditions {
			list = append(list, GatewayCondition{Of: of, Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message})
		}
	}
	switch status := v.status.(type) {
	case *gatewayv1.GatewayClassStatus:
		add("", status.Conditions)
	case *gatewayv1.GatewayStatus:
		add("", status.Conditions)
		for i := range status.Listeners {
			add("listener "+string(status.Listeners[i].Name), status.Listeners[i].Conditions)
		}
	case *gatewayv1.ListenerSetStatus:
		add("", status.Conditions)
		for i := range status.Listeners {
			add("listener "+string(status.Listeners[i].Name), status.Listeners[i].Conditions)
		}
	case *gatewayv1.RouteStatus:
		for i := range status.Parents {
			add(v.parentName(&status.Parents[i].ParentRef), status.Parents[i].Conditions)
		}
	case *gatewayv1.PolicyStatus:
		for i := range status.Ancestors {
			add(v.parentName(&status.Ancestors[i].AncestorRef), status.Ancestors[i].Conditions)
		}
	}
	return list
}

// parentName is what a route is attached to, for people.
func (v *gatewayView) parentName(ref *gatewayv1.ParentReference) string {
	to := parentRef(v.ref.Namespace, ref.Kind, ref.Namespace, ref.Name)
	name := to.Kind + " " + to.Key.String()
	if ref.SectionName != nil && *ref.SectionName != "" {
		name += " listener " + string(*ref.SectionName)
	}
	return name
}

// wrong are the conditions that say what is not as it should be, each once: what is not accepted is not programmed either, and a conflict is why.
func (v *gatewayView) wrong() (list []GatewayCondition) {
	all := v.conditions()
	refused := make(map[string]bool)
	for _, c := range all {
		refused[c.Of] = refused[c.Of] || c.Type == string(gatewayv1.GatewayConditionAccepted) && c.Status == string(metav1.ConditionFalse)
	}
	for _, c := range all {
		follows := c.Type == string(gatewayv1.GatewayConditionProgrammed) || c.Type == string(gatewayv1.ListenerConditionConflicted)
		if c.Bad() && !(follows && refused[c.Of]) {
			list = append(list, c)
		}
	}
	return list
}
