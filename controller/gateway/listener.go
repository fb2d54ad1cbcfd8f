package gateway

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
	"turnout/controller/source"
	"turnout/routing"
)

// listener is one of a Gateway or of a ListenerSet, as it is judged.
type listener struct {
	gateway *gateway
	owner   Ref // the Gateway or the ListenerSet that has it
	spec    gatewayv1.Listener
	name    string // of routing.ListenerSpec
	port    string // the same
	host    string // "" = any
	kind    PortKind

	kinds      []string // of routes that may attach, as kinds are called
	badKinds   bool     // some kind that is asked for cannot attach
	selector   namespaceSelector
	reason     string // why it is not accepted; "" = it is
	message    string
	conflict   string // the reason of a conflict; "" = none
	refs       string // why not all references are resolved; "" = they are
	refMessage string
	broken     bool // what is not resolved leaves nothing to serve
	closed     bool // it is not accepted because its port cannot be opened, and for nothing else

	certificates []*routing.CertificateSpec
	auth         *routing.ClientAuthSpec
	insecure     bool // client certificates are asked for and not looked at
	overlaps     bool // its host names are among those of another listener of the port, or the other way round

	attached int32
	winner   Ref  // of TCP and UDP: the route that has the traffic
	mixed    bool // HTTPRoutes and GRPCRoutes would attach
}

// kindsOf are the kinds of routes that a protocol may have.
var kindsOf = map[gatewayv1.ProtocolType][]string{
	gatewayv1.HTTPProtocolType:  {kindHTTPRoute, kindGRPCRoute},
	gatewayv1.HTTPSProtocolType: {kindHTTPRoute, kindGRPCRoute},
	gatewayv1.TLSProtocolType:   {kindTLSRoute},
	gatewayv1.TCPProtocolType:   {kindTCPRoute},
	gatewayv1.UDPProtocolType:   {kindUDPRoute},
}

// newListener looks at what a listener says by itself.
func newListener(g *gateway, owner Ref, spec *gatewayv1.Listener) *listener {
	l := &listener{gateway: g, owner: owner, spec: *spec, host: hostname(spec.Hostname)}
	l.name = owner.Kind + "/" + owner.Namespace + "/" + owner.Name + "/" + string(spec.Name)
	l.port = PortName(g.key, spec.Port, spec.Protocol == gatewayv1.UDPProtocolType)
	switch spec.Protocol {
	case gatewayv1.HTTPProtocolType:
		l.kind = PortHTTP
	case gatewayv1.HTTPSProtocolType, gatewayv1.TLSProtocolType:
		l.kind = PortTLS
	case gatewayv1.TCPProtocolType:
		l.kind, l.host = PortTCP, ""
	case gatewayv1.UDPProtocolType:
		l.kind, l.host = PortUDP, ""
	default:
		l.reject(string(gatewayv1.ListenerReasonUnsupportedProtocol), "Protocol "+strconv.Quote(string(spec.Protocol))+" is unknown")
	}
	if spec.Protocol == gatewayv1.HTTPSProtocolType && l.passthrough() {
		l.reject(string(gatewayv1.ListenerReasonUnsupportedValue), "TLS of a listener with protocol HTTPS ends here: mode Passthrough needs protocol TLS")
	}
	l.allow()
	return l
}

// PortName names the socket of a port of a Gateway.
func PortName(g source.Key, number gatewayv1.PortNumber, udp bool) string {
	name := g.Namespace + "/" + g.Name + ":" + strconv.Itoa(int(number))
	if udp {
		name += "/udp"
	}
	return name
}

// reject says why the listener is not accepted, unless something was said before.
func (l *listener) reject(reason, message string) {
	if l.reason == "" {
		l.reason, l.message = reason, message
	}
}

// unresolved says which reference cannot be resolved, unless something was said before.
func (l *listener) unresolved(reason, message string) {
	if l.refs == "" {
		l.refs, l.refMessage = reason, message
	}
}

// passthrough reports that TLS of the listener ends at endpoints.
func (l *listener) passthrough() bool {
	return l.spec.TLS != nil && l.spec.TLS.Mode != nil && *l.spec.TLS.Mode == gatewayv1.TLSModePassthrough
}

// terminates reports that TLS ends at the listener.
func (l *listener) terminates() bool { return l.kind == PortTLS && !l.passthrough() }

// allow says which routes may attach.
func (l *listener) allow() {
	supported := kindsOf[l.spec.Protocol]
	allowed := l.spec.AllowedRoutes
	if allowed == nil {
		allowed = &gatewayv1.AllowedRoutes{}
	}
	l.kinds = supported
	if len(allowed.Kinds) > 0 {
		l.kinds = nil
	}
	for _, k := range allowed.Kinds {
		if k.Group != nil && *k.Group != groupName || !slices.Contains(supported, string(k.Kind)) {
			l.badKinds = true
			continue
		}
		if !slices.Contains(l.kinds, string(k.Kind)) {
			l.kinds = append(l.kinds, string(k.Kind))
		}
	}
	if l.badKinds {
		l.broken = l.broken || len(l.kinds) == 0
		l.unresolved(string(gatewayv1.ListenerReasonInvalidRouteKinds), "Some kind of allowedRoutes.kinds is none that a listener with protocol "+string(l.spec.Protocol)+" has")
	}
	from, selector := gatewayv1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if n := allowed.Namespaces; n != nil {
		from, selector = value(n.From, from), n.Selector
	}
	var err error
	if l.selector, err = newNamespaceSelector(from, selector, l.owner.Namespace); err != nil {
		l.reject(string(gatewayv1.ListenerReasonUnsupportedValue), "allowedRoutes.namespaces: "+err.Error())
	}
}

