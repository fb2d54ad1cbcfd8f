// Package convert makes objects of the Gateway API of the Routes and Ingresses that a router would serve, and says what of these has no equal there.
// It does no I/O, and its results depend on its input alone.
//
//	Routes, and rules of Ingresses, as they were admitted (Item) ─► Convert ─► objects, and notes by object and field (Result)
//
// What is converted is what is in effect: hosts as they were given out, annotations as they were read. An object that would let in whom it keeps out now is left
// out, unless somebody asks for it.
package convert

import (
	"fmt"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"turnout/controller/source"
	"turnout/routing"
)

// Item is a Route, or a rule of an Ingress, that a router serves. It is not changed.
type Item struct {
	Of    Source
	Route *routev1.Route     // the Route, or the one that the rule is served as
	Spec  *routing.RouteSpec // what the router makes of it; its targets are not looked at
	Rules []routing.RuleSpec // the same as rules: where copies go is in the first, and the others are the ways to ask for a canary
	TLS   *routev1.TLSConfig // as it is used; nil = plain HTTP
	Host  string             // in effect; that of a wildcard is any host of the domain. "" = any host
	Path  routing.PathMatch
	// Default says that the rule is the default backend of an Ingress, which comes after all others of the host.
	Default bool
	// Problem is why its requests are answered with 503; "" = they are not.
	Problem string
}

// Source is the object that an Item comes from.
type Source struct {
	Kind source.Kind // Route or Ingress
	source.Key
	Origin      string            // file and document; "" = a cluster
	Labels      map[string]string // of the object
	Annotations map[string]string // of the object, all of them
}

// String returns "Kind namespace/name".
func (s *Source) String() string { return s.Kind.String() + " " + s.Key.String() }

// Input is what is converted.
type Input struct {
	Items    []Item
	Services map[source.Key]*corev1.Service // those that there are
}

// Options say what is made. CheckOptions completes them.
type Options struct {
	Gateway     source.Key // that is made
	Class       string     // its class; "" = DefaultClass, which is made too
	Plain       int        // the port of its listener for HTTP; 0 = 80
	Secure      int        // that of its listeners for TLS; 0 = 443
	Certificate source.Key // the Secret with the certificate of hosts that have none; the zero value is DefaultCertificate in the namespace of the Gateway
	// Experimental says that fields of the experimental channel are used.
	Experimental bool
	// Unguarded says that objects are converted, too, that let in fewer clients than what they become.
	Unguarded bool
	// DestinationCA verifies pods of re-encrypt routes that say no authority, as PEM; nil = there is none.
	DestinationCA []byte
}

// DefaultClass is the GatewayClass of this router.
const DefaultClass = "turnout"

// DefaultCertificate is the name of the Secret that the listener refers to for hosts without a certificate of their own.
const DefaultCertificate = "default-certificate"

// complete fills in what is not given.
func (o Options) complete() Options {
	for _, port := range []struct {
		is      *int
		instead int
	}{{&o.Plain, 80}, {&o.Secure, 443}} {
		if *port.is == 0 {
			*port.is = port.instead
		}
	}
	if o.Gateway == (source.Key{}) {
		o.Gateway = source.Key{Namespace: "turnout", Name: "turnout"}
	}
	if o.Certificate == (source.Key{}) {
		o.Certificate = source.Key{Namespace: o.Gateway.Namespace, Name: DefaultCertificate}
	}
	return o
}

// Object is an object that was made.
type Object interface {
	runtime.Object
	metav1.Object
}

// Result is what was made.
type Result struct {
	Objects []Object // in the order in which they are best applied
	// Made are the objects that a Route or an Ingress has become, by "Kind namespace/name": those that are its own, as "Kind namespace/name".
	Made  []Made
	Notes []Note // those about all objects come first, then by object in the order of the input
}

// Made says what an object became.
type Made struct {
	Of   Source
	Into []string
}

// Severity is how bad a note is. The zero value is Differs.
type Severity uint8

// The severities.
const (
	Differs Severity = iota // it is there, and means something else in some cases
	NoEqual                 // it has no equal in the Gateway API, or none that is used
	LeftOut                 // the object, or a part of it that takes requests, is not converted
)

// String returns the severity as it is printed.
func (s Severity) String() string {
	switch s {
	case NoEqual:
		return "no equal"
	case LeftOut:
		return "left out"
	}
	return "differs"
}

// Note is what is to be known of a conversion.
type Note struct {
	Of       *Source // nil = all objects
	Severity Severity
	Field    string // the annotation, or the path of the field; "" = the whole object
	Text     string // for people
}

// String returns the note as one line, without its place.
func (n *Note) String() string {
	text := n.Severity.String() + ": "
	if n.Of != nil {
		text += n.Of.String() + ": "
	}
	if n.Field != "" {
		text += n.Field + ": "
	}
	return text + n.Text
}

// conversion is one call of Convert.
type conversion struct {
	in      Input
	options Options
	groups  []*group
	out     Result
	said    map[string]bool // notes that there are

	frontend frontend
	places   map[*Item][]*section       // the listeners that an item is attached to
	names    map[string]map[string]bool // taken names, by kind and namespace
	made     map[string]int             // place in out.Made, by object
	policies map[policyTarget]*aPolicy
	secrets  []Object
	policed  []Object
	routes   []Object
}

// Convert makes objects of the Gateway API. There is nothing that makes it fail.
func Convert(in Input, options Options) *Result {
	c := &conversion{
		in: in, options: options.complete(), said: make(map[string]bool), names: make(map[string]map[string]bool), made: make(map[string]int),
		policies: make(map[policyTarget]*aPolicy), places: make(map[*Item][]*section),
	}
	c.collect()
	c.listen()
	c.settlePlaces()
	for _, g := range c.groups {
		c.convert(g)
	}
	c.out.Objects = append(c.out.Objects, c.gateway()...)
	c.out.Objects = append(c.out.Objects, c.grants()...)
	c.out.Objects = append(c.out.Objects, c.secrets...)
	c.out.Objects = append(c.out.Objects, c.policed...)
	c.out.Objects = append(c.out.Objects, c.routes...)
	c.general()
	return &c.out
}

// notef says something of an object once.
func (c *conversion) notef(of *Source, severity Severity, field, format string, args ...any) {
	n := Note{Of: of, Severity: severity, Field: field, Text: fmt.Sprintf(format, args...)}
	if text := n.String(); !c.said[text] {
		c.said[text] = true
		c.out.Notes = append(c.out.Notes, n)
	}
}

// name returns a name for an object that no other of its kind and namespace has, made of what is wanted.
func (c *conversion) name(kind, namespace, wanted string) string {
	at := kind + " " + namespace
	if c.names[at] == nil {
		c.names[at] = make(map[string]bool)
	}
	name := shortened(wanted, maxName)
	for n := 2; c.names[at][name]; n++ {
		suffix := fmt.Sprintf("-%d", n)
		name = shortened(wanted, maxName-len(suffix)) + suffix
	}
	c.names[at][name] = true
	return name
}

// add notes that an object became another one.
func (c *conversion) add(of *Source, o Object) {
	i, ok := c.made[of.String()]
	if !ok {
		i = len(c.out.Made)
		c.made[of.String()] = i
		c.out.Made = append(c.out.Made, Made{Of: *of})
	}
	c.out.Made[i].Into = append(c.out.Made[i].Into, fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()))
}
