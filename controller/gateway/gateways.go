package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
	"turnout/controller/gateway/parameters"
	"turnout/controller/source"
	"turnout/routing"
)

// gateway is a Gateway of ours, as it is judged.
type gateway struct {
	key       source.Key
	object    *gatewayv1.Gateway
	assigned  *Assigned // nil = nothing is known yet
	listeners []*listener
	sets      []*listenerSet // in the order in which they count

	parameters *parameters.Parameters // nil = they cannot be used
	refs       refs                   // what it refers to, with its listeners and sets

	reason  gatewayv1.GatewayConditionReason // why it is not accepted, but for its listeners
	message string

	client        *routing.CertificateSpec // shown to endpoints; nil = none
	clientReason  gatewayv1.GatewayConditionReason
	clientMessage string

	valid  int // own listeners that are accepted
	usable int // listeners that can be served, those of sets included
}

// listenerSet is a ListenerSet of a Gateway of ours.
type listenerSet struct {
	key       source.Key
	object    *gatewayv1.ListenerSet
	allowed   bool
	listeners []*listener
}

// accepted reports that the Gateway has something to serve.
func (g *gateway) accepted() bool { return g.reason == "" && g.valid > 0 }

// serves reports that the table is to have its listeners. Parameters that cannot be used change nothing: the router that serves the Gateway goes on.
func (g *gateway) serves() bool {
	return (g.reason == "" || g.reason == gatewayv1.GatewayReasonInvalidParameters) && g.valid > 0
}

// programmed reports that the Gateway can be reached.
func (g *gateway) programmed() bool {
	return g.accepted() && g.usable > 0 && g.assigned != nil && g.assigned.Reason == "" && len(g.assigned.Addresses) > 0
}

// usable reports that an entry of an allowed set can be served.
func (s *listenerSet) usable() bool { return slices.ContainsFunc(s.listeners, (*listener).usable) }

// accepted reports that the set counts as attached to its Gateway.
func (s *listenerSet) accepted(g *gateway) bool { return s.allowed && g.accepted() && s.usable() }

// gatewayOf judges a Gateway with its listeners and those of its sets, but for what routes say.
func (j *Judge) gatewayOf(o *Objects, key source.Key, object *gatewayv1.Gateway, sets []*gatewayv1.ListenerSet) *gateway {
	g := &gateway{key: key, object: object, assigned: o.Assigned.Get(key), refs: newRefs()}
	j.gatewayRun(o, g)
	all := j.refs
	j.refs = &g.refs // the router that serves the Gateway is to have these
	defer func() {
		all.add(&g.refs)
		j.refs = all
	}()
	j.gatewaySpec(o, g)
	owner := Ref{Kind: kindGateway, Key: key}
	for i := range object.Spec.Listeners {
		g.listeners = append(g.listeners, newListener(g, owner, &object.Spec.Listeners[i]))
	}
	slices.SortFunc(sets, func(a, b *gatewayv1.ListenerSet) int { return older(a, b) })
	selector := allowedListeners(object)
	for _, set := range sets {
		s := &listenerSet{key: source.Key{Namespace: set.Namespace, Name: set.Name}, object: set}
		if s.allowed = selector.has(o, set.Namespace); s.allowed {
			for i := range set.Spec.Listeners {
				spec := gatewayv1.Listener(set.Spec.Listeners[i])
				s.listeners = append(s.listeners, newListener(g, Ref{Kind: kindListenerSet, Key: s.key}, &spec))
			}
		}
		g.sets = append(g.sets, s)
	}
	g.names()
	g.conflicts()
	for l := range g.all {
		j.listenerTLS(o, l)
		if why, closed := g.unavailable(l); closed && l.conflict == "" {
			l.closed = l.reason == "" && !l.broken
			l.reject(string(gatewayv1.ListenerReasonPortUnavailable), fmt.Sprintf("Port %d cannot be opened: %s", l.spec.Port, why))
		}
		if l.usable() {
			g.usable++
		}
	}
	for _, l := range g.listeners {
		if l.reason == "" && l.conflict == "" {
			g.valid++
		}
	}
	g.overlaps()
	return g
}

