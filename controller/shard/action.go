package shard

// Kind is what an action does.
type Kind uint8

// Kinds of actions.
const (
	CreateBinding Kind = iota // create Binding, owned by the route of RouteUID
	MarkLeaving               // set spec.leaving of Binding, if it still has Version
	DeleteBinding             // delete Binding, if it still has Version
	UpdateBinding             // set the phase in the status of Binding to Phase, if it still has Version
	UpdateRoute               // write View on the route, if it still has RouteUID
	UpdateRouter              // write Status on the router, if it still has RouterUID
	Report                    // record an event; nobody repeats it
	Ask                       // call Schedule of the strategy, which is Slow, with Route and Routers
	kinds
)

func (k Kind) String() string {
	return [...]string{"create-binding", "mark-leaving", "delete-binding", "update-binding", "update-route", "update-router", "report", "ask"}[k]
}

// Action is something to do. Each is handed back by Done exactly once, whatever becomes of it.
type Action struct {
	ID        uint64
	Kind      Kind
	Key       Key    // of the route; zero if it is about a router
	RouteUID  string // precondition of UpdateRoute
	Router    string
	RouterUID string       // precondition of UpdateRouter
	Binding   Binding      // of the first four; Version is the precondition, but for CreateBinding
	Phase     BindingPhase // UpdateBinding
	View      View         // UpdateRoute
	Status    RouterStatus // UpdateRouter
	Event     Event        // Report
	Route     *Route       // Ask: a copy
	Routers   []*Router    // Ask: copies, not to be changed
}

// Event is something that people should know, about the route or router of an action.
type Event struct {
	Warning bool
	Reason  string
	Message string
}

// Outcome is what became of a write.
type Outcome uint8

// Outcomes.
const (
	Written  Outcome = iota
	Conflict         // the object has changed since, or exists already: its newer state will come by Set...
	NotFound         // there is no such object any more
	Refused          // the API does not take this object; others may do
	Failed           // the API could not be reached, is overloaded or in trouble: everything goes slower
	outcomes
)

func (o Outcome) String() string {
	return [...]string{"written", "conflict", "not-found", "refused", "failed"}[o]
}

// Result is what became of an action.
type Result struct {
	Outcome Outcome
	Version uint64 // Written: resource version of the object now; 0 where there is none
	Err     error  // Refused, Failed: why. Ask: what Schedule returned
	Router  string // Ask: name of the router that Schedule returned
}
