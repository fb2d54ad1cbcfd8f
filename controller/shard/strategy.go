package shard

// Strategy chooses a router for a route: the RouteSchedulerStrategy of the sharding proposal.
//
// Schedule returns one of routers, which are all that may have the route: their selectors match it, they are ready, have room and no taint. They
// are sorted by name, there is at least one, and neither slice nor routers may be changed. The same slice (the same first element and length) is given again as long as
// the routers in it are the same, so a strategy may keep what it has computed of one. An error is taken to be transient: the route waits
// and is tried again, and the text is shown to its user.
//
// A Strategy is used by one goroutine, unless it is Slow.
type Strategy interface {
	Schedule(route *Route, routers []*Router) (*Router, error)
}

// Observer is a Strategy that keeps an index of routers.
type Observer interface {
	Strategy
	// Observe is called when Bound, RequestsPerSecond or capacities of a router have changed, and, with gone, when there will be no more of it.
	Observe(router *Router, gone bool)
}

// Multiple is a Strategy by which a route is on several routers.
type Multiple interface {
	Strategy
	// Count is on how many routers a route is to be, at least 1.
	Count(route *Route) int
	// Another chooses a router besides those that have the route, which may be among routers.
	Another(route *Route, have, routers []*Router) (*Router, error)
}

// Preferring is a Strategy with an opinion where a route is at home, whatever the load. Rebalancing moves routes home first.
type Preferring interface {
	Strategy
	Home(route *Route, routers []*Router) *Router
}

// Slow is a Strategy whose Schedule waits for others, such as a webhook. The Planner does not call it, but asks for it by actions of kind Ask,
// several at once, with copies of routers.
type Slow interface {
	Strategy
	// Concurrency is how many calls may run at once.
	Concurrency() int
}

// Reason is why a route is not bound, or not where it should be: a label of metrics, and the reason of an event.
type Reason string

// Reasons.
const (
	ReasonNone       Reason = ""
	ReasonNoRouter   Reason = "NoRouter"           // no router selects the route
	ReasonNotReady   Reason = "NoRouterReady"      // those that do are not ready, tainted or invalid
	ReasonNoDomain   Reason = "NoRouterWithDomain" // those that do have no domain, and the route has no host
	ReasonNoCapacity Reason = "NoCapacity"         // those that do are full
	ReasonHost       Reason = "HostAlreadyClaimed" // the host is another's
	ReasonInvalid    Reason = "InvalidHost"        // the host is no DNS name
	ReasonName       Reason = "NoName"             // all names that it could have are others'
	ReasonStrategy   Reason = "StrategyFailed"     // the strategy returned an error
	ReasonWrite      Reason = "WriteFailed"        // the API did not take a write
)

// Error is an error with a reason. All are transient.
type Error struct {
	Reason  Reason
	Message string
}

func (e *Error) Error() string { return e.Message }
