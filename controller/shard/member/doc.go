// Package member makes a router a replica of a Router: it says in the Router's status
// whether it is ready, where clients reach it, up to which version of the RouteBindings
// it serves, and which routes that leave are still asked for. The scheduler moves
// bindings by that.
//
//	RouteBindings ─► Sink ─► controller ─► table
//	                  │          │
//	                  └─ tracker ┴─► Member.Run ─► status.replicas of the Router
//
// What it serves does not depend on the API server or the scheduler being there: it goes
// on with what was delivered last.
package member