// serves reports that the table is to have the listener.
func (l *listener) serves() bool {
	return l.gateway.serves() && l.usable()
}

// usable reports that nothing of the listener itself keeps it from being served.
func (l *listener) usable() bool { return l.reason == "" && l.conflict == "" && !l.broken }

// compiled is the listener as the table has it, false if it is not to have it.
func (l *listener) compiled() (*routing.ListenerSpec, bool) {
	if !l.serves() {
		return nil, false
	}
	return &routing.ListenerSpec{
		Name: l.name, Port: l.port, Hostname: l.host, TLS: l.kind == PortTLS, Stream: l.streams(), Certificates: l.certificates, ClientAuth: l.auth,
	}, true
}

// streams reports that bytes, or datagrams, go on as they come.
func (l *listener) streams() bool {
	return l.spec.Protocol != gatewayv1.HTTPSProtocolType && l.kind != PortHTTP
}

// supportedKinds is the list for the status, never nil.
func (l *listener) supportedKinds() []gatewayv1.RouteGroupKind {
	list := make([]gatewayv1.RouteGroupKind, 0, len(l.kinds))
	for _, kind := range l.kinds {
		group := gatewayv1.Group(groupName)
		list = append(list, gatewayv1.RouteGroupKind{Group: &group, Kind: gatewayv1.Kind(kind)})
	}
	return list
}

// conditions are those for the status, for a generation of its object.
func (l *listener) conditions(generation int64) []metav1.Condition {
	list := condition.List{Generation: generation}
	accepted, programmed := string(gatewayv1.ListenerConditionAccepted), string(gatewayv1.ListenerConditionProgrammed)
	conflicted, resolved := string(gatewayv1.ListenerConditionConflicted), string(gatewayv1.ListenerConditionResolvedRefs)
	switch {
	case l.conflict != "":
		list.False(accepted, l.conflict, l.message)
		list.False(programmed, l.conflict, l.message)
		list.True(conflicted, l.conflict, l.message)
	case l.reason != "":
		list.False(accepted, l.reason, l.message)
		list.False(programmed, string(gatewayv1.ListenerReasonInvalid), l.message)
	default:
		list.True(accepted, string(gatewayv1.ListenerReasonAccepted), "The listener is valid")
		switch {
		case l.broken:
			list.False(programmed, string(gatewayv1.ListenerReasonInvalid), l.refMessage)
		case !l.gateway.programmed():
			list.False(programmed, string(gatewayv1.ListenerReasonPending), "The Gateway is not programmed")
		default:
			list.True(programmed, string(gatewayv1.ListenerReasonProgrammed), "The listener is served")
		}
	}
	if l.conflict == "" {
		list.False(conflicted, string(gatewayv1.ListenerReasonNoConflicts), "No other listener is in the way")
	}
	if l.refs != "" {
		list.False(resolved, l.refs, l.refMessage)
	} else {
		list.True(resolved, string(gatewayv1.ListenerReasonResolvedRefs), "All references are resolved")
	}
	if l.overlaps {
		list.True(string(gatewayv1.ListenerConditionOverlappingTLSConfig), string(gatewayv1.ListenerReasonOverlappingHostnames), overlap)
	}
	return list.Conditions
}

// namespaceSelector says which namespaces are meant.
type namespaceSelector struct {
	all      bool
	same     string          // that namespace; "" = none
	selector labels.Selector // nil = none
}

func newNamespaceSelector(from gatewayv1.FromNamespaces, selector *metav1.LabelSelector, same string) (namespaceSelector, error) {
	switch from {
	case gatewayv1.NamespacesFromAll:
		return namespaceSelector{all: true}, nil
	case gatewayv1.NamespacesFromSame:
		return namespaceSelector{same: same}, nil
	case gatewayv1.NamespacesFromSelector:
		made, err := metav1.LabelSelectorAsSelector(selector)
		return namespaceSelector{selector: made}, err //nolint:wrapcheck // the caller says of which field
	}
	return namespaceSelector{}, nil
}

// equal reports whether both mean the same namespaces.
func (s *namespaceSelector) equal(o *namespaceSelector) bool {
	if s.all != o.all || s.same != o.same || (s.selector == nil) != (o.selector == nil) {
		return false
	}
	return s.selector == nil || s.selector.String() == o.selector.String()
}

// metadataName is the label that the API server gives each namespace.
const metadataName = "kubernetes.io/metadata.name"

// has reports whether a namespace is meant.
func (s *namespaceSelector) has(o *Objects, namespace string) bool {
	if s.all || s.same == namespace && namespace != "" {
		return true
	}
	if s.selector == nil {
		return false
	}
	return s.selector.Matches(namespaceLabels{o.Namespaces.Get(source.Key{Name: namespace}), namespace})
}

// namespaceLabels are the labels of a namespace, with its name among them wherever it comes from.
type namespaceLabels struct {
	labels.Set
	name string
}

func (n namespaceLabels) Has(label string) bool { return label == metadataName || n.Set.Has(label) }

func (n namespaceLabels) Get(label string) string {
	if label == metadataName {
		return n.name
	}
	return n.Set.Get(label)
}

func (n namespaceLabels) Lookup(label string) (string, bool) {
	if label == metadataName {
		return n.name, true
	}
	return n.Set.Lookup(label)
}

// value returns what p points to, or else what is there instead.
func value[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}
