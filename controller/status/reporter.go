package status

import routev1 "github.com/openshift/api/route/v1"

// Reporter brings status to where others can see it. The controller calls it from one
// goroutine; no method blocks. Objects are read-only on both sides.
type Reporter interface {
	// Observe passes on what a route is now, as its source has it, no matter who changed it. A Report
	// that the same change leads to comes before.
	Observe(route *routev1.Route)
	// Report asks that this router's entry in the status of the route be entry. It is
	// called after the table that entry speaks of has been published.
	Report(route *routev1.Route, entry *routev1.RouteIngress)
	// Withdraw tells that the router no longer has the route: it is deleted, or it has
	// left what this router selects.
	Withdraw(route *routev1.Route)
}
