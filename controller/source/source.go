// Package source holds what feeds the controller: one kind of event for every object,
// whether it comes from a cluster or from a folder of manifests, and the decoding,
// defaulting and validation that an API server would otherwise do.
//
// A feeder delivers events to a Sink. Objects in events are shared and read-only: a
// feeder that changes one delivers a new object.
package source

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Kind is the kind of an object. The zero value is no kind.
type Kind uint8

// The kinds the controller knows.
const (
	Route         Kind = iota + 1 // route.openshift.io/v1, *routev1.Route
	Service                       // v1, *corev1.Service
	EndpointSlice                 // discovery.k8s.io/v1, *discoveryv1.EndpointSlice
	Secret                        // v1, *corev1.Secret
	Namespace                     // v1, *corev1.Namespace
	ConfigMap                     // v1, *corev1.ConfigMap
	Ingress                       // networking.k8s.io/v1, *networkingv1.Ingress
	IngressClass                  // networking.k8s.io/v1, *networkingv1.IngressClass
	RouteBinding                  // turnout.router/v1alpha1, *api.RouteBinding

	// These are of gateway.networking.k8s.io/v1, and of the types of that name in package gatewayv1.

	GatewayClass
	Gateway
	ListenerSet
	HTTPRoute
	GRPCRoute
	TLSRoute
	TCPRoute
	UDPRoute
	ReferenceGrant
	BackendTLSPolicy

	// These are for the scheduler.

	Router         // turnout.router/v1alpha1, *api.Router
	RouteScheduler // turnout.router/v1alpha1, *api.RouteScheduler

	// These configure the router. They are *unstructured.Unstructured, because a field that cannot be decoded must not cost the others.

	IngressController // operator.openshift.io/v1
	APIServer         // config.openshift.io/v1
	IngressConfig     // config.openshift.io/v1, whose kind is Ingress too

	CustomResourceDefinition // apiextensions.k8s.io/v1, *unstructured.Unstructured: of the Gateway API, which release of it there is

	// UnknownKind is a kind of the Gateway API that a cluster does not know, by its name: *metav1.Status, what the API server said.
	UnknownKind
)

var kindNames = [...]string{
	"", "Route", "Service", "EndpointSlice", "Secret", "Namespace", "ConfigMap", "Ingress", "IngressClass", "RouteBinding",
	"GatewayClass", "Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "ReferenceGrant", "BackendTLSPolicy",
	"Router", "RouteScheduler", "IngressController", "APIServer", "IngressConfig", "CustomResourceDefinition", "UnknownKind",
}

// String returns the kind as manifests write it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// Namespaced reports whether objects of the kind live in a namespace.
func (k Kind) Namespaced() bool {
	return k != Namespace && k != IngressClass && k != GatewayClass && k != Router && k != RouteScheduler && k != APIServer && k != IngressConfig && k != CustomResourceDefinition && k != UnknownKind
}

// Key names an object of a known kind. Namespace is empty for objects outside of
// namespaces.
type Key struct {
	Namespace, Name string
}

// String returns "namespace/name", or the name alone outside of namespaces.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// ParseKey reads NAMESPACE/NAME. The bool is false when s is something else.
func ParseKey(s string) (Key, bool) {
	namespace, name, ok := strings.Cut(s, "/")
	return Key{Namespace: namespace, Name: name}, ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// OfGatewayAPI reports whether the kind is one of the Gateway API.
func (k Kind) OfGatewayAPI() bool { return k >= GatewayClass && k <= BackendTLSPolicy }

// OfIngress stands in the names of rules that the controller serves as Routes between that of an Ingress and a hash; it is in no name that an object
// can have.
const OfIngress = "~"

// Event says what an object is now. Only the latest event of an object counts, so
// events of one object may be merged.
type Event struct {
	Kind Kind
	Key  Key
	// Object is of the type named at Kind, read-only from now on; nil = deleted.
	Object runtime.Object
	// Order decides which of two objects with equal creation time is older, before the
	// UID does: the smaller text. Feeders that know the real creation time leave it empty.
	Order string
	// Origin says where the object comes from, for people: a file and document, a cluster.
	Origin string
	// Err says why a Secret cannot be had although it may be there, such as a missing
	// permission. Object is nil then.
	Err error
}

// Sink takes events. Its methods never block and may be called by any goroutine.
type Sink interface {
	// Event delivers events. Those of one call are one change: nothing is made of a part of them.
	Event(events ...Event)
	// Synced says that the feeder has delivered all that there was when it started.
	Synced()
}

// Severity says how bad a Problem is. The zero value is Error.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // what was read is not used; its last good version stays
	Warning                 // it is used, but not all of it as written
)

// String returns the severity in lower case.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is something a feeder could not use as it is. It is comparable.
type Problem struct {
	File     string   // path of the file
	Document int      // number of the document in the file from 1; 0 = the whole file
	Object   string   // "Route namespace/name", "" when not known
	Severity Severity // how bad it is
	Reason   string   // what is wrong, for people
}

// Origin is Event.Origin of a document in a file.
func Origin(file string, document int) string { return file + originInfix + strconv.Itoa(document) }

const originInfix = ", document "

// ParseOrigin is the opposite of Origin. The bool is false for an object that comes from elsewhere.
func ParseOrigin(origin string) (file string, document int, ok bool) {
	at := strings.LastIndex(origin, originInfix)
	if at < 0 {
		return "", 0, false
	}
	document, err := strconv.Atoi(origin[at+len(originInfix):])
	return origin[:at], document, err == nil
}

// String returns the problem as one line: "FILE, document 2, Route ns/name: reason".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Document > 0 {
		b.WriteString(", document " + strconv.Itoa(p.Document))
	}
	if p.Object != "" {
		b.WriteString(", " + p.Object)
	}
	b.WriteString(": ")
	if p.Severity != Error {
		b.WriteString(p.Severity.String() + ": ")
	}
	b.WriteString(p.Reason)
	return b.String()
}
