package shard

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// Key names an object of a namespace.
type Key = source.Key

// Route is what is known of a Route object, and kept: a million of them must fit. Strategies read it.
type Route struct {
	Namespace, Name string
	UID             string
	Host, Path      string // as in spec; Host "": the system gives it a name
	Created         int64  // seconds since 1970, which decides whose host it is
	Labels          Labels
	NamespaceLabels Labels // kept by the Planner, from SetNamespace
	Wildcard        bool   // wildcardPolicy Subdomain
	TLS             bool   // the route has a tls section
	Passthrough     bool
}

// Key names the route.
func (r *Route) Key() Key { return Key{Namespace: r.Namespace, Name: r.Name} }

// View is what the scheduler has written on a Route: annotations and labels. The zero value is a route that it has not written to.
type View struct {
	Phase   RoutePhase
	DNS     string   // the host: the requested one, or Target
	Target  string   // the name that the system has given; never changes
	Routers []string // that serve it now, and have no intention to stop; sorted
	Bound   []string // that have a binding, leaving ones too: replicas watch the route by these labels; sorted
	Message string   // why it is not bound, or not where it should be; "" if all is well
	Version uint64   // resource version of the object
}

// RoutePhase is how far a route has come.
type RoutePhase string

// Phases of a route.
const (
	RouteNew       RoutePhase = "new"
	RouteScheduled RoutePhase = "scheduled"
)

// Effect is what a taint does.
type Effect uint8

// Effects of taints.
const (
	NoSchedule Effect = iota // no further routes
	Drain                    // no further routes, and the others move away
)

// Router is what is known of a Router object. Strategies read it, and must not change it.
type Router struct {
	Name    string
	UID     string
	Created int64  // seconds since 1970: of two with one domain the older has it
	Labels  Labels // of the object, such as the zone where it is
	Domain  string // spec.dns.domain; "": routes that ask for no host do not come here first
	TTL     time.Duration

	RouteSelector, NamespaceSelector *metav1.LabelSelector // nil: all routes

	Capacity         int // routes; 0: no limit
	RequestsCapacity int // requests per second, which strategies count as full; 0: unknown
	Taints           []Effect
	Addresses        []string // fixed ones; empty: those of ready replicas
	Replicas         []Replica

	Bound             int // routes that are bound here without those that leave; kept by the Planner
	RequestsPerSecond int // of all replicas; kept by the Planner
}

// Selective reports whether the router selects routes by labels.
func (r *Router) Selective() bool { return r.RouteSelector != nil || r.NamespaceSelector != nil }

// MostLeaving is how many bindings a replica names: the API server takes no more.
const MostLeaving = 1000

// Replica is what a replica of a router reports.
type Replica struct {
	Name              string
	Ready             bool
	Addresses         []string
	Observed          uint64 // resource version of the bindings that it serves
	RequestsPerSecond int
	Renewed           time.Time // by its own clock: only changes of it count
	Leaving           []Key     // bindings that leave and are still asked for, MostLeaving of them at most
}

// RouterPhase sums a router up.
type RouterPhase string

// Phases of a router.
const (
	RouterPending  RouterPhase = "Pending"  // no replica has been ready yet
	RouterReady    RouterPhase = "Ready"    // at least one replica is, or was when it was last heard of
	RouterDraining RouterPhase = "Draining" // its routes move away
	RouterLost     RouterPhase = "Lost"     // no replica has said anything for longer than the grace time
)

// RouterStatus is what the scheduler writes in the status of a Router.
type RouterStatus struct {
	Phase         RouterPhase
	ReadyReplicas int
	RoutesBound   int
	Moving        int // bindings on the way to it or from it
	Addresses     []string
	Conditions    []Condition // Available and Valid
	Version       uint64      // resource version of the object
}

// Condition is a condition of an object. When it changed last is up to who writes it.
type Condition struct {
	Type    string
	True    bool
	Reason  string
	Message string
}

// BindingPhase sums a binding up.
type BindingPhase uint8

// Phases of a binding; the zero value is a binding that has none yet.
const (
	BindingUnknown BindingPhase = iota
	BindingPending              // not all ready replicas of its router serve it yet
	BindingServing              // DNS may name its router
	BindingLeaving
)

func (p BindingPhase) String() string {
	return [...]string{"", "Pending", "Serving", "Leaving"}[p]
}

// Binding is what is known of a RouteBinding object.
type Binding struct {
	Namespace, Name string // Name is BindingName(Route, Router)
	Route           string // name of the route, in the same namespace
	RouteUID        string
	Router          string
	DNS, Target     string
	Leaving         bool
	Phase           BindingPhase // in status
	Version         uint64       // resource version
	Created         int64        // seconds since 1970
}

// Key names the binding.
func (b *Binding) Key() Key { return Key{Namespace: b.Namespace, Name: b.Name} }

// BindingName is the name of the binding of a route to a router.
func BindingName(route, router string) string { return route + "." + router }