// all are the listeners of the Gateway and of its sets, in the order in which they count.
func (g *gateway) all(yield func(*listener) bool) {
	for _, l := range g.listeners {
		if !yield(l) {
			return
		}
	}
	for _, s := range g.sets {
		for _, l := range s.listeners {
			if !yield(l) {
				return
			}
		}
	}
}

// names rejects listeners whose names stand twice in one object, which the API does not let in.
func (g *gateway) names() {
	seen := make(map[string]struct{})
	for l := range g.all {
		if _, twice := seen[l.name]; twice {
			l.reject(string(gatewayv1.ListenerReasonUnsupportedValue), "Another listener has the same name")
		}
		seen[l.name] = struct{}{}
	}
}

func (g *gateway) unavailable(l *listener) (why string, closed bool) {
	if g.assigned == nil {
		return "", false
	}
	why, closed = g.assigned.Unavailable[l.port]
	return why, closed
}

// allowedListeners says whose ListenerSets a Gateway takes.
func allowedListeners(object *gatewayv1.Gateway) namespaceSelector {
	if object.Spec.AllowedListeners == nil || object.Spec.AllowedListeners.Namespaces == nil {
		return namespaceSelector{}
	}
	n := object.Spec.AllowedListeners.Namespaces
	selector, err := newNamespaceSelector(value(n.From, gatewayv1.NamespacesFromNone), n.Selector, object.Namespace)
	if err != nil {
		return namespaceSelector{}
	}
	return selector
}

// gatewaySpec judges what a Gateway says besides its listeners.
func (j *Judge) gatewaySpec(o *Objects, g *gateway) {
	spec := &g.object.Spec
	for _, a := range spec.Addresses {
		if kind := value(a.Type, gatewayv1.IPAddressType); kind != gatewayv1.IPAddressType && kind != gatewayv1.HostnameAddressType && g.reason == "" {
			g.reason, g.message = gatewayv1.GatewayReasonUnsupportedAddress, fmt.Sprintf("Addresses of type %s are not supported; supported: IPAddress, Hostname", kind)
		}
	}
	if spec.TLS == nil || spec.TLS.Backend == nil || spec.TLS.Backend.ClientCertificateRef == nil {
		return
	}
	var err *refError
	if g.client, err = j.secret(o, kindGateway, g.key.Namespace, spec.TLS.Backend.ClientCertificateRef); err != nil {
		g.clientReason, g.clientMessage = gatewayv1.GatewayReasonInvalidClientCertificateRef, err.message
		if err.notPermitted {
			g.clientReason = gatewayv1.GatewayReasonRefNotPermitted
		}
	}
}

// gatewayRun judges how a Gateway is to be run.
func (j *Judge) gatewayRun(o *Objects, g *gateway) {
	if j.cfg.Only != (source.Key{}) {
		g.parameters = new(parameters.Parameters) // the process that writes objects judges them
		return
	}
	name := string(g.object.Spec.GatewayClassName)
	list := condition.List{Conditions: j.result.Classes[source.Key{Name: name}].Conditions}
	var err error
	if g.parameters, err = j.gatewayParameters(o, g.object); err != nil {
		g.reason, g.message = gatewayv1.GatewayReasonInvalidParameters, err.Error()
	} else if !list.Is(string(gatewayv1.GatewayClassConditionStatusAccepted)) {
		g.parameters, g.reason, g.message = nil, gatewayv1.GatewayReasonInvalidParameters, "GatewayClass "+name+" is not accepted"
	}
}

// older orders objects by age, then by namespace and name.
func older(a, b metav1.Object) int {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return cmp.Or(at.Compare(bt.Time), strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// ports are those that the listeners need, those among them that cannot be opened: else nobody would try again.
func (g *gateway) ports() []Port {
	var list []Port
	seen := make(map[string]struct{})
	for l := range g.all {
		if _, twice := seen[l.port]; twice || !l.serves() && (!l.closed || g.reason != "") {
			continue
		}
		seen[l.port] = struct{}{}
		list = append(list, Port{Name: l.port, Number: l.spec.Port, Protocol: l.transport(), Kind: l.kind})
	}
	slices.SortFunc(list, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(string(a.Protocol), string(b.Protocol)))
	})
	return list
}
